"""Programs on disk, forks, and Ctrl-C: what other processes and signals may rely on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import lazulite
from lazulite import Context, GlobalCounters, Tensor

STEP = """
    import json, os, sys
    from lazulite import Context, GlobalCounters, Tensor, nn

    rate, seed, scale = float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    Tensor.manual_seed(seed)
    layers = [nn.Linear(784, 128), nn.Linear(128, 10)]
    x = Tensor.rand(64, 784) * scale
    y = Tensor.randint(64, low=0, high=10)
    optimiser = nn.optim.SGD(nn.state.get_parameters(layers), lr=rate)
    with Tensor.train():
        for step in range(2):
            optimiser.zero_grad()
            loss = layers[1](layers[0](x).relu()).sparse_categorical_crossentropy(y)
            loss.backward()
            optimiser.step()
    value = loss.item()
    print(json.dumps({"loss": value, "compiled": GlobalCounters.programs_compiled,
                      "scheduled": GlobalCounters.schedules_built, "kernels": GlobalCounters.kernel_count,
                      "llvmlite": "llvmlite" in sys.modules, "scheduler": "lazulite.schedule.build" in sys.modules}))
"""


def run(program: str, *arguments: object, cache: Path, **environment: str) -> dict[str, Any]:
    """What a program prints in a process of its own, with a cache of its own."""
    source = str(Path(lazulite.__file__).parents[1])
    settings = {"LAZULITE_CACHE_DIR": str(cache), "LAZULITE_VERIFY": "0", "PYTHONPATH": source, **environment}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        env=os.environ | settings, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache directory in which the training step has run once."""
    folder = tmp_path_factory.mktemp("cache")
    first = run(STEP, 0.1, 1, 1.5, cache=folder)
    assert first["compiled"] > 0 and first["scheduled"] > 0 and first["llvmlite"]
    return folder


def test_a_second_process_compiles_and_schedules_nothing(cache: Path) -> None:
    second = run(STEP, 0.1, 1, 1.5, cache=cache)
    third = run(STEP, 0.1, 1, 1.5, cache=cache, LAZULITE_CACHE="0")
    facts = {name: second[name] for name in ("compiled", "scheduled", "llvmlite", "scheduler")}
    assert {"compiled": 0, "scheduled": 0, "llvmlite": False, "scheduler": False} == facts
    assert third["compiled"] > 0 and third["loss"] == second["loss"]


@pytest.mark.parametrize("arguments", [(0.03, 1, 1.5), (0.1, 77, 1.5), (0.1, 1, 2.5)], ids=["rate", "seed", "data"])
def test_another_learning_rate_seed_or_scale_compiles_nothing(cache: Path, arguments: tuple[float, int, float]) -> None:
    facts = run(STEP, *arguments, cache=cache)
    assert (0, 0, False) == (facts["compiled"], facts["scheduled"], facts["llvmlite"])


def test_a_damaged_cache_is_as_good_as_none(cache: Path, tmp_path: Path) -> None:
    entries = [path for path in cache.rglob("*") if path.is_file()]
    assert entries
    for path in entries:
        copy = tmp_path / path.relative_to(cache)
        copy.parent.mkdir(parents=True, exist_ok=True)
        data = path.read_bytes()
        copy.write_bytes(data[: len(data) // 2])
    whole, damaged = run(STEP, 0.1, 1, 1.5, cache=cache), run(STEP, 0.1, 1, 1.5, cache=tmp_path)
    assert damaged["loss"] == whole["loss"]


# --- within one process ------------------------------------------------------------------------


def _train(rate: float, seed: int) -> float:
    Tensor.manual_seed(seed)
    w = Tensor.randn(16, 4)
    x, y = Tensor.rand(8, 16), Tensor.rand(8, 4)
    loss = (x @ w - y).square().mean()
    (gradient,) = loss.gradient(w)
    w.assign(w - gradient * rate)
    w.realize(loss)
    return float(loss.item())


def test_other_numbers_run_the_programs_of_the_first_step() -> None:
    """A48: seeds and learning rates are arguments of a program."""
    with Context(CACHE=0):
        losses = [_train(0.1, 1)]
        before = GlobalCounters.programs_compiled, GlobalCounters.schedules_built
        losses += [_train(rate, seed) for rate, seed in [(0.37, 1), (0.1, 2), (0.02, 2**40 + 3)]]
    assert before == (GlobalCounters.programs_compiled, GlobalCounters.schedules_built)
    assert losses[0] == losses[1] and len(set(losses)) == 3


# --- fork --------------------------------------------------------------------------------------

FORK = """
    import json, os
    from lazulite import GlobalCounters, Tensor

    def work(rows):
        x = Tensor.rand(rows, 256)
        return float((x @ x.T).sum().item() + (x * 2).relu().sum().item())

    before = work(512)                     # worker threads exist now
    held = Tensor([1.0, 2.0, 3.0]) * 2
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            result = {"known": work(512) > 0, "new": work(384) > 0, "held": held.tolist()}
        except BaseException as error:
            result = {"error": repr(error)}
        os.write(write, json.dumps(result).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = json.loads(pipe.read() or '{"error": "the child died"}')
    status = os.waitpid(child, 0)[1]
    print(json.dumps({"answer": answer, "status": status, "parent": work(512) > 0 and held.tolist()}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="notimpl: this system does not fork")
def test_a_forked_child_computes_and_so_does_its_parent(tmp_path: Path) -> None:
    facts = run(FORK, cache=tmp_path)
    assert {"known": True, "new": True, "held": [2.0, 4.0, 6.0]} == facts["answer"]
    assert (0, [2.0, 4.0, 6.0]) == (facts["status"], facts["parent"])


# --- Ctrl-C ------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="notimpl: this system has no interval timers")
def test_an_interrupt_leaves_the_engine_usable_and_tensors_whole() -> None:
    """The counter and its mirror are written by one realize: they are always equal, however often it is interrupted."""
    counter, mirror = Tensor.zeros(4096).clone().realize(), Tensor.zeros(4096).clone().realize()
    done = interrupted = 0
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    on_alarm = signal.signal(signal.SIGALRM, _interrupt)
    try:
        while interrupted < 12:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0007 * (1 + interrupted))
                while True:
                    counter.assign(counter + 1)
                    mirror.assign(mirror + 1)
                    counter.realize(mirror)
                    done += 1
            except KeyboardInterrupt:
                interrupted += 1
            _make_equal(counter, mirror)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGINT, previous)
        signal.signal(signal.SIGALRM, on_alarm)
    values = counter.tolist()
    assert values == mirror.tolist() and len(set(values)) == 1
    assert done <= values[0] <= done + interrupted
    assert 8 == (Tensor([3]) + 5).item()


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Ctrl-C, but not inside a finalizer, where Python would print and forget it."""
    around = frame
    while around is not None:
        if around.f_code.co_name in {"remove", "_forget", "__del__"}:
            signal.setitimer(signal.ITIMER_REAL, 0.0001)
            return
        around = around.f_back
    os.kill(os.getpid(), signal.SIGINT)


def _make_equal(counter: Tensor, mirror: Tensor) -> None:
    """An interrupt between the two assignments, or between them and the realize, leaves one or both pending."""
    one, two = counter.numpy(), mirror.numpy()
    assert len(set(one.tolist())) == len(set(two.tolist())) == 1
    assert one[0] - two[0] in (0, 1)
    if one[0] != two[0]:
        mirror.assign(mirror + 1)
        mirror.realize()
