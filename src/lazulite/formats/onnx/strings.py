"""Operators on texts, which stay on the host."""

from __future__ import annotations

import re
from typing import Any

import numpy

from lazulite.formats.onnx.registry import onnx_op
from lazulite.formats.onnx.values import Host


def _texts(texts: list[Any], shape: tuple[int, ...]) -> Host:
    result = numpy.empty(len(texts), object)
    result[:] = texts
    return result.reshape(shape)


@onnx_op("StringConcat", since=20)
def string_concat(a: Host, b: Host) -> Host:
    left, right = numpy.broadcast_arrays(a, b)
    joined = [str(x) + str(y) for x, y in zip(left.reshape(-1), right.reshape(-1), strict=True)]
    return _texts(joined, left.shape)


@onnx_op("StringSplit", since=20)
def string_split(x: Host, *, delimiter: str = "", maxsplit: int = -1) -> tuple[Host, Host]:
    """The parts, filled up with empty texts, and how many there are."""
    parts = [str(text).split(delimiter or None, maxsplit) for text in x.reshape(-1)]
    width = max(map(len, parts), default=0)
    filled = [each for row in parts for each in (*row, *[""] * (width - len(row)))]
    return _texts(filled, (*x.shape, width)), numpy.array([len(row) for row in parts], "int64").reshape(x.shape)


@onnx_op("StringNormalizer", since=10)
def string_normalizer(
    x: Host, *, case_change_action: str = "NONE", is_case_sensitive: int = 0, locale: str = "",
    stopwords: list[str] | None = None,
) -> Host:  # fmt: skip
    """Without the stop words and in one case; one empty text where nothing is left."""
    dropped = {word if is_case_sensitive else word.lower() for word in stopwords or ()}
    kept = [t for t in map(str, x.reshape(-1)) if (t if is_case_sensitive else t.lower()) not in dropped]
    change = {"LOWER": str.lower, "UPPER": str.upper}.get(case_change_action, str)
    changed = [change(text) for text in kept] or [""]
    return _texts(changed, (*x.shape[:-1], len(changed)))


@onnx_op("RegexFullMatch", since=20)
def regex_full_match(x: Host, *, pattern: str) -> Host:
    """By Python's `re`, which agrees with RE2 on what both know."""
    known = re.compile(pattern)
    return numpy.array([known.fullmatch(str(text)) is not None for text in x.reshape(-1)], "bool").reshape(x.shape)


@onnx_op("TfIdfVectorizer", since=9)
def tfidf_vectorizer(
    x: Host, *, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str, ngram_counts: list[int],
    ngram_indexes: list[int], pool_int64s: list[int] | None = None, pool_strings: list[str] | None = None,
    weights: list[float] | None = None,
) -> Host:  # fmt: skip
    """How often each n-gram of the pool occurs in each row, with up to so many skipped between neighbours."""
    pool: list[Any] = list(pool_strings if pool_int64s is None else pool_int64s)  # type: ignore[arg-type]
    places, number = {}, 0
    ends = [*ngram_counts[1:], len(pool)]
    for length, (begin, end) in enumerate(zip(ngram_counts, ends, strict=True), 1):
        for at in range(begin, end, length):
            places[tuple(pool[at : at + length])] = number
            number += 1
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    counts = numpy.zeros((len(rows), max(ngram_indexes) + 1), "float32")
    for row, found in zip(rows.tolist(), counts, strict=True):
        for length in range(min_gram_length, max_gram_length + 1):
            for skip in range(1, (max_skip_count if length > 1 else 0) + 2):
                for at in range(len(row) - skip * (length - 1)):
                    place = places.get(tuple(row[at : at + skip * length : skip][:length]))
                    if place is not None:
                        found[ngram_indexes[place]] += 1
    factors = numpy.ones(counts.shape[1], "float32")
    if mode != "TF" and weights is not None:
        factors[ngram_indexes] = weights
    result = (numpy.minimum(counts, 1) if mode == "IDF" else counts) * factors
    return result[0] if x.ndim < 2 else result
