"""Why fusion did what it did, for people: a reason for every value of every kernel.

Takes the result of `schedule.fuse`, gives for each group its decisions.  Fusion itself notes why a
value is stored; why the others are computed where they are wanted is told here, from the same facts,
so that scheduling pays nothing for reasons that nobody asks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from lazulite.analysis.kinds import LEAVES
from lazulite.ir import ops
from lazulite.ir.uop import UOp
from lazulite.schedule.fusion import Fusion
from lazulite.schedule.groups import Decision, Group, element_count
from lazulite.schedule.kernels import Kernel


def reasons(fusion: Fusion) -> dict[Group, list[Decision]]:
    """For each group why it stores what it stores, then why it computes the rest itself."""
    noted: dict[UOp, list[Decision]] = {}
    for decision in fusion.decisions:
        noted.setdefault(decision.node, []).append(decision)
    computed = Counter(node for group in fusion.groups for node in group.places)
    found: dict[Group, list[Decision]] = {}
    for group in fusion.groups:
        found[group] = [_hosting(d, group) for node in group.stored for d in noted.get(node, ())]
        inline = [node for node in group.places if node not in group.stored and _is_work(node)]
        found[group] += [_inline(group, node, computed[node]) for node in inline]
    return found


def kernel_reasons(kernel: Kernel, found: Mapping[Group, Sequence[Decision]]) -> list[Decision]:
    """The reasons of all groups whose work a kernel does; what stays in scratch memory is kept, not stored."""
    kept = {decision.node: decision for decision in kernel.kept}
    decisions = [d for group in (kernel.group, *kernel.groups) for d in found.get(group, ())]
    return [kept.get(d.node, d) if d.kind == "stored" else d for d in decisions]


def _hosting(decision: Decision, group: Group) -> Decision:
    """A value stored by a kernel that computes it anyway."""
    if decision.kind == "stored":
        return decision
    return Decision(decision.node, "fused", f"the kernel of {group.root.op.name} computes it anyway and also stores it")


def _is_work(node: UOp) -> bool:
    return node.op not in ops.MOVEMENT and node.op not in LEAVES


def _inline(group: Group, node: UOp, kernels: int) -> Decision:
    if kernels > 1:
        return Decision(node, "recomputed", f"{kernels} kernels want it, and computing it is cheaper than reading it")
    if node.op is ops.REDUCE:
        return Decision(node, "fused", "each of its results is used in the loop that computes it")
    times = sum(group.times(place) for place in group.places[node])
    repeats = times // max(element_count(node.shape), 1)
    if repeats > 1:
        return Decision(node, "recomputed", f"computing it {repeats} times is cheaper than storing and reading it")
    return Decision(node, "fused", "each element is used where it is computed, so it never goes to memory")
