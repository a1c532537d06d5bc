"""From a canonical graph to a plan: prepare, fuse, write kernels, order them, place their memory.

Takes the outputs over PARAM and SCALAR with their targets, gives a `Plan` and the kernels it names.
A store that would overwrite what is still to be read is computed aside and copied in (`aside`); that
is found out by trying, so the common case pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lazulite.analysis.cost import Estimate, estimate
from lazulite.analysis.kinds import LEAVES, crosses
from lazulite.base.errors import EffectError, StageError
from lazulite.ir import ops
from lazulite.ir.dtype import DType
from lazulite.ir.infer import lie_alike
from lazulite.ir.size import max_shape
from lazulite.ir.uop import UOp, toposort
from lazulite.schedule.axes import last_axes
from lazulite.schedule.blocks import fuse_blocks
from lazulite.schedule.calls import launch_kernel, lost_turns
from lazulite.schedule.fuse import fuse
from lazulite.schedule.fusion import Fusion, LaunchKey, is_reinterpretation, launch_key
from lazulite.schedule.groups import Decision, Destination, Group, element_count
from lazulite.schedule.kernels import Kernel, Memory, build_kernel
from lazulite.schedule.layout import Choose, Layouts, still_inputs
from lazulite.schedule.memory import Lifetime, pack
from lazulite.schedule.order import Write, order
from lazulite.schedule.plan import Fresh, Launch, Panels, Plan, Temporary
from lazulite.schedule.prepare import devices_of, prepare
from lazulite.schedule.versions import copied, in_place_conflict, is_bound, launches_in_memory, stores_of

KeyOf = Callable[[UOp, str], str]
"""Enters a kernel for a device and gives the key under which it will be found compiled."""


@dataclass(frozen=True, slots=True)
class Options:
    """The settings that decide how a graph is cut."""

    fuse: bool = True
    plan_memory: bool = True
    cache: int = 1 << 20
    """The bytes of the largest cache that a thread has to itself."""
    layout: Choose | None = None
    """How kernels want operands to lie in memory."""
    still: frozenset[int] = frozenset()
    """The memory arguments whose contents are likely to outlast many runs."""


@dataclass(slots=True)
class Schedule:
    """A plan, and what led to it."""

    plan: Plan
    fusion: Fusion
    kernels: list[Kernel]
    position: Callable[[UOp], int]
    """Where in the graph, as the engine walked it, the value stands that a node of the fusion computes."""


@dataclass(slots=True)
class _Graph:
    """What the steps below share about the graph."""

    inputs: list[UOp]
    """The PARAM of each memory argument."""
    outputs: list[UOp]
    targets: list[UOp | None]
    positions: Mapping[UOp, int]
    """Where each node stands in the graph as the engine walked it."""
    homes: dict[int, str]
    """Where there are several devices, that of each destination; a value that turns out to be constant has none."""
    origins: dict[UOp, UOp] = field(default_factory=dict)
    """For each prepared node the node of the graph that it stands for."""
    valued: set[int] = field(default_factory=set)
    """The memories whose contents after a store of a region are computed by those who read them, not loaded."""
    ordered: set[LaunchKey] = field(default_factory=set)
    """The launches whose arguments stay in memory, because their order would not be seen in an expression."""
    hidden: dict[int, UOp] = field(default_factory=dict)
    """What lies in the memories, with negative numbers, in which pure launches run that nobody asked for."""

    def position(self, node: UOp) -> int:
        """The position of the value that a launch computes, -1 where there is none."""
        for candidate in (node, *node.src):
            origin = self.origins.get(candidate)
            if origin is not None and origin in self.positions:
                return self.positions[origin]
        return -1

    def destination(self, output: int) -> int:
        target = self.targets[output]
        if target is not None:
            return int(target.arg[0])
        return len(self.inputs) + sum(t is None for t in self.targets[:output])

    def shape_of(self, number: int) -> tuple[int, ...]:
        if number < 0:
            return self.hidden[number].shape
        if number < len(self.inputs):
            return self.inputs[number].shape
        fresh = [o for o, t in zip(self.outputs, self.targets, strict=True) if t is None]
        return fresh[number - len(self.inputs)].shape


def build(
    outputs: Sequence[UOp],
    targets: Sequence[UOp | None],
    scalars: Sequence[DType],
    positions: Mapping[UOp, int],
    key_of: KeyOf,
    options: Options = Options(),
) -> Schedule:
    """Schedule a canonical graph; `positions` numbers its nodes for messages and profiles."""
    graph = _graph(outputs, targets, positions)
    aside: set[Write] = set()
    while True:
        fusion = fuse(_destinations(graph, aside), allowed=options.fuse, ordered=graph.ordered)
        kernels = [_kernel(fusion, group, graph) for group in fusion.groups]
        unordered = {launch_key(kernel.group.root) for kernel in kernels if lost_turns(kernel)}
        if not unordered <= graph.ordered:
            graph.ordered |= unordered
            continue
        ordering = order(fusion, kernels, aside, _conflicts(graph, kernels))
        _refuse_cycle(graph, ordering.stuck)
        if not (ordering.aside or ordering.reread):
            break
        graph.valued |= ordering.reread
        if not ordering.reread and ordering.aside <= aside:
            raise StageError("schedule.order", "moving writes aside does not help")
        aside |= ordering.aside
    kernels = _in_few_kernels(ordering.kernels, fusion, graph, options.cache) if options.fuse else ordering.kernels
    plan = _plan(graph, fusion, kernels, scalars, key_of, options)
    return Schedule(plan, fusion, kernels, graph.position)


def _kernel(fusion: Fusion, group: Group, graph: _Graph) -> Kernel:
    if group.root.op is ops.LAUNCH:
        return launch_kernel(fusion, group)
    return build_kernel(fusion, group, graph.shape_of)


def _in_few_kernels(kernels: Sequence[Kernel], fusion: Fusion, graph: _Graph, cache: int) -> list[Kernel]:
    """Block fusion, with the intermediates that are left lying as their readers like them."""
    joined = fuse_blocks(kernels, cache, fusion.again)
    fusion.last = last = last_axes(kernels, _spared(kernels, joined, cache))
    if not last:
        return joined
    fusion.decisions = [_with_axis(decision, last) for decision in fusion.decisions]
    laid_out = [k if last.keys().isdisjoint(k.memories) else _kernel(fusion, k.group, graph) for k in kernels]
    return fuse_blocks(laid_out, cache, fusion.again)


def _spared(kernels: Sequence[Kernel], joined: Sequence[Kernel], cache: int) -> set[UOp]:
    """What kernels touch that block fusion joins so that a value does not exist which is too large for the cache.

    How these lie stays as it is; what fits in the cache may cost a kernel of its own.
    """
    parts = {kernel.group: kernel for kernel in kernels}
    spared = set[UOp]()
    for kernel in joined:
        touched = {m for group in (kernel.group, *kernel.groups) for m in parts[group].memories if isinstance(m, UOp)}
        if any(element_count(m.shape) * m.dtype.itemsize > cache for m in touched.difference(kernel.memories)):
            spared |= touched
    return spared


def _with_axis(decision: Decision, last: Mapping[UOp, int]) -> Decision:
    if decision.kind != "stored" or decision.node not in last:
        return decision
    why = f"{decision.reason}; axis {last[decision.node]} lies innermost, as products want it that read or write it"
    return replace(decision, reason=why)


def _refuse_cycle(graph: _Graph, stuck: Sequence[Kernel]) -> None:
    """A hand-written kernel writes where it says, not aside: what stands in its way stays there."""
    for kernel in stuck:
        if is_bound(kernel.group.root):
            number = next(memory for memory, _ in kernel.writes if isinstance(memory, int))
            raise EffectError(
                "call", "a cycle: contents are read that a kernel which has to come first replaces",
                about={"the memory": graph.inputs[number]}, hint="give the kernel memory of its own to write",
            )  # fmt: skip
    if stuck:
        raise StageError("schedule.order", f"{len(stuck)} kernels wait for one another")


def _graph(outputs: Sequence[UOp], targets: Sequence[UOp | None], positions: Mapping[UOp, int]) -> _Graph:
    nodes = toposort(*outputs, *[t for t in targets if t is not None])
    params = {node.arg[0]: node for node in nodes if node.op is ops.PARAM}
    graph = _Graph([params[slot] for slot in range(len(params))], list(outputs), list(targets), positions, {})
    devices = devices_of(nodes)
    if len({device for device in devices.values() if device}) > 1:
        ends = enumerate(zip(outputs, targets, strict=True))
        graph.homes = {graph.destination(number): devices[o if t is None else t] for number, (o, t) in ends}
    return graph


def _destinations(graph: _Graph, aside: set[Write]) -> dict[UOp, list[Destination]]:
    """The prepared values to store, with where they go."""
    stores = []
    for number, (output, target) in enumerate(zip(graph.outputs, graph.targets, strict=True)):
        if output is not target:
            stores += stores_of(output, target, graph.destination(number))
    in_memory = {
        store.contents: (graph.inputs[store.destination.number], store.destination.sequence)
        for store in stores
        if store.contents is not None and store.destination.number not in graph.valued
    }
    prepared, graph.origins = prepare([store.value for store in stores], in_memory)
    devices = devices_of(toposort(*prepared)) if graph.homes else {}
    destinations: dict[UOp, list[Destination]] = {}
    for store, value in zip(stores, prepared, strict=True):
        place = store.destination
        if (home := graph.homes.get(place.number)) and not devices[value]:
            value = UOp(ops.COPY, value.dtype, (value,), home)
        value = value if place.region else _without_reshapes(value)
        if value.op in LEAVES or is_reinterpretation(value):
            value = copied(value)
        if value.op is ops.LAUNCH and (place.region or value in destinations or store.value.op is not ops.LAUNCH):
            value = copied(value)  # a kernel runs once, on the memory that its call names
        if (place.number, place.sequence) in aside and not is_bound(value):
            value = copied(value)
        if crosses(value) and (place.region or value in destinations):
            value = copied(value)  # a copy between devices fills one whole memory
        while any(d.number == place.number for d in destinations.get(value, ())):  # one kernel has no order of writes
            value = copied(value)
        destinations.setdefault(value, []).append(place)
    graph.hidden = launches_in_memory(destinations)
    return destinations


def _without_reshapes(value: UOp) -> UOp:
    """A value stored as a whole lies in memory as its source does."""
    while value.op is ops.RESHAPE and lie_alike(value.shape, value.src[0].shape):
        value = value.src[0]
    return value


def _conflicts(graph: _Graph, kernels: Sequence[Kernel]) -> set[Write]:
    """The writes whose kernel reads the memory in a way that the write would disturb."""
    found: set[Write] = set()
    for kernel in kernels:
        for memory, sequence in kernel.writes:
            if isinstance(memory, int) and memory in kernel.reads:
                slots = [s for s, a in enumerate(kernel.arguments) if a.memory == memory]
                if in_place_conflict(kernel.sink, slots):
                    found.add((memory, sequence))
                    _refuse_cycle(graph, [kernel] if is_bound(kernel.group.root) else [])
    return found


# --- the plan ----------------------------------------------------------------------------------


def _plan(
    graph: _Graph, fusion: Fusion, kernels: Sequence[Kernel], scalars: Sequence[DType], key_of: KeyOf, options: Options
) -> Plan:
    devices = devices_of(toposort(*fusion.writer))
    fresh = [
        Fresh(o.dtype.name, max_shape(o.shape), graph.homes.get(graph.destination(number)) or devices.get(o, ""))
        for number, (o, t) in enumerate(zip(graph.outputs, graph.targets, strict=True)) if t is None
    ]  # fmt: skip
    temporaries, numbers = _temporaries(graph, kernels, len(graph.inputs) + len(fresh), devices, options)
    entered: _Entered = {}
    layouts = Layouts(
        len(graph.inputs) + len(fresh) + len(temporaries), still_inputs(options.still, kernels), options.layout
    )
    launches = [_launch(graph, kernel, numbers, devices, key_of, entered, layouts) for kernel in kernels]
    return Plan(
        len(graph.inputs),
        tuple([graph.destination(output) for output in range(len(graph.outputs))]),
        tuple(fresh),
        tuple(temporaries),
        tuple([dtype.name for dtype in scalars]),
        tuple(launches),
        tuple(_panels(layouts, key_of)),
    )


def _panels(layouts: Layouts, key_of: KeyOf) -> Iterator[Panels]:
    """What the launches read in another order, with what fills it."""
    for ((source, device, filling), number), nbytes in zip(layouts.panels.items(), layouts.sizes, strict=True):
        work = estimate(filling)
        launch = Launch(
            key_of(filling, device), (number, source), (-1, -1), -1, device, (source,), (number,), work.operations,
            work.bytes_touched,
        )  # fmt: skip
        yield Panels(source, nbytes, launch)


def _temporaries(
    graph: _Graph, kernels: Sequence[Kernel], first_number: int, devices: dict[UOp, str], options: Options
) -> tuple[list[Temporary], dict[Memory, int]]:
    """The intermediates with their offsets, and the buffer number of each of their memories."""
    spans: dict[Memory, list[int]] = {}
    for position, kernel in enumerate(kernels):
        written = [memory for memory, _ in kernel.writes]
        for memory in [*written, *kernel.reads]:
            if isinstance(memory, UOp) or memory < 0:
                if memory not in spans and memory not in written:
                    raise StageError("schedule.plan", f"kernel {position} reads an intermediate that none wrote before")
                spans.setdefault(memory, [position, position])[1] = position
    values = {memory: memory if isinstance(memory, UOp) else graph.hidden[memory] for memory in spans}
    numbers: dict[Memory, int] = {}
    temporaries: list[Temporary] = []
    for device in dict.fromkeys(devices[node] for node in values.values()):
        held = {memory: node for memory, node in values.items() if devices[node] == device}
        sizes = [max(1, element_count(node.shape) * node.dtype.itemsize) for node in held.values()]
        lifetimes = [Lifetime(size, *spans[memory]) for size, memory in zip(sizes, held, strict=True)]
        for memory, size, offset in zip(held, sizes, pack(lifetimes, reuse=options.plan_memory), strict=True):
            numbers[memory] = first_number + len(temporaries)
            temporaries.append(Temporary(offset, size, device))
    return temporaries, numbers


_Entered = dict[tuple[UOp, str, bool], tuple[str, Estimate]]
"""The key of each kernel on a device, which a copy between devices lacks, and what it costs: equal ones, as equal
layers have, are entered once."""


def _launch(
    graph: _Graph, kernel: Kernel, numbers: dict[Memory, int], devices: dict[UOp, str], key_of: KeyOf,
    entered: _Entered, layouts: Layouts,
) -> Launch:  # fmt: skip
    root = kernel.group.root
    device = devices[root]
    hidden = [memory for memory, _ in kernel.writes if isinstance(memory, int) and memory < 0]
    shown = graph.hidden[hidden[0]] if hidden else root  # what fills the memory of a launch belongs to the launch

    crossing = crosses(root) and bool(kernel.reads)
    panels = {} if crossing else layouts.place(kernel, device)

    def buffer(memory: Memory) -> int:
        if memory in panels:
            return panels[memory]
        return numbers[memory] if isinstance(memory, UOp) or memory < 0 else memory

    reads = tuple(sorted(buffer(m) for m in kernel.reads))
    writes = tuple(sorted({buffer(m) for m, _ in kernel.writes}))
    known = entered.get((kernel.sink, device, crossing))
    if known is None:
        key = "" if crossing else key_of(kernel.sink, device)
        known = entered[kernel.sink, device, crossing] = key, estimate(kernel.sink)
    arguments, (key, work) = kernel.arguments, known
    return Launch(
        key,
        (*writes, *reads) if crossing else tuple([-1 if a.memory is None else buffer(a.memory) for a in arguments]),
        () if crossing else tuple([a.scalar for a in arguments]),
        graph.position(shown),
        device,
        reads,
        writes,
        work.operations,
        work.bytes_touched,
    )
