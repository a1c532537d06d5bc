"""Forests against a walk of one row and one tree at a time."""

import numpy
import pytest

from lazulite import FormatError
from lazulite.formats.onnx import OnnxRunner
from support.onnx_models import graph, message, model, node

DOMAIN = "ai.onnx.ml"
TESTS = {
    "BRANCH_LEQ": lambda v, s: v <= s, "BRANCH_LT": lambda v, s: v < s, "BRANCH_GTE": lambda v, s: v >= s,
    "BRANCH_GT": lambda v, s: v > s, "BRANCH_EQ": lambda v, s: v == s, "BRANCH_NEQ": lambda v, s: v != s,
}  # fmt: skip


def forest(rng, trees=3, depth=3, features=4):
    """Full trees with random tests, as the lists of the first versions."""
    count = 2 ** (depth + 1) - 1
    nodes = [(tree, number, 2 * number + 1 >= count) for tree in range(trees) for number in range(count)]
    modes = ["LEAF" if leaf else str(rng.choice(list(TESTS))) for _, _, leaf in nodes]
    lists = {
        "nodes_treeids": [tree for tree, _, _ in nodes], "nodes_nodeids": [number for _, number, _ in nodes],
        "nodes_featureids": [int(rng.integers(features)) for _ in nodes],
        "nodes_values": [float(rng.integers(-2, 3)) for _ in nodes],
        "nodes_truenodeids": [0 if leaf else 2 * number + 1 for _, number, leaf in nodes],
        "nodes_falsenodeids": [0 if leaf else 2 * number + 2 for _, number, leaf in nodes],
        "nodes_missing_value_tracks_true": [int(rng.integers(2)) for _ in nodes],
    }  # fmt: skip
    leaves = [(tree, number) for tree, number, leaf in nodes if leaf]
    return lists, modes, leaves, count


def walked(lists, modes, count, row, tree):
    """The leaf that a row reaches in a tree."""
    number = 0
    while modes[tree * count + number] != "LEAF":
        at = tree * count + number
        value = row[lists["nodes_featureids"][at]]
        holds = TESTS[modes[at]](value, lists["nodes_values"][at])
        holds = holds or (numpy.isnan(value) and lists["nodes_missing_value_tracks_true"][at])
        number = lists["nodes_truenodeids" if holds else "nodes_falsenodeids"][at]
    return tree, number


def run(op, x, modes, texts=(), outputs="y", **attributes):
    made = node(op, "x", outputs, domain=DOMAIN, **attributes)
    made += message(f5=[message(f1=name, f9=list(values), f20=8) for name, values in (("nodes_modes", modes), *texts)])
    return OnnxRunner(model(graph([made], "x", outputs), **{DOMAIN: 3}))({"x": x})


@pytest.fixture
def rows():
    rows = numpy.random.default_rng(1).integers(-3, 4, (30, 4)).astype("float32")
    rows[::7, 2] = numpy.nan
    return rows


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_a_regressor_brings_the_leaves_of_all_trees_together(rows, how):
    rng = numpy.random.default_rng(2)
    lists, modes, leaves, count = forest(rng)
    weights = {leaf: float(rng.integers(-8, 9)) for leaf in leaves}
    found = run(
        "TreeEnsembleRegressor", rows, modes, target_treeids=[t for t, _ in leaves],
        target_nodeids=[n for _, n in leaves],
        target_ids=[0] * len(leaves), target_weights=list(weights.values()), aggregate_function=how, **lists,
    )["y"].tolist()  # fmt: skip
    combine = {"SUM": sum, "AVERAGE": lambda v: sum(v) / 3, "MIN": min, "MAX": max}[how]
    expected = [combine([weights[walked(lists, modes, count, row, tree)] for tree in range(3)]) for row in rows]

    numpy.testing.assert_allclose(expected, [row[0] for row in found], rtol=1e-6)


def test_a_classifier_gives_the_label_of_the_best_score(rows):
    rng = numpy.random.default_rng(3)
    lists, modes, leaves, count = forest(rng)
    ids = [int(rng.integers(3)) for _ in leaves]
    results = run(
        "TreeEnsembleClassifier", rows, modes, [("classlabels_strings", ["a", "b", "c"])], "label scores",
        class_treeids=[t for t, _ in leaves], class_nodeids=[n for _, n in leaves], class_ids=ids,
        class_weights=[1.0] * len(leaves), **lists,
    )  # fmt: skip
    kinds = dict(zip(leaves, ids, strict=True))
    votes = [[kinds[walked(lists, modes, count, row, tree)] for tree in range(3)] for row in rows]
    expected = numpy.array([[vote.count(kind) for kind in range(3)] for vote in votes])

    assert expected.tolist() == results["scores"].tolist()
    assert ["abc"[kind] for kind in expected.argmax(1)] == results["label"].tolist()


def test_a_tree_that_leads_back_is_refused(rows):
    lists, modes, _, _ = forest(numpy.random.default_rng(4), trees=1, depth=1)
    lists["nodes_truenodeids"][0] = lists["nodes_falsenodeids"][0] = 0
    with pytest.raises(FormatError, match="leads back"):
        run(
            "TreeEnsembleRegressor", rows, modes, target_treeids=[0], target_nodeids=[1], target_ids=[0],
            target_weights=[1.0], **lists,
        )  # fmt: skip
    with pytest.raises(FormatError, match="too many"):
        run(
            "TreeEnsembleRegressor", rows, modes, target_treeids=[0], target_nodeids=[1], target_ids=[0],
            target_weights=[1.0], n_targets=1 << 40, **lists,
        )  # fmt: skip
