"""`lazulite explain script.py`: run a program and tell what each of its realizes did, and why.

What the program prints goes to stderr, so that stdout holds the explanation alone.  What ran before
a program failed is explained too.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence

from lazulite.base.errors import nearest
from lazulite.base.terminal import columns, duration
from lazulite.engine.explain import STAGES, KernelReport, Recorder
from lazulite.engine.explain_text import explanation_text, expression, kernel_text
from lazulite.rewrite.trace import Fired, Trace
from lazulite.simplify.normal import SIMPLIFY
from lazulite.tools.script import refusal, run_script

_MOST_EVENTS = 200


def explain(options: argparse.Namespace) -> None:
    """Run a program and tell what each of its realizes does, and why."""
    if options.stage and options.stage not in STAGES:
        hint = nearest(options.stage, STAGES)
        raise refusal("--stage", f"there is no stage {options.stage}", f"The stages are {', '.join(STAGES)}.", hint)
    with Recorder() as recorder:
        failure = run_script(options.script, options.arguments)
    kernels = [kernel for explanation in recorder.explanations for kernel in explanation.kernels]
    chosen = _chosen(kernels, options.kernel)
    if options.stage:
        for number in chosen:
            kernel = kernels[number]
            print(f"--- kernel {number}: {kernel.name}, after {options.stage}\n{kernel.stage(options.stage)}\n")
    elif options.rules:
        _print_rules([explanation.rules for explanation in recorder.explanations])
    elif options.kernel is not None:
        print(f"kernel {options.kernel}  {kernel_text(kernels[options.kernel])}")
    else:
        _print_all(recorder)
    if failure is not None:
        raise refusal("script", failure)


def _chosen(kernels: Sequence[KernelReport], number: int | None) -> list[int]:
    if number is None:
        return list(range(len(kernels)))
    if not 0 <= number < len(kernels):
        raise refusal(
            "--kernel", f"there is no kernel {number}", f"The program ran {len(kernels)} different kernels, from 0."
        )
    return [number]


# --- telling ---------------------------------------------------------------------------------------


def _print_all(recorder: Recorder) -> None:
    first = 0
    if not recorder.explanations:
        print("The program computed nothing: no tensor was realized.")
    for explanation, count in zip(recorder.explanations, recorder.counts, strict=True):
        times = "once" if count == 1 else f"{count} times"
        asked = explanation.asked
        place = "" if asked is None else f", first asked for at {asked.place}   {asked.text}"
        print(f"=== realized {times}{place}\n\n{explanation_text(explanation, first)}\n")
        first += len(explanation.kernels)


def _events(trace: Trace) -> Iterator[str]:
    """One line for each time that a rule fired or declined."""
    for event in trace.events[:_MOST_EVENTS]:
        if isinstance(event, Fired):
            yield f"  {event.rule}: {expression(event.before)}  ->  {expression(event.after)}"
        else:
            yield f"  {event.rule} declined {expression(event.before)}: {event.reason}"
    if len(trace.events) > _MOST_EVENTS:
        yield f"  and {len(trace.events) - _MOST_EVENTS} more"


def _print_rules(traces: Sequence[Trace]) -> None:
    """How often each rule fired and declined and how long it took, those that never fired, then one by one."""
    fired: Counter[str] = sum((trace.fire_counts for trace in traces), Counter())
    declined: Counter[str] = sum((trace.decline_counts for trace in traces), Counter())
    rows = [("rule", "fired", "declined", "time")]
    for name, _ in (fired + declined).most_common():
        spent = sum(trace.seconds.get(name, 0.0) for trace in traces)
        rows.append((name, str(fired[name]), str(declined[name]), duration(spent)))
    dead = sorted(rule.name for rule in SIMPLIFY.rules if not fired[rule.name])
    visits = sum(trace.visits for trace in traces)
    print(*columns(rows), "", f"{visits} nodes visited; {len(dead)} rules never fired: {', '.join(dead)}", sep="\n")
    for number, trace in enumerate(traces):
        if trace.events:
            print("", f"realize {number}, in order", *_events(trace), sep="\n")
