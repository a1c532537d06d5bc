"""Ensembles of decision trees, of `ai.onnx.ml`: walked down on the host, all rows together.

Every version becomes a `_Forest`: nodes in one numbering, leaves among them, and a table of what each
leaf adds to each target.  A walk takes no more steps than there are nodes, so a tree that bites its tail is told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from lazulite.base.errors import FormatError
from lazulite.formats.onnx.ml import DOMAIN, finished
from lazulite.formats.onnx.registry import Call, onnx_op
from lazulite.formats.onnx.values import LARGEST_DENSE, Host
from lazulite.tensor.tensor import Tensor

_MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
_LEAF = len(_MODES)
_AVERAGE, _SUM, _MIN, _MAX = range(4)
_AGGREGATES = {"AVERAGE": _AVERAGE, "SUM": _SUM, "MIN": _MIN, "MAX": _MAX}
_COMBINE: dict[int, tuple[Any, float]] = {
    _AVERAGE: (numpy.add, 0.0), _SUM: (numpy.add, 0.0), _MIN: (numpy.minimum, math.inf),
    _MAX: (numpy.maximum, -math.inf),
}  # fmt: skip


class _Forest(NamedTuple):
    modes: Host
    """Of each node, a number in `_MODES`, or that of a leaf."""
    features: Host
    splits: Host
    branches: Host
    """Where a node leads: row 0 if its test does not hold, row 1 if it does."""
    tracks: Host
    """Whether NaN passes the test."""
    roots: Host
    sets: dict[int, Host]
    """The members that some nodes test for."""

    def leaves(self, x: Host) -> Host:
        """The leaf that each row reaches in each tree."""
        at = numpy.repeat(self.roots[None, :], len(x), 0)
        row = numpy.arange(len(x))[:, None]
        for _ in range(len(self.modes)):
            walking = self.modes[at] != _LEAF
            if not walking.any():
                return at
            value = x[row, self.features[at]]
            holds = self._holds(value, at) | (numpy.isnan(value) & self.tracks[at])
            at = numpy.where(walking, self.branches[holds.astype("int64"), at], at)
        if (self.modes[at] != _LEAF).any():
            raise FormatError("OnnxRunner", "a tree leads back to one of its nodes")
        return at

    def _holds(self, value: Host, at: Host) -> Host:
        split = self.splits[at]
        tests = [value <= split, value < split, value >= split, value > split, value == split, value != split]
        member = numpy.zeros(at.shape, "bool")
        for node, known in self.sets.items():
            member |= (at == node) & numpy.isin(value, known)
        return numpy.choose(self.modes[at], [*tests, member, member])

    def scores(self, x: Host, given: tuple[Host, Host, Host], targets: int, how: int) -> Host:
        """For each row the weights of its leaves by target; `given` are nodes, targets and weights."""
        if len(self.modes) * targets > LARGEST_DENSE:
            raise FormatError("OnnxRunner", f"{len(self.modes)} nodes and {targets} targets are too many")
        combine, nothing = _COMBINE[how]
        table = numpy.full((len(self.modes), targets), nothing)
        combine.at(table, given[:2], given[2])
        total = combine.reduce(table[self.leaves(x)], axis=1)
        return total / len(self.roots) if how == _AVERAGE else total


@onnx_op("TreeEnsemble", since=5, domain=DOMAIN)
def tree_ensemble(
    x: Host, *, leaf_targetids: list[int], leaf_weights: Host, nodes_falseleafs: list[int],
    nodes_falsenodeids: list[int], nodes_featureids: list[int], nodes_modes: Host, nodes_splits: Host,
    nodes_trueleafs: list[int], nodes_truenodeids: list[int], tree_roots: list[int], aggregate_function: int = _SUM,
    membership_values: Host | None = None, n_targets: int = 1, nodes_hitrates: Host | None = None,
    nodes_missing_value_tracks_true: list[int] | None = None, post_transform: int = 0, call: Call,
) -> Tensor:  # fmt: skip
    """Leaves have numbers of their own in the file; here they stand behind the nodes."""
    count, leaves = len(nodes_splits), len(leaf_weights)
    ends = numpy.array([nodes_falseleafs, nodes_trueleafs]).astype("bool")
    branches = numpy.array([nodes_falsenodeids, nodes_truenodeids]) + ends * count
    behind = numpy.zeros(leaves, "int64")
    tracks = numpy.array(nodes_missing_value_tracks_true or [0] * count).astype("bool")
    asking = numpy.flatnonzero(nodes_modes == _MODES.index("MEMBER")).tolist()
    members = [] if membership_values is None else numpy.split(
        membership_values, numpy.flatnonzero(numpy.isnan(membership_values))
    )  # fmt: skip
    forest = _Forest(
        numpy.append(nodes_modes, behind + _LEAF), numpy.append(nodes_featureids, behind),
        numpy.append(nodes_splits, behind), numpy.append(branches, [behind, behind], axis=1),
        numpy.append(tracks, behind.astype("bool")), numpy.array(tree_roots), dict(zip(asking, members, strict=False)),
    )  # fmt: skip
    given = numpy.arange(leaves) + count, numpy.array(leaf_targetids), leaf_weights
    scores = forest.scores(x, given, n_targets, aggregate_function)
    return finished(call.lift(scores.astype(x.dtype)), post_transform)


def _named_forest(
    trees: Sequence[int], nodes: Sequence[int], features: Sequence[int], modes: Sequence[str], splits: Any,
    false: Sequence[int], true: Sequence[int], tracks: Sequence[int] | None,
) -> tuple[_Forest, dict[tuple[int, int], int]]:  # fmt: skip
    """The forest of the first versions, whose nodes are named by tree and number; and their places."""
    places = {key: place for place, key in enumerate(zip(trees, nodes, strict=True))}
    leaf = numpy.array([mode == "LEAF" for mode in modes])
    numbers = numpy.array([_LEAF if mode == "LEAF" else _MODES.index(mode.removeprefix("BRANCH_")) for mode in modes])
    branches = numpy.zeros((2, len(modes)), "int64")
    for row, side in zip(branches, (false, true), strict=True):
        row[~leaf] = [places[trees[at], side[at]] for at in numpy.flatnonzero(~leaf).tolist()]
    roots = list(dict.fromkeys(trees))
    first = [next(place for key, place in places.items() if key[0] == tree) for tree in roots]
    passing = numpy.array(tracks or [0] * len(modes)).astype("bool")
    forest = _Forest(numbers, numpy.array(features), numpy.array(splits), branches, passing, numpy.array(first), {})
    return forest, places


def _contributions(
    places: dict[tuple[int, int], int], trees: Sequence[int], nodes: Sequence[int], ids: Sequence[int], weights: Any
) -> tuple[Host, Host, Host]:
    at = [places[key] for key in zip(trees, nodes, strict=True)]
    return numpy.array(at), numpy.array(ids), numpy.array(weights, "float64")


@onnx_op("TreeEnsembleRegressor", domain=DOMAIN)
def tree_ensemble_regressor(
    x: Host, *, nodes_falsenodeids: list[int], nodes_featureids: list[int], nodes_modes: list[str],
    nodes_nodeids: list[int], nodes_treeids: list[int], nodes_truenodeids: list[int], target_ids: list[int],
    target_nodeids: list[int], target_treeids: list[int], aggregate_function: str = "SUM",
    base_values: list[float] | None = None, base_values_as_tensor: Host | None = None, n_targets: int = 1,
    nodes_hitrates: list[float] | None = None, nodes_hitrates_as_tensor: Host | None = None,
    nodes_missing_value_tracks_true: list[int] | None = None, nodes_values: list[float] | None = None,
    nodes_values_as_tensor: Host | None = None, post_transform: str = "NONE",
    target_weights: list[float] | None = None, target_weights_as_tensor: Host | None = None, call: Call,
) -> Tensor:  # fmt: skip
    splits = nodes_values if nodes_values_as_tensor is None else nodes_values_as_tensor
    forest, places = _named_forest(
        nodes_treeids, nodes_nodeids, nodes_featureids, nodes_modes, splits, nodes_falsenodeids, nodes_truenodeids,
        nodes_missing_value_tracks_true,
    )  # fmt: skip
    weights = target_weights if target_weights_as_tensor is None else target_weights_as_tensor
    given = _contributions(places, target_treeids, target_nodeids, target_ids, weights)
    scores = forest.scores(x, given, n_targets, _AGGREGATES[aggregate_function])
    base = base_values if base_values_as_tensor is None else base_values_as_tensor
    scores = scores if base is None else scores + numpy.array(base)
    return finished(call.lift(scores.astype("float32")), post_transform)


@onnx_op("TreeEnsembleClassifier", domain=DOMAIN)
def tree_ensemble_classifier(
    x: Host, *, class_ids: list[int], class_nodeids: list[int], class_treeids: list[int],
    nodes_falsenodeids: list[int], nodes_featureids: list[int], nodes_modes: list[str], nodes_nodeids: list[int],
    nodes_treeids: list[int], nodes_truenodeids: list[int], base_values: list[float] | None = None,
    base_values_as_tensor: Host | None = None, class_weights: list[float] | None = None,
    class_weights_as_tensor: Host | None = None, classlabels_int64s: list[int] | None = None,
    classlabels_strings: list[str] | None = None, nodes_hitrates: list[float] | None = None,
    nodes_hitrates_as_tensor: Host | None = None, nodes_missing_value_tracks_true: list[int] | None = None,
    nodes_values: list[float] | None = None, nodes_values_as_tensor: Host | None = None, post_transform: str = "NONE",
    call: Call,
) -> tuple[Host, Tensor]:  # fmt: skip
    """The label of the best score and the scores; of two classes the weights may be those of one."""
    splits = nodes_values if nodes_values_as_tensor is None else nodes_values_as_tensor
    forest, places = _named_forest(
        nodes_treeids, nodes_nodeids, nodes_featureids, nodes_modes, splits, nodes_falsenodeids, nodes_truenodeids,
        nodes_missing_value_tracks_true,
    )  # fmt: skip
    labels: Any = classlabels_strings if classlabels_int64s is None else classlabels_int64s
    weights = class_weights if class_weights_as_tensor is None else class_weights_as_tensor
    given = _contributions(places, class_treeids, class_nodeids, class_ids, weights)
    single = len(labels) == 2 and set(class_ids) == {0}
    scores = forest.scores(x, given, 1 if single else len(labels), _SUM)
    base = base_values if base_values_as_tensor is None else base_values_as_tensor
    scores = scores if base is None else scores + numpy.array(base)
    if single:
        likely = bool((given[2] >= 0).all())
        best = (scores[:, 0] > (0.5 if likely else 0.0)).astype("int64")
        made = numpy.concatenate([1 - scores if likely else -scores, scores], 1)
    else:
        best, made = scores.argmax(1), scores
    kind: Any = object if classlabels_int64s is None else "int64"
    return numpy.array(labels, kind)[best], finished(call.lift(made.astype("float32")), post_transform)


@onnx_op("ZipMap", domain=DOMAIN)
def zip_map(
    x: Host, *, classlabels_int64s: list[int] | None = None, classlabels_strings: list[str] | None = None
) -> list[Any]:
    """A dictionary of the scores by label, for each row."""
    labels: Any = classlabels_strings if classlabels_int64s is None else classlabels_int64s
    return [dict(zip(labels, row, strict=True)) for row in (x if x.ndim > 1 else x[None]).tolist()]
