"""What each device computes of values that lie on several.

Takes `TENSOR` values in which a COPY or a BUFFER may name several devices (`ir/placement.py`), and gives for each the
nodes of its parts, which name one device each.  A value is split along an axis, or whole on every device; there is one
rule for each family of nodes, and where a rule has nothing to say about the axis of a split, the value is gathered on
every device first.  What no split reaches is left as it is.

Invariant: the parts together are the value; only a reduction over the axis of a split adds in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from lazulite.analysis.kinds import is_elementwise
from lazulite.analysis.regions import Region, apply_region
from lazulite.base.errors import DeviceError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.ops import Op
from lazulite.ir.placement import Placement
from lazulite.ir.uop import UOp, toposort
from lazulite.schedule.collectives import Collectives, Placed
from lazulite.schedule.split import moved

Known = Callable[[UOp], UOp | None]
PartsOf = Callable[[UOp], tuple[UOp, ...]]


def place(
    values: Sequence[UOp],
    targets: Sequence[str | Placement | None],
    parts_of: PartsOf,
    known: Known,
    all_reduce: str = "",
) -> list[Placed]:
    """The parts of values, each laid out as its target says (None: as it comes).

    `parts_of(buffer)` gives the memory of the parts of a BUFFER on several devices, `known(node)` the BUFFER that
    already holds a value; `all_reduce` names the way of `schedule/collectives.py`.
    """
    placer = _Placer(parts_of, Collectives(known, all_reduce), known)
    for node in toposort(*values, enter=lambda n: n.op is not ops.BUFFER and known(n) is None):
        found = placer.done[node] = placer.placed(node)
        for part in found.parts:
            part.origin = part.origin or node.origin
    return [placer.finished(value, target) for value, target in zip(values, targets, strict=True)]


class _Placer:
    """A walk over the values from the leaves up: the parts of each node."""

    def __init__(self, parts_of: PartsOf, between: Collectives, known: Known) -> None:
        self.parts_of, self.between, self.known = parts_of, between, known
        self.done: dict[UOp, Placed] = {}
        self._whole: dict[tuple[UOp, tuple[str, ...]], tuple[UOp, ...]] = {}

    def placed(self, node: UOp) -> Placed:
        """The parts of a node whose sources are placed."""
        buffer = node if node.op is ops.BUFFER else self.known(node)
        if buffer is not None:
            where = buffer.arg[3]
            return Placed(self.parts_of(buffer), where) if isinstance(where, Placement) else Placed((node,))
        if node.op is ops.COPY:
            return self._copied(node)
        if all(self.done[source].where is None for source in node.src):
            src = tuple([self.done[source].parts[0] for source in node.src])
            return Placed((node if src == node.src else UOp(node.op, node.dtype, src, node.arg),))
        if node.op in ops.MOVEMENT:
            return self._moved(node)
        rule = _RULES.get(node.op, _Placer._elementwise if node.op in ops.ELEMENTWISE else _Placer._refused)
        return rule(self, node)

    def finished(self, value: UOp, target: str | Placement | None) -> Placed:
        """The parts of a value as they are to be stored."""
        placed = self.done[value]
        if isinstance(target, str):
            return Placed((self.between.gathered(placed, value.shape, target),))
        if target is not None:
            placed = Placed(self.laid_out(value, target), target)
        if placed.where is None:
            return placed
        return placed._replace(parts=tuple([
            part if self.between.home(part) else self.between.settled(part, device)
            for part, device in zip(placed.parts, placed.where.devices, strict=True)
        ]))  # fmt: skip

    # --- operands laid out as a rule needs them -----------------------------------------------------

    def laid_out(self, node: UOp, to: Placement) -> tuple[UOp, ...]:
        """The parts of a value in some layout."""
        placed = self.done[node]
        if placed.where == to:
            return placed.parts
        if to.axis is None:
            return self.whole(node, to.devices)
        if node.op is ops.EXPAND and placed.where is not None and placed.where.axis is not None:
            placed = Placed(self.whole(node, to.devices), Placement(to.devices))
        return self.between.dealt(placed, node.shape, to)

    def whole(self, node: UOp, devices: tuple[str, ...]) -> tuple[UOp, ...]:
        """All of a value on each of the devices."""
        parts = self._whole.get((node, devices))
        if parts is None:
            if node.op is ops.EXPAND and node.src[0] in self.done:  # what is repeated travels once
                parts = tuple([UOp(node.op, node.dtype, (s,), node.arg) for s in self.whole(node.src[0], devices)])
            else:
                parts = self.between.dealt(self.done[node], node.shape, Placement(devices))
            self._whole[node, devices] = parts
        return parts

    def common(self, nodes: Iterable[UOp]) -> Placement:
        """Where values that meet are computed: as the largest of those that are split is, else everywhere."""
        placements = [(node, where) for node in nodes if (where := self.done[node].where) is not None]
        found, most = placements[0][1]._replace(axis=None, ends=()), -1
        for node, where in placements:
            if where.axis is not None and (size := _stored_size(node)) > most:
                found, most = where, size
        return found

    # --- rules ----------------------------------------------------------------------------------------

    def _elementwise(self, node: UOp) -> Placed:
        to = self.common(node.src)
        if to.axis == len(node.shape) - 1 and not is_elementwise(node):  # its bits are read in other portions
            to = Placement(to.devices)
        return self._each(node, to, [self.laid_out(s, to) if s.shape else self.whole(s, to.devices) for s in node.src])

    def _everywhere(self, node: UOp) -> Placed:
        """The same on every device."""
        to = Placement(self.common(node.src).devices)
        return self._each(node, to, [self.whole(source, to.devices) for source in node.src])

    def _each(self, node: UOp, where: Placement, operands: Sequence[tuple[UOp, ...]]) -> Placed:
        columns = zip(*operands, strict=True)
        return Placed(tuple([UOp(node.op, node.dtype, tuple(src), node.arg) for src in columns]), where)

    def _reduced(self, node: UOp) -> Placed:
        """Over the axis of a split, what each device makes of its part is combined on all of them."""
        (source,), (op, axes) = node.src, node.arg
        parts, where = self.done[source]
        assert where is not None
        own = tuple([UOp(node.op, node.dtype, (part,), node.arg) for part in parts])
        if where.axis not in axes:
            return Placed(own, where)
        filled = [part for part, source in zip(own, parts, strict=True) if 0 not in source.shape]
        if not filled:
            return self._everywhere(node)
        return Placed(self.between.reduced(filled, op, where.devices), Placement(where.devices))

    def _moved(self, node: UOp) -> Placed:
        (source,) = node.src
        parts, where = self.done[source]
        assert where is not None
        law = moved(node.op, node.arg, source.shape, where)
        if law is not None:
            steps = zip(parts, law.args, strict=True)
            return Placed(tuple([UOp(node.op, node.dtype, (part,), arg) for part, arg in steps]), law.where)
        if node.op is ops.FLIP:
            return self._turned(node, parts, where)
        return self._everywhere(node)

    def _turned(self, node: UOp, parts: Sequence[UOp], where: Placement) -> Placed:
        """The last part comes first, and each of them is turned round."""
        size = where.ends[-1]
        ends = tuple([size - begin for begin, _ in reversed(where.spans)])
        own = [UOp(node.op, node.dtype, (part,), node.arg) for part in reversed(parts)]
        sent = [self.between.sent(part, device) for part, device in zip(own, where.devices, strict=True)]
        return Placed(tuple(sent), where._replace(ends=ends))

    def _gathered(self, node: UOp) -> Placed:
        """Rows are picked where the positions are, or along the axes that are picked as a whole."""
        x, *positions = node.src
        picked, of_x = len(positions), self.done[x].where
        of_positions = self.common(positions) if self._on_several(positions) else None
        if of_x is not None and of_x.axis is not None and of_x.axis >= picked:
            to = of_x._replace(axis=of_x.axis - picked + len(positions[0].shape))
            return self._each(node, to, [self.laid_out(x, of_x), *[self.whole(p, of_x.devices) for p in positions]])
        if of_positions is not None and of_positions.axis is not None:
            operands = [self.whole(x, of_positions.devices), *[self.laid_out(p, of_positions) for p in positions]]
            return self._each(node, of_positions, operands)
        return self._everywhere(node)

    def _on_several(self, nodes: Iterable[UOp]) -> bool:
        return any(self.done[node].where is not None for node in nodes)

    def _written(self, node: UOp) -> Placed:
        """Each device writes what the region has of its part; the value is laid out as the region is."""
        previous, value = node.src
        where = self.done[previous].where or self._as_written(node)
        if where.axis is None:
            return self._everywhere(node)
        region = _region_of_parts(node.arg, previous.shape, where)
        if region is None:
            whole = Placed(self._everywhere(node).parts, Placement(where.devices))
            return Placed(self.between.dealt(whole, node.shape, where), where)
        inner, steps = region
        old = self.laid_out(previous, where)
        new = self.laid_out(value, inner) if value.shape else self.whole(value, where.devices)
        parts = [
            part if 0 in apply_region(part, step).shape else UOp(node.op, node.dtype, (part, item), step)
            for part, item, step in zip(old, new, steps, strict=True)
        ]
        return Placed(tuple(parts), where)

    def _as_written(self, node: UOp) -> Placement:
        """Where something that is on one device, or a constant, is written to: as the value that is written lies."""
        previous, value = node.src
        inner = self.common([value])
        if inner.axis is None or self.between.home(previous):
            return Placement(inner.devices)
        for axis, size in enumerate(previous.shape):
            if size == value.shape[inner.axis]:
                outer = inner._replace(axis=axis)
                region = _region_of_parts(node.arg, previous.shape, outer)
                if region is not None and region[0] == inner:
                    return outer
        return Placement(inner.devices)

    def _copied(self, node: UOp) -> Placed:
        (source,), to = node.src, node.arg
        placed = self.done[source]
        if isinstance(to, str):
            if placed.where is None and placed.parts == node.src:
                return Placed((node,))
            return Placed((self.between.settled(self.between.gathered(placed, node.shape, to), to),))
        if not isinstance(to, Placement):
            here = placed.where is not None and placed.where.devices == to
            to = placed.where if here and placed.where is not None else Placement(to)
        parts = zip(self.laid_out(source, to), to.devices, strict=True)
        between = self.between
        return Placed(tuple([between.settled(p, device) if between.home(p) else p for p, device in parts]), to)

    def _first(self, node: UOp) -> Placed:
        return self.done[node.src[0]]

    def _launched(self, node: UOp) -> Placed:
        """A kernel written by hand runs on every device, if what it writes is a value like others."""
        return self._everywhere(node) if node.arg.pure else self._refused(node)

    def _refused(self, node: UOp) -> Placed:
        where = self.common(node.src)
        raise DeviceError(
            "realize", f"{node.op.name} works on memory, and has no meaning for a tensor on several devices ({where})",
            rule="Stores and calls written by hand name the memory of one device.", hint="x.to(device)",
        )  # fmt: skip


_RULES: Mapping[Op, Callable[[_Placer, UOp], Placed]] = {
    ops.REDUCE: _Placer._reduced,
    ops.GATHER: _Placer._gathered,
    ops.WRITE: _Placer._written,
    ops.DETACH: _Placer._first,
    ops.FUNCTION: _Placer._first,
    ops.LAUNCH: _Placer._launched,
}


def _region_of_parts(region: Region, shape: tuple[int, ...], where: Placement) -> tuple[Placement, list[Region]] | None:
    """How the view to which a region leads is split, and the region of each part; None where parts change places."""
    steps: list[list[tuple[str, object]]] = [[] for _ in where.devices]
    view = UOp(ops.PARAM, dtypes.float32, (), (0, shape, ""))
    for name, arg in region:
        law = moved(ops.OPS[name], arg, view.shape, where)
        if law is None:
            return None
        for own, step in zip(steps, law.args, strict=True):
            own.append((name, step))
        view, where = apply_region(view, ((name, arg),)), law.where
    return where, [tuple(own) for own in steps]


def _stored_size(node: UOp) -> int:
    """How many elements a value has apart from repetitions."""
    while node.op is ops.EXPAND:
        node = node.src[0]
    count = 1
    for size in node.shape:
        count *= int(size) if type(size) is int else 1
    return count
