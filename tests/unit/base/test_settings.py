import asyncio
import contextvars
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.base.errors import SettingError
from lazulite.base.settings import DECLARED, SETTINGS, Context, Settings, read_environment


def test_a_value_is_the_declared_one_where_nobody_says_otherwise():
    assert read_environment({}) == {name: setting.default for name, setting in DECLARED.items()}


def test_the_environment_sets_a_value_with_the_prefix():
    assert 3 == read_environment({"LAZULITE_THREADS": "3"})["THREADS"]


@pytest.mark.parametrize("name", ["DEV", "DEBUG", "BEAM"])
def test_only_three_settings_are_read_without_the_prefix(name, monkeypatch):
    monkeypatch.setattr(DECLARED[name], "notyet", False)
    assert ["DEV", "DEBUG", "BEAM"] == [s.name for s in DECLARED.values() if s.unprefixed]
    assert read_environment({name: "2"})[name] in (2, "2")
    assert 1 == read_environment({"FUSE": "0"})["FUSE"]


def test_the_prefixed_variable_is_the_stronger_one():
    assert 4 == read_environment({"DEBUG": "1", "LAZULITE_DEBUG": "4"})["DEBUG"]
    assert 4 == read_environment({"DEBUG": "of another program", "LAZULITE_DEBUG": "4"})["DEBUG"]


def test_an_empty_variable_is_as_good_as_none():
    assert read_environment({"LAZULITE_FUSE": "", "DEBUG": ""}) == read_environment({})


def test_an_unknown_variable_raises_with_the_nearest_name():
    with pytest.raises(SettingError, match="LAZULITE_FUZE") as caught:
        read_environment({"LAZULITE_FUZE": "0"})
    assert "Try: LAZULITE_FUSE" in str(caught.value)


def test_an_unknown_name_in_a_context_raises_with_the_nearest_name():
    with pytest.raises(SettingError, match="no setting DEBGU") as caught:
        Context(DEBGU=2)
    assert "Try: DEBUG" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEBUG", "loud"), ("DEBUG", 6), ("DEBUG", -1), ("DEBUG", 1.5), ("DEBUG", None), ("FUSE", 2), ("THREADS", -1),
        ("DEV", 3), ("CHECK", "nan,everything"), ("CHECK", 1), ("CACHE_DIR", 7), ("RULES", "algebra"), ("RULES", 1),
        ("CPU_FEATURES", "avx2"), ("CPU_FEATURES", "-avx2,-"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_raises_and_says_what_is_taken(name, value):
    with pytest.raises(SettingError, match=f"{name} takes") as caught:
        Context(**{name: value})
    assert DECLARED[name].kind.name in str(caught.value)


def test_a_wrong_value_in_the_environment_names_the_variable():
    with pytest.raises(SettingError, match="LAZULITE_THREADS: THREADS takes an integer from 0"):
        read_environment({"LAZULITE_THREADS": "many"})


def test_paths_and_booleans_are_taken_as_what_they_mean(tmp_path):
    with Context(CACHE_DIR=tmp_path, FUSE=False):
        assert str(tmp_path) == SETTINGS.CACHE_DIR
        assert 0 == SETTINGS.FUSE and type(SETTINGS.FUSE) is int


def test_a_context_ends_with_its_block_also_when_that_raises():
    before = SETTINGS.DEBUG
    with pytest.raises(KeyError), Context(DEBUG=3):
        raise KeyError
    assert before == SETTINGS.DEBUG


def test_the_decorator_is_reentrant_in_recursion():
    """A47: each level sees the value, and each exit restores what its own entry found."""
    seen = []

    @Context(DEBUG=2)
    def descend(depth):
        seen.append(SETTINGS.DEBUG)
        with Context(DEBUG=5):
            if depth:
                descend(depth - 1)
            seen.append(SETTINGS.DEBUG)
        seen.append(SETTINGS.DEBUG)

    with Context(DEBUG=1):
        descend(3)
        assert 1 == SETTINGS.DEBUG
    assert [2] * 4 + [5, 2] * 4 == seen


def test_one_object_may_be_entered_again_before_it_is_left():
    """A47 for the block form."""
    twice = Context(DEBUG=4)
    with Context(DEBUG=1):
        with twice:
            with Context(DEBUG=2), twice:
                assert 4 == SETTINGS.DEBUG
            assert 4 == SETTINGS.DEBUG
        assert 1 == SETTINGS.DEBUG


@given(st.recursive(st.lists(st.integers(0, 5), max_size=3), lambda inner: st.lists(inner, max_size=3), max_leaves=12))
def test_any_nesting_restores_what_was_there(plan):
    contexts = [Context(DEBUG=level) for level in range(6)]

    def walk(part):
        before = SETTINGS.DEBUG
        if isinstance(part, int):
            with contexts[part]:
                assert part == SETTINGS.DEBUG
        else:
            for inner in part:
                with contexts[len(part)]:
                    walk(inner)
        assert before == SETTINGS.DEBUG

    walk(plan)


def test_a_decorated_coroutine_keeps_its_settings_while_others_run():
    @Context(DEBUG=3)
    async def patient():
        await asyncio.sleep(0)
        return SETTINGS.DEBUG

    async def other():
        return SETTINGS.DEBUG

    async def both():
        return await asyncio.gather(patient(), other())

    with Context(DEBUG=1):
        assert [3, 1] == asyncio.run(both())


def test_a_generator_cannot_be_decorated():
    with pytest.raises(SettingError, match="generator"):

        @Context(DEBUG=1)
        def values():
            yield SETTINGS.DEBUG


def test_a_thread_has_its_own_settings_unless_it_is_given_those_of_another():
    seen = []

    def look():
        seen.append(SETTINGS.DEBUG)

    plain = SETTINGS.DEBUG
    with Context(DEBUG=5):
        copied = contextvars.copy_context()
        for target in (look, lambda: copied.run(look)):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
    assert seen == [plain, 5]


def test_a_setting_cannot_be_assigned():
    with pytest.raises(SettingError, match="cannot be set") as caught:
        SETTINGS.DEBUG = 2
    assert "with Context(DEBUG=2)" in str(caught.value)


def test_the_key_changes_with_what_is_compiled_and_with_nothing_else(monkeypatch):
    key = SETTINGS.key
    for name, setting in DECLARED.items():
        monkeypatch.setattr(setting, "notyet", False)
        text = {"CHECK": "nan", "ALL_REDUCE": "ring"}.get(name, "-x")
        other = 1 - int(bool(setting.default)) if isinstance(setting.default, int) else text
        with Context(**{name: other}):
            assert (SETTINGS.key != key) == setting.keyed, name
    assert SETTINGS.key == key


def test_the_selection_changes_with_what_may_need_another_program_in_this_process():
    selection = SETTINGS.selection
    for changes in ({"THREADS": 3}, {"SHOW": "lower.linear"}, {"STOP": "lower.linear"}, {"FUSE": 0}):
        with Context(**changes):
            assert SETTINGS.selection != selection
    with Context(DEBUG=1, CACHE=0):
        assert SETTINGS.selection == selection


@pytest.mark.parametrize("name", [name for name, setting in DECLARED.items() if setting.notyet])
def test_what_has_no_effect_yet_is_refused_instead_of_ignored(name):
    setting = DECLARED[name]
    Context(**{name: setting.default})
    with pytest.raises(SettingError, match=f"{name} has no effect yet"):
        Context(**{name: "nan" if name == "CHECK" else 1 if setting.default == 0 else "x"})


def test_every_setting_tells_what_it_does():
    assert all(setting.help.endswith(".") and setting.kind.name for setting in DECLARED.values())
    assert "DEBUG" == Settings.DEBUG.name


def test_reading_a_setting_is_cheap():
    def cost():
        begin = time.process_time()
        for _ in range(10_000):
            SETTINGS.DEBUG  # noqa: B018
        return (time.process_time() - begin) / 10_000

    assert min(cost() for _ in range(5)) < 1e-6  # 0.15 us where this was written
