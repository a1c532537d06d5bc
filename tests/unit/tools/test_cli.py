import os
import subprocess
import sys

import pytest

from lazulite.base.errors import DeviceError
from lazulite.ir.target import target
from lazulite.runtime.devices import cpu
from lazulite.tools import cli


def command(*arguments, **variables):
    """The program in a process of its own."""
    program = [sys.executable, "-m", "lazulite", *arguments]
    return subprocess.run(program, check=False, capture_output=True, text=True, env=os.environ | variables)


def test_devices_lists_each_with_its_state(capsys):
    assert 0 == cli.main(["devices"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {line[0] for line in lines} >= {"CPU", "PYTHON", "NULL"}
    assert all(line[1] == "works" for line in lines)


def test_a_device_that_does_not_work_says_why_on_its_line(monkeypatch, capsys):
    from lazulite.runtime import registry

    monkeypatch.setattr(registry.Registry, "problem", lambda self, name: "open: no driver\n\n  details")
    assert 0 == cli.main(["devices"])
    assert "CPU      does not work   open: no driver" in capsys.readouterr().out


def test_doctor_prints_what_a_report_needs(capsys):
    assert 0 == cli.main(["doctor"])
    text = capsys.readouterr().out
    assert all(f"\n{title}\n" in f"\n{text}" for title in ("versions", "machine", "devices", "cache", "settings"))
    assert "CACHE_DIR" in text and "llvmlite" in text and "matrix units" in text


def test_doctor_tells_what_matrix_units_multiply(monkeypatch, capsys):
    monkeypatch.setattr(cpu, "host", lambda *settings: target("CPU:LLVM", ("amx-tile", "amx-bf16")))
    assert 0 == cli.main(["doctor"])
    assert "bfloat16 x bfloat16 to float32, 16x16x32" in capsys.readouterr().out


def test_a_user_error_is_told_on_stderr_with_exit_code_1(monkeypatch, capsys):
    def fail(options):
        raise DeviceError("Device", "there is no device CPUU", hint="CPU")

    monkeypatch.setitem(cli.COMMANDS, "devices", fail)
    assert 1 == cli.main(["devices"])
    out, err = capsys.readouterr()
    assert "" == out and err.startswith("lazulite devices: Device: there is no device CPUU") and "Try: CPU" in err


def test_a_file_that_cannot_be_written_is_a_user_error(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(cli.COMMANDS, "demo", lambda options: open(options.picture, "wb"))  # noqa: SIM115
    assert 1 == cli.main(["demo", "--picture", str(tmp_path / "missing" / "demo.png")])
    assert "No such file or directory" in capsys.readouterr().err


def test_a_missing_package_is_named_with_the_way_to_get_it(monkeypatch, capsys):
    def fail(options):
        raise ModuleNotFoundError("no", name="tqdm")

    monkeypatch.setitem(cli.COMMANDS, "demo", fail)
    assert 1 == cli.main(["demo"])
    assert "the package tqdm is not installed; pip install 'lazulite[demo]'" in capsys.readouterr().err


def test_an_interrupt_ends_without_a_traceback(monkeypatch, capsys):
    def fail(options):
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.COMMANDS, "demo", fail)
    assert 130 == cli.main(["demo"])
    assert "lazulite demo: interrupted\n" == capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["dance"], ["demo", "--seed", "x"], ["devices", "more"]])
def test_a_command_line_that_makes_no_sense_ends_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert 2 == caught.value.code
    assert "usage: lazulite" in capsys.readouterr().err


def test_the_program_runs_as_a_module():
    result = command("devices")
    assert (0, "") == (result.returncode, result.stderr)


@pytest.mark.parametrize("name", ["devices", "doctor"])
def test_a_misspelt_setting_in_the_environment_is_a_user_error(name):
    result = command(name, LAZULITE_FUZE="0")
    assert 1 == result.returncode
    assert "Try: LAZULITE_FUSE" in result.stderr and "Traceback" not in result.stderr
