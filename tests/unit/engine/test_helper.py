"""The helper thread: results and errors arrive, order is kept, and nothing outlives the statement."""

from __future__ import annotations

import sys
import threading

import pytest

from lazulite.engine.helper import Helper


def test_results_arrive_and_work_is_done_in_order() -> None:
    done: list[int] = []
    with Helper() as helper:
        results = [helper.submit(lambda number=number: done.append(number) or number * 2) for number in range(9)]
        found = [result() for result in reversed(results)]

    assert ([16, 14, 12, 10, 8, 6, 4, 2, 0], list(range(9))) == (found, done)


def test_work_runs_beside_the_caller() -> None:
    begun = threading.Event()
    with Helper() as helper:
        result = helper.submit(lambda: begun.wait(60) and threading.get_ident())
        begun.set()

        assert threading.get_ident() != result()


def test_an_error_is_raised_where_the_result_is_asked_for() -> None:
    with Helper() as helper:
        result, other = helper.submit(lambda: 1 // 0), helper.submit(lambda: 3)
        assert 3 == other()
        with pytest.raises(ZeroDivisionError):
            result()


def test_what_was_not_begun_at_the_end_is_not_done() -> None:
    done, go = list[int](), threading.Event()
    with pytest.raises(KeyError), Helper() as helper:
        helper.submit(lambda: go.wait(60))
        helper.submit(lambda: done.append(1))
        threading.Timer(0.05, go.set).start()
        raise KeyError

    assert [] == done


def test_no_thread_and_no_setting_is_left() -> None:
    threads, turn = threading.active_count(), sys.getswitchinterval()
    with Helper():
        assert threading.active_count() == threads
    with Helper() as helper:
        helper.submit(lambda: None)

    assert (threads, turn) == (threading.active_count(), sys.getswitchinterval())
