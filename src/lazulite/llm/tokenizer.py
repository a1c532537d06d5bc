"""Texts as token numbers and back, through the package `tokenizers`.

A `Tokenizer` is built from the vocabulary in a GGUF file or from the tokenizer.json of a Hugging Face
folder.  Which pattern splits a text before pairs are merged is named in GGUF files; a name that is not
known here is refused, since guessing would give other tokens without a word.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lazulite.base.errors import ArgumentError, FormatError

_NORMAL, _UNKNOWN, _CONTROL, _USER, _UNUSED, _BYTE = range(1, 7)
"""Kinds of tokens in GGUF files."""
_WORDS_OF_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_WORDS_OF_LLAMA3 = _WORDS_OF_QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
_PATTERNS = {"qwen2": _WORDS_OF_QWEN, "llama-bpe": _WORDS_OF_LLAMA3, "llama3": _WORDS_OF_LLAMA3}
"""Patterns of words by the name in GGUF files."""
_PLAIN = ("gpt-2", "default", "olmo", "phi-2")
"""Names that stand for the pattern of GPT-2."""
_DIGITS = ("smollm", "starcoder", "refact", "command-r")
"""Names that stand for single digits, then the pattern of GPT-2."""
_UNFINISHED = "\ufffd"
"""What bytes that are not yet a character are decoded to."""


class Tokenizer:
    """A vocabulary with its rules; `begin` and `ends` are the numbers of the tokens around a text."""

    def __init__(
        self, inner: Any, begin: int | None = None, ends: Iterable[int] = (), template: str = "",
        add_begin: bool = False, names: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.inner, self.begin, self.ends, self.template = inner, begin, frozenset(ends), template
        self.add_begin = add_begin and begin is not None
        self.names = dict(names or {})
        """The texts of special tokens, for a template."""

    def __len__(self) -> int:
        return int(self.inner.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """The tokens of a text, after the token that begins texts where the model wants one.

        With `special=False`, nothing in the text is taken for a special token and none is added, as is right for
        text that somebody else wrote.
        """
        if not isinstance(text, str):
            raise ArgumentError("encode", f"a text is needed, got {type(text).__name__}")
        text = text.encode("utf-8", errors="replace").decode("utf-8")  # lone surrogates have no tokens
        found = self._plain(text) if not special else list(self.inner.encode(text, add_special_tokens=False).ids)
        return [self.begin, *found] if special and self.add_begin and self.begin is not None else found

    def _plain(self, text: str) -> list[int]:
        """Tokens of a text in which the names of special tokens are ordinary characters."""
        self.inner.encode_special_tokens = True
        try:
            return list(self.inner.encode(text, add_special_tokens=False).ids)
        finally:
            self.inner.encode_special_tokens = False

    def decode(self, tokens: Sequence[int], *, special: bool = False) -> str:
        """The text of tokens; special ones are left out unless `special`."""
        return str(self.inner.decode(list(tokens), skip_special_tokens=not special))

    def stream(self) -> TextStream:
        """Decodes tokens one by one."""
        return TextStream(self)


class TextStream:
    """The text of tokens that come one by one; no character is given out before all of its bytes are there."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.tokens: list[int] = []
        self.start, self.shown = 0, 0
        """The first token of what is decoded together, and how many of its characters are out."""

    def add(self, token: int) -> str:
        """The text that a further token completes."""
        self.tokens.append(token)
        text = self.tokenizer.decode(self.tokens[self.start :])
        if text.endswith(_UNFINISHED):
            return ""
        new, self.shown = text[self.shown :], len(text)
        if "\n" in new:  # what follows a line end does not depend on what came before
            self.start, self.shown = len(self.tokens) - 1, len(self.tokenizer.decode(self.tokens[-1:]))
        return new

    def rest(self) -> str:
        """What is left of a character that was never finished."""
        return self.tokenizer.decode(self.tokens[self.start :])[self.shown :]


# --- from files ----------------------------------------------------------------------------------


def from_folder(folder: Path) -> Tokenizer:
    """The tokenizer of a Hugging Face folder."""
    library = _library()
    file = folder / "tokenizer.json"
    try:
        inner = library.Tokenizer.from_file(str(file))
    except Exception as error:  # the package raises Exception itself for whatever is wrong in the file
        raise FormatError("load", f"it is no tokenizer: {error}"[:200], file=str(file)) from None
    facts: dict[str, Any] = {}
    for name in ("generation_config.json", "tokenizer_config.json"):
        if (folder / name).exists():
            facts |= json.loads((folder / name).read_text(encoding="utf-8"))
    begin, end = [_text_of(facts.get(f"{name}_token")) for name in ("bos", "eos")]
    ends = facts.get("eos_token_id", [])
    ends = set(ends if isinstance(ends, list) else [ends]) | {inner.token_to_id(end) if end else None}
    template = facts.get("chat_template") or ""
    if (folder / "chat_template.jinja").exists():
        template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    first = inner.token_to_id(begin) if begin else None
    adds = first is not None and inner.encode("a").ids[:1] == [first]
    return Tokenizer(inner, first, [end for end in ends if end is not None], str(template), adds,
                     {"bos_token": begin, "eos_token": end})  # fmt: skip


def _text_of(token: Any) -> str:
    return str(token.get("content", "")) if isinstance(token, dict) else str(token or "")


def from_gguf(metadata: Mapping[str, Any], file: str) -> Tokenizer:
    """The tokenizer in the metadata of a GGUF file."""
    reader = _Metadata(metadata, file)
    kind = reader.text("model")
    if kind == "gpt2":
        inner = _byte_pairs(reader)
    elif kind == "llama":
        inner = _sentence_pieces(reader)
    elif kind == "bert":
        inner = _word_pieces(reader)
    else:
        reader.refuse("model", f"the kind {kind!r} is not known")
    _add_special(inner, reader)
    begin, end = reader.number("bos_token_id"), reader.number("eos_token_id")
    ends = {end, reader.number("eot_token_id"), reader.number("eom_token_id")}
    ends |= {n for n, text in enumerate(reader.tokens) if text in _TURN_ENDS and reader.kinds[n] == _CONTROL}
    names = {name: reader.tokens[n] if n is not None else "" for name, n in (("bos_token", begin), ("eos_token", end))}
    adds = bool(metadata.get("tokenizer.ggml.add_bos_token", kind == "llama"))
    template = str(metadata.get("tokenizer.chat_template", ""))
    return Tokenizer(inner, begin, [end for end in ends if end is not None], template, adds, names)


_TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|eom_id|>")
"""Tokens that end what a model says, whatever else a file calls the end."""


class _Metadata:
    """The vocabulary in a GGUF file, checked."""

    def __init__(self, metadata: Mapping[str, Any], file: str) -> None:
        self.metadata, self.file = metadata, file
        self.tokens: list[str] = self.texts("tokens")
        kinds = metadata.get("tokenizer.ggml.token_type", [_NORMAL] * len(self.tokens))
        if not isinstance(kinds, list) or len(kinds) != len(self.tokens):
            self.refuse("token_type", "there is one kind for each token")
        self.kinds: list[int] = kinds

    def refuse(self, name: str, message: str) -> Any:
        raise FormatError("load", message, file=self.file, field=f"tokenizer.ggml.{name}")

    def text(self, name: str, default: str | None = None) -> str:
        value = self.metadata.get(f"tokenizer.ggml.{name}", default)
        return value if isinstance(value, str) else self.refuse(name, "a text is needed")

    def texts(self, name: str) -> list[str]:
        value = self.metadata.get(f"tokenizer.ggml.{name}")
        plain = isinstance(value, list) and all(isinstance(each, str) for each in value)
        return value if plain and isinstance(value, list) else self.refuse(name, "a list of texts is needed")

    def number(self, name: str) -> int | None:
        """The number of a token, if it is named."""
        value = self.metadata.get(f"tokenizer.ggml.{name}")
        if value is not None and not (isinstance(value, int) and 0 <= value < len(self.tokens)):
            self.refuse(name, f"{value!r:.30} is no token")
        return value

    def vocabulary(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.tokens)}


def _byte_pairs(reader: _Metadata) -> Any:
    """Byte-level pairs, as GPT-2 has them."""
    library, name = _library(), reader.text("pre", "default")
    merges = [tuple(merge.split(" ", 1)) for merge in reader.texts("merges")]
    known = reader.vocabulary()
    if any(len(m) != 2 or m[0] not in known or m[1] not in known or m[0] + m[1] not in known for m in merges):
        reader.refuse("merges", "a merge joins two tokens to a third")
    inner = library.Tokenizer(library.models.BPE(vocab=known, merges=merges, ignore_merges=name == "llama-bpe"))
    split = library.pre_tokenizers
    if name in _PATTERNS:
        words = split.Split(library.Regex(_PATTERNS[name]), behavior="isolated")
        inner.pre_tokenizer = split.Sequence([words, split.ByteLevel(add_prefix_space=False, use_regex=False)])
    elif name in _PLAIN or name in _DIGITS:
        steps = [split.Digits(individual_digits=True)] if name in _DIGITS else []
        inner.pre_tokenizer = split.Sequence([*steps, split.ByteLevel(add_prefix_space=False, use_regex=True)])
    else:
        reader.refuse("pre", f"the way {name!r} to split words is not known")
    if name == "qwen2":
        inner.normalizer = library.normalizers.NFC()
    inner.decoder = library.decoders.ByteLevel()
    return inner


def _sentence_pieces(reader: _Metadata) -> Any:
    """SentencePiece's pairs: the pair of highest score is merged first, unknown characters are bytes."""
    library, tokens = _library(), reader.tokens
    scores: list[float] = reader.metadata.get("tokenizer.ggml.scores") or []
    if not isinstance(scores, list) or len(scores) != len(tokens):
        reader.refuse("scores", "there is one score for each token")
    known = reader.vocabulary()
    merges = [
        (-scores[known[token]], len(left), left, token[len(left) :])
        for number, token in enumerate(tokens)
        if reader.kinds[number] in (_NORMAL, _USER)
        for left in (token[:at] for at in range(1, len(token)))
        if left in known and token[len(left) :] in known
    ]
    pairs = [(left, right) for *_, left, right in sorted(merges)]
    unknown = tokens[reader.number("unknown_token_id") or 0]
    model = library.models.BPE(vocab=known, merges=pairs, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    inner = library.Tokenizer(model)
    prefix = bool(reader.metadata.get("tokenizer.ggml.add_space_prefix", True))
    change, spell = library.normalizers, library.decoders
    steps = [change.Prepend("\u2581")] if prefix else []
    inner.normalizer = change.Sequence([*steps, change.Replace(" ", "\u2581")])
    strip = [spell.Strip(content=" ", left=1, right=0)] if prefix else []
    inner.decoder = spell.Sequence([spell.Replace("\u2581", " "), spell.ByteFallback(), spell.Fuse(), *strip])
    return inner


def _word_pieces(reader: _Metadata) -> Any:
    """BERT's pieces of words."""
    library = _library()
    # GGUF marks the beginnings of words, WordPiece the pieces that continue one.
    known = {
        token[1:] if token.startswith("\u2581") else token if reader.kinds[number] == _CONTROL else "##" + token: number
        for number, token in enumerate(reader.tokens)
    }
    inner = library.Tokenizer(library.models.WordPiece(vocab=known, unk_token="[UNK]"))
    inner.normalizer = library.normalizers.BertNormalizer()
    inner.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    inner.decoder = library.decoders.WordPiece()
    return inner


def _add_special(inner: Any, reader: _Metadata) -> None:
    """Tell the tokenizer which tokens are never made of others."""
    library = _library()
    control = [t for t, kind in zip(reader.tokens, reader.kinds, strict=True) if kind == _CONTROL]
    user = [t for t, kind in zip(reader.tokens, reader.kinds, strict=True) if kind == _USER]
    inner.add_special_tokens([library.AddedToken(token, special=True, normalized=False) for token in control])
    inner.add_tokens([library.AddedToken(token, special=False, normalized=False) for token in user])


def _library() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise ArgumentError(
            "load", "texts need the package tokenizers, which is not installed", hint="pip install lazulite[llm]"
        ) from None
    return tokenizers
