import gc
import pickle
import sys
import time
import weakref

from lazulite.base import origin
from lazulite.base.origin import Origin, user_frame


def inside(body, name="layer.py", **names):
    """A function `f` compiled as if it stood in a file of the package."""
    space = {"user_frame": user_frame, "__name__": "lazulite.fake", **names}
    exec(compile(body, origin._PACKAGE + name, "exec"), space)
    return space["f"]


FRONT = inside("def helper():\n    return user_frame()\ndef f(*args, **kwargs):\n    return helper()\n")


def line_here():
    return sys._getframe(1).f_lineno


def test_it_is_the_first_line_outside_the_package():
    found, line = FRONT(), line_here()
    assert (found.file, found.line) == (__file__, line)
    assert "test_it_is_the_first_line_outside_the_package" == found.function
    assert "found, line = FRONT(), line_here()" == found.text


def test_it_knows_the_public_function_that_was_called_not_the_helpers_below():
    assert "f" == FRONT().made_by


def test_a_statement_over_several_lines_gives_the_line_of_the_call():
    begin = line_here()
    found = [
        None,
        FRONT(),
    ]  # fmt: skip
    assert found[1].line == begin + 3


def test_the_standard_library_between_us_and_the_user_is_walked_past():
    from concurrent.futures import Executor

    class Now(Executor):
        def submit(self, fn, /, *args, **kwargs):
            return fn(*args, **kwargs)

    import contextlib

    with contextlib.ExitStack() as stack:
        found = []
        stack.callback(lambda: found.append(FRONT()))
    assert found[0].file == __file__
    assert Now().submit(FRONT).file == __file__


def test_a_thread_of_the_package_has_no_line_of_the_user():
    import threading

    found = []
    run = inside("def f():\n    found.append(user_frame())\n", found=found)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert [None] == found


def test_a_program_in_tools_counts_as_a_user():
    tool = inside("def f():\n    return front()\n", name="tools/demo.py", front=FRONT)
    assert tool().file.endswith("tools/demo.py")


def test_typed_in_code_is_the_users_and_generated_code_belongs_to_its_module():
    body = "def f():\n    return front()\n"
    typed, generated = {"front": FRONT, "__name__": "__main__"}, {"front": FRONT, "__name__": "lazulite.nn.state"}
    exec(compile(body, "<string>", "exec"), typed)
    exec(compile(body, "<string>", "exec"), generated)
    assert "<string>" == typed["f"]().file
    assert generated["f"]().file == __file__


def test_it_keeps_no_local_variable_alive():
    class Big:
        pass

    def user():
        big = Big()
        return weakref.ref(big), FRONT()

    alive, found = user()
    gc.collect()
    assert alive() is None and found.line > 0


def test_it_pickles_as_its_facts():
    found = FRONT()
    assert pickle.loads(pickle.dumps(found)) == found


def test_methods_are_named_as_users_write_them():
    names = ["Tensor.relu", "Tensor.__add__", "Tensor.__rsub__", "Tensor.__rshift__", "Tensor.__getitem__", "rand"]
    assert ["relu", "+", "-", ">>", "[]", "rand"] == [Origin.at("x.py", 1, "", name).made_by for name in names]


def test_a_place_is_short_below_the_working_directory(here):
    assert "model.py:17" == Origin.at(str(here / "model.py"), 17).place
    assert "/elsewhere/model.py:17" == Origin.at("/elsewhere/model.py", 17).place


def test_taking_one_is_cheap():
    def cost():
        begin = time.process_time()
        for _ in range(10_000):
            FRONT()
        return (time.process_time() - begin) / 10_000

    assert min(cost() for _ in range(5)) < 4e-6  # 1 us where this was written
