"""Handles: what a tensor holds, and the sets in which the engine finds the live ones.

A handle's `value` is the node of its current value.  A handle that owns a `storage` keeps it over
writes: its value then is either the storage's contents or an expression that a realize will write
there.  What a view remembers is in `engine/views.py`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Any

from lazulite.analysis.regions import Region
from lazulite.base.origin import Origin
from lazulite.engine.storage import Storage, is_current, storage_of
from lazulite.ir import ops
from lazulite.ir.uop import UOp, substitute, toposort


class _Held:
    """Handles that somebody holds, in the order in which they came: what a realize gathers is then the same in
    every run of a program."""

    def __init__(self) -> None:
        references: dict[weakref.ref[Handle], None] = {}
        self.references = references
        self.forget = references.pop  # called once for each: one that is discarded takes its reference along

    def add(self, handle: Handle) -> None:
        self.references[weakref.ref(handle, self.forget)] = None

    def discard(self, handle: Handle) -> None:
        self.references.pop(weakref.ref(handle), None)

    def all(self) -> list[Handle]:
        references = list(self.references)  # at once: others may come and go meanwhile
        return [handle for reference in references if (handle := reference()) is not None] if references else []


class _News:
    """What `news` tells."""

    count = 0


_news = _News()
_live = _Held()
_written = _Held()
"""Those that were written to since they were realized, and perhaps others."""
_tracked = _Held()
"""Those with `requires_grad`, and perhaps others."""
_history: weakref.WeakKeyDictionary[UOp, UOp | Callable[[], UOp]] = weakref.WeakKeyDictionary()


class Handle:
    """One tensor's place in the engine."""

    __slots__ = ("__weakref__", "_requires_grad", "ancestors", "grad", "leaf", "shared", "storage", "value", "writer")
    grad: Any
    """What the front end keeps as the gradient."""
    shared: bool
    """Whether several elements stand for one place, so that a write would have no meaning."""
    writer: int
    """The thread of the last write, which alone takes the write along when it realizes something else."""

    def __init__(
        self,
        value: UOp,
        storage: Storage | None = None,
        *,
        requires_grad: bool | None = None,
        leaf: bool = False,
        shared: bool = False,
    ) -> None:
        self.value, self.storage, self.leaf, self.shared = value, storage, leaf, shared
        self.ancestors: tuple[tuple[Callable[[], Handle | None], Region], ...] = ()
        self.grad, self.writer, self._requires_grad = None, 0, requires_grad
        if storage is None:
            _news.count += 1
        _live.add(self)
        if requires_grad:
            _tracked.add(self)

    @classmethod
    def of(cls, storage: Storage, requires_grad: bool | None, leaf: bool, shared: bool) -> Handle:
        """The owner of a storage, whose contents it shows; the node for them is made when somebody asks."""
        self = object.__new__(cls)
        self.storage, self.leaf, self.shared, self._requires_grad = storage, leaf, shared, requires_grad
        self.ancestors, self.grad, self.writer = (), None, 0
        _live.references[weakref.ref(self, _live.forget)] = None
        if requires_grad:
            _tracked.add(self)
        return self

    def __getattr__(self, name: str) -> UOp:
        """The value of a handle that has none yet: the contents of its storage."""
        if name != "value":
            raise AttributeError(name)
        storage = self.storage
        if storage is None or (storage.buffer is None and not storage.parts):
            raise AttributeError(name)
        self.value = node = storage.node()
        if node.origin is None and storage.buffer is not None and isinstance(storage.buffer.label, Origin):
            node.origin = storage.buffer.label
        return node

    @property
    def requires_grad(self) -> bool | None:
        """Whether gradients are wanted: True, False (never), or None (where there is storage)."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool | None) -> None:
        self._requires_grad = wanted
        if wanted:
            _tracked.add(self)

    @property
    def pending(self) -> bool:
        """Whether the value is not in memory yet (a constant counts as had), or not in the handle's own."""
        value, storage = self.value, self.storage
        if storage is not None:
            return value.op is not ops.BUFFER or value.arg[:2] != (storage.number, storage.version)
        return value.op is not ops.BUFFER and not is_constant(value)

    def renew(self) -> None:
        """Show the contents that its storage has now; the node for them is made when somebody asks."""
        with suppress(AttributeError):  # none was made for the contents before either
            del self.value

    def write(self, value: UOp) -> None:
        """Give it another value, on behalf of this thread."""
        self.value, self.writer = value, threading.get_ident()
        _news.count += 1
        _written.add(self)


def news() -> int:
    """A number that is the same again only if nobody wrote to a handle, or made one without a storage, since."""
    return _news.count


def is_written() -> bool:
    """Whether a handle has a pending write."""
    if not _written.references:
        return False
    pending_writes()  # which forgets those that were realized
    return bool(_written.references)


def live_handles() -> list[Handle]:
    """Every handle that somebody holds."""
    return _live.all()


def tracked_values() -> set[UOp]:
    """The values of tensors with `requires_grad`, which gradients are asked for."""
    return {handle.value for handle in _tracked.all() if handle.requires_grad} if _tracked.references else set()


def pending_writes() -> list[Handle]:
    """The handles whose storage is not what this thread wrote to them."""
    if not _written.references:
        return []
    this_thread, found = threading.get_ident(), []
    for handle in _written.all():
        if not handle.pending:
            _written.discard(handle)
        elif handle.storage is not None and handle.writer == this_thread:
            found.append(handle)
    return found


def lazy_writes() -> list[Handle]:
    """The handles that this thread wrote to before they had a storage.

    They get one with whatever is realized next, so that writes to them do not pile up.
    """
    if not _written.references:
        return []
    this_thread = threading.get_ident()
    return [h for h in _written.all() if h.storage is None and h.pending and h.writer == this_thread]


def is_constant(node: UOp) -> bool:
    """Whether a value is one constant everywhere, to be seen without computing."""
    while node.op in ops.MOVEMENT and node.op is not ops.PAD:
        node = node.src[0]
    return node.op is ops.CONST


# --- what is stored ----------------------------------------------------------------------------


def note_stored(expression: UOp, buffer: UOp) -> None:
    """From now on the expression need not be computed while the buffer's node lives and is current."""
    if expression.op is not ops.BUFFER:  # which a write of one tensor to another gives a second home
        expression.memory = weakref.ref(buffer)


def stored(node: UOp) -> UOp | None:
    """The BUFFER that holds the value of an expression, if one does."""
    reference = node.memory
    if reference is None or node.op is ops.BUFFER:
        return None
    buffer: UOp | None = reference()
    return buffer if buffer is not None and is_current(buffer) else None


def keep_history(buffer: UOp, expression: UOp | Callable[[], UOp]) -> None:
    """Remember how a stored value was made, for gradients; a callable makes the expression when it is needed."""
    _history[buffer] = expression


def history(buffer: UOp) -> UOp | None:
    """How a stored value was made, if a gradient may ask."""
    known = _history.get(buffer) if buffer.op is ops.BUFFER else None
    if known is None or isinstance(known, UOp):
        return known
    made = _history[buffer] = known()
    return made


def recomputed(values: list[UOp | None]) -> list[UOp | None]:
    """The values with contents that a later write replaced computed anew, where it is known how they were made."""
    known = [value for value in values if value is not None]
    while _history:
        gone = [n for n in toposort(*known) if n.op is ops.BUFFER and n in _history and not is_current(n)]
        if not gone:
            break
        known = substitute(known, {node: past for node in gone if (past := history(node)) is not None})
    found = iter(known)
    return [None if value is None else next(found) for value in values]


def forget_history(nodes: Iterable[UOp]) -> None:
    """Drop what was kept for a gradient that has been taken."""
    for node in nodes:
        _history.pop(node, None)


# --- who must be realized together -------------------------------------------------------------


def with_company(
    asked: Iterable[Handle],
    written_by: Callable[[Iterable[UOp]], set[UOp]] = lambda values: set(),
    *,
    state: bool = True,
) -> list[Handle]:
    """The pending handles among those asked, and those that have to be realized with them.

    These are handles with a pending write (with `state`, so that state which nobody reads does not pile up;
    those of other threads are left alone, as these may be about to write again), and live readers of contents
    that the writes replace.  `written_by(values)` gives the storages that hand-written stores below some
    values write.
    """
    chosen = dict.fromkeys([h for h in asked if h.pending])
    if not chosen:
        return []
    if state and _written.references:
        chosen |= dict.fromkeys([*pending_writes(), *lazy_writes()])
    if not [h for h in chosen if h.storage is not None or h.value.has_effects]:
        return list(chosen)  # nothing is written
    while True:
        replaced = {h.storage.node() for h in chosen if h.storage is not None}
        replaced |= written_by([h.value for h in chosen])
        if not replaced:
            return list(chosen)
        others = [h for h in live_handles() if h not in chosen]
        readers = replaced | _reaching([h.value for h in others if h.value.op is not ops.BUFFER], replaced)
        owned = {storage_of(node) for node in replaced if is_current(node)}
        company = [h for h in others if h.value in readers or h.storage in owned]
        chosen |= dict.fromkeys(company)
        if not any(h.value.has_effects for h in company):  # a reader may write storages of its own
            return list(chosen)


def readers_of(replaced: set[UOp], known: Collection[Handle]) -> list[Handle]:
    """Live handles, other than the known ones, whose value is or needs contents that are about to be replaced."""
    others = [handle for handle in live_handles() if handle not in known]
    reading = _reaching([handle.value for handle in others], replaced)
    return [handle for handle in others if handle.value in reading]


def _reaching(values: list[UOp], targets: set[UOp]) -> set[UOp]:
    """The nodes below these values that are, or lead to, one of the targets."""
    found: set[UOp] = set()
    for node in toposort(*values, enter=lambda n: stored(n) is None):
        if node in targets or not found.isdisjoint(node.src) or (stored(node) in targets):
            found.add(node)
    return found
