"""What a survey finds, and what it notices."""

import dataclasses
import sys
from functools import partial, wraps
from types import SimpleNamespace

import pytest

from lazulite import Tensor
from lazulite.engine.environment import MISSING, survey

WEIGHT, NUMBER = Tensor([1]), 3


class Settings:
    scale = Tensor([2])


class Slotted:
    __slots__ = ("inner", "missing")

    def __init__(self, inner):
        self.inner = inner


class Model:
    def __init__(self):
        self.weight, self.name, self.layers = Tensor([3]), "m", [Slotted(Tensor([4])), (Tensor([5]), 6.5)]

    def forward(self):
        return WEIGHT


def helper():
    return WEIGHT * NUMBER


def uses_globals():
    return helper() + Settings.scale + sys.maxsize


def found(root):
    seen = survey(Tensor, [("root", root)])
    return sorted(seen.paths), seen.numbers


def test_containers_objects_and_slots_are_walked_with_readable_paths():
    paths, numbers = found(Model())
    assert ["WEIGHT", "root.layers[0].inner", "root.layers[1][0]", "root.weight"] == paths
    assert [6.5] == numbers
    assert (["root['a'][0]"], [1, 2]) == found({"a": [Tensor([1])], "b": 1, "c": SimpleNamespace(n=2)})


def test_functions_lead_to_closures_defaults_and_the_globals_that_they_name():
    inner = Tensor([7])

    def closed(x=WEIGHT):
        return inner + x

    assert ["inner", "root"] == found(closed)[0]
    assert (["Settings.scale", "WEIGHT"], [NUMBER]) == found(uses_globals)
    assert ["inner"] == found(partial(lambda n: inner, 3))[0]
    assert "root.__self__.weight" in found(Model().forward)[0]

    @wraps(closed)
    def wrapper(*args):
        return None

    assert "inner" in found(wrapper)[0]


def test_a_name_that_is_not_assigned_yet_is_no_obstacle():
    def early():
        return later

    assert [] == found(early)[0]
    later = Tensor([1])
    assert ["later"] == found(early)[0]


def test_cycles_end():
    model = Model()
    model.layers.append(model)
    assert 4 == len(found(model)[0])


def test_equal_structures_have_equal_keys_whatever_tensors_and_numbers_they_hold():
    first, second, other = Model(), Model(), Model()
    second.layers[1] = (Tensor([50, 60]), 70.5)
    other.name = "n"
    keys = [survey(Tensor, [("root", model)]).key for model in (first, second, other)]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda m: setattr(m, "weight", Tensor([9])), "root.weight"),
        (lambda m: m.layers.append(1), "root.layers[2]"),
        (lambda m: setattr(m.layers[0], "inner", None), "root.layers[0].inner"),
        (lambda m: setattr(m, "added", 1), "root.added"),
        (lambda m: delattr(m, "name"), "root.name"),
    ],
)
def test_whatever_is_put_in_the_place_of_something_is_noticed(change, path):
    model = Model()
    seen = survey(Tensor, [("root", model)])
    assert seen.unchanged()
    change(model)
    assert not seen.unchanged()
    assert [path] == [change.path for change in seen.changes()]


def test_a_global_and_a_closure_are_watched_and_can_be_put_back(monkeypatch):
    inner = Tensor([7])

    def closed():
        return inner, WEIGHT

    seen = survey(Tensor, [("root", closed)])
    before, inner = inner, Tensor([8])
    monkeypatch.setattr(sys.modules[__name__], "WEIGHT", Tensor([9]))
    changes = {change.path: change for change in seen.changes()}
    assert {"inner", "WEIGHT"} == set(changes)
    seen.parts[changes["inner"].part].put(changes["inner"].place, before)
    assert inner is before


def test_a_place_that_is_gone_is_told():
    table = {"a": 1}
    seen = survey(Tensor, [("root", table)])
    del table["a"]
    assert [MISSING] == [change.value for change in seen.changes()]


def test_what_may_change_without_a_trace_is_named():
    assert survey(Tensor, [("root", {"buffer": bytearray(3)})]).opaque == "root['buffer']"
    assert survey(Tensor, [("root", Model())]).opaque == ""


def test_what_another_survey_has_is_left_out():
    model = Model()
    whole = survey(Tensor, [("model", model)])
    beside = survey(Tensor, [("pair", [model, Tensor([1])])], whole)
    assert ["pair[1]"] == beside.paths


def test_frozen_dataclasses_are_walked_like_tuples_and_not_watched() -> None:
    @dataclasses.dataclass(frozen=True)
    class Pair:
        left: Tensor
        number: int

    pair = Pair(Tensor([1.0]), 3)
    found = survey(Tensor, [("pair", pair)])

    assert [pair.left] == found.tensors and [3] == found.numbers and ["pair.left"] == found.paths
    assert not [part for part in found.parts if part.path == "pair"]
    assert found.key == survey(Tensor, [("pair", dataclasses.replace(pair, number=4))]).key
