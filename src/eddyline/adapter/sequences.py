"""Where the sequences stand, and the values that they give out.

Values are given out outside of transactions, and never twice: what a directory has of a sequence is the end of a block
of values, and no value beyond it is given out before the end of another block is safe.  After a crash the sequence goes
on behind the block.  Closing the database writes where each one stands, so that nothing is skipped then.

Invariants:
I1  every value given out of a kept sequence is at or before the one in its document, as the sequence counts;
I2  a block ends before the sequence begins anew (CYCLE);
I3  after ``close`` nothing is given out;
I4  a position that is no more (dropped, or begun anew under another key) is never made again.

Locks: each counter's own, which is held while a block is made safe: only who wants values of that sequence waits.  It
comes before the directory's locks, and after no lock but the database's commit lock, under which a definition writes
where new sequences stand.  ``_lock`` (which counters there are) is a leaf.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from eddyline.adapter.durability import Durability
from eddyline.errors import DatabaseError, Error, make_error
from eddyline.expr.ir import Call, Literal
from eddyline.repr.types import BIGINT, BOOLEAN
from eddyline.sql.catalog_view import SequenceDef

__all__ = ["SEQUENCE_DOCUMENTS", "Position", "Sequences"]

_log = logging.getLogger("eddyline.engine")
#: values that are reserved beyond those asked for
_AHEAD: Final = 32
#: what the names of their documents begin with
SEQUENCE_DOCUMENTS: Final = "sequence/"
_decoder: msgspec.msgpack.Decoder[tuple[int, bool]] = msgspec.msgpack.Decoder(tuple[int, bool])

Int64s = npt.NDArray[np.int64]


class Position(NamedTuple):
    """``last``: the value given out last, or, if none was (``called`` False), the first one.

    ``end``: values up to it may be given out; None: another block is due.
    """

    last: int
    called: bool
    end: int | None = None

    def left(self, increment: int) -> int:
        """How many values of the block are left."""
        return 0 if self.end is None else max(0, (self.end - self.last) // increment)


class _Counter:
    """``position`` is changed with ``lock`` held, as a whole, and any thread may look."""

    def __init__(self, position: Position) -> None:
        self.position = position
        self.lock = threading.Lock()


class Sequences:
    """Of one database.  Any thread."""

    def __init__(self, durability: Durability | None) -> None:
        self._durability = durability
        self._lock = threading.Lock()
        self._counters: dict[str, _Counter] = {}  # by the keys of positions; guarded by _lock
        self._closed = False
        if durability is not None:
            for name, data in durability.documents.items():
                if name.startswith(SEQUENCE_DOCUMENTS):
                    self._counters[name.removeprefix(SEQUENCE_DOCUMENTS)] = _Counter(_read(name, data))

    def look(self, key: str, first: int) -> Position:
        """Where the sequence stands.  ``first``: where it begins."""
        with self._lock:
            found = self._counters.get(key)
        return Position(first, False) if found is None else found.position

    def shown(self, call: Call) -> Literal:
        """What one of ``SEQUENCE_LOOKS`` gives: of the position that goes by the key, begins at, and counts by …"""
        key, first, increment = (arg.value for arg in call.args if isinstance(arg, Literal))
        at = self.look(str(key), int(first or 0))
        match call.func:
            case "sequence_last_value":
                return Literal(at.last, BIGINT)
            case "sequence_log_cnt":
                return Literal(at.left(int(increment or 1)), BIGINT)
            case _:
                return Literal(at.called, BOOLEAN)

    def take(self, of: SequenceDef, name: str, count: int, *, kept: bool) -> Int64s | None:
        """The next ``count`` values; None if that position is no more.

        ``kept``: the sequence is in the catalog that a crash leaves.  2200H if there are not so many, and then none is
        left.  Raises what keeps a block from being written (53100 …); then nothing was given out.
        """
        counter = self._counter(of, kept=kept)
        if counter is None:
            return None
        with counter.lock:
            self._check_open()
            at = counter.position
            before_end = _available(of, at)
            if count > before_end and not of.cycle:
                counter.position = Position(_value_after(of, at, before_end), True) if before_end else at
                raise _exhausted(of, name)
            last = Position(_value_after(of, at, count), True)
            end = at.end
            if not at.called or count > at.left(of.increment):
                end = _value_after(of, last, min(_AHEAD, _available(of, last)))
                if kept:
                    self._keep({of.position: Position(end, True)})
            counter.position = last._replace(end=end)
            return _values(of, at, count)

    def set(self, of: SequenceDef, name: str, value: int, *, called: bool, kept: bool) -> bool:
        """False if that position is no more.  22003 for a value out of its bounds."""
        if not of.minimum <= value <= of.maximum:
            bounds = f"({of.minimum}..{of.maximum})"
            raise make_error("22003", f'setval: value {value} is out of bounds for sequence "{name}" {bounds}')
        counter = self._counter(of, kept=kept)
        if counter is None:
            return False
        with counter.lock:
            self._check_open()
            position = Position(value, called)
            if kept:
                self._keep({of.position: position})
            counter.position = position
        return True

    def begin(self, begun: Iterable[SequenceDef]) -> dict[str, bytes]:
        """Makes the positions, with their documents, of sequences that a commit brings into the catalog.

        The next values of each begin another block.
        """
        found = {}
        for of in begun:
            counter = self._counter(of, kept=False)
            assert counter is not None, "it was made"
            with counter.lock:
                counter.position = counter.position._replace(end=None)
                found[SEQUENCE_DOCUMENTS + of.position] = _written(counter.position)
        return found

    def forget(self, keys: Iterable[str]) -> None:
        """Of positions that are in the catalog no more."""
        with self._lock:
            for key in keys:
                self._counters.pop(key, None)

    def close(self, kept: Iterable[SequenceDef]) -> None:
        """Nothing is given out any more, and those that are kept go on where they stand when they are opened again."""
        with self._lock:
            self._closed = True
        positions = {}
        for of in kept:
            counter = self._counter(of, kept=True)
            if counter is None:
                continue
            with counter.lock:
                if counter.position.end not in (None, counter.position.last):
                    positions[of.position] = counter.position
        if self._durability is None or not positions:
            return
        try:
            self._keep(positions)
        except Error as problem:
            _log.warning("some values of sequences are skipped when the database is opened again: %s", problem.message)

    def _counter(self, of: SequenceDef, *, kept: bool) -> _Counter | None:
        """One that is not kept is made when it is first asked for."""
        with self._lock:
            found = self._counters.get(of.position)
            if found is None and not kept:
                found = self._counters[of.position] = _Counter(Position(of.first, False))
            return found

    def _check_open(self) -> None:
        """57P01 once closed, 55006 if somebody else has taken the directory over."""
        if self._closed:
            raise make_error("57P01", "the database was closed")
        if self._durability is not None:
            self._durability.check_held()

    def _keep(self, positions: Mapping[str, Position]) -> None:
        if self._durability is not None:
            self._durability.note({SEQUENCE_DOCUMENTS + key: _written(at) for key, at in positions.items()})


def _written(position: Position) -> bytes:
    return msgspec.msgpack.encode((position.last, position.called))


def _read(name: str, data: bytes) -> Position:
    """XX001 for what is not understood."""
    try:
        return Position(*_decoder.decode(data))
    except msgspec.MsgspecError as error:
        told = f"the position of {name} is not understood"
        raise make_error("XX001", told, detail=str(error)) from error


# -- counting ---------------------------------------------------------------------------------------------------------


def _available(of: SequenceDef, at: Position) -> int:
    """How many values there are before the end is reached."""
    room = of.maximum - at.last if of.increment > 0 else at.last - of.minimum
    return room // abs(of.increment) + (not at.called)


def _value_after(of: SequenceDef, at: Position, count: int) -> int:
    """The ``count``-th value from ``at``, which is the last one given out or the first to be."""
    steps = count if at.called else count - 1
    before_end = (of.maximum - at.last if of.increment > 0 else at.last - of.minimum) // abs(of.increment)
    if steps <= before_end:
        return at.last + steps * of.increment
    origin, period = _cycle(of)
    return origin + (steps - before_end - 1) % period * of.increment


def _cycle(of: SequenceDef) -> tuple[int, int]:
    """Where a cycle begins, and how many values it has."""
    origin = of.minimum if of.increment > 0 else of.maximum
    return origin, (of.maximum - of.minimum) // abs(of.increment) + 1


def _values(of: SequenceDef, at: Position, count: int) -> Int64s:
    """int64[count]."""
    before_end = min(count, _available(of, at))
    start = at.last + (of.increment if at.called else 0)
    straight = _steps(start, of.increment, np.arange(before_end, dtype=np.int64))
    if before_end == count:
        return straight
    origin, period = _cycle(of)
    again = np.arange(count - before_end, dtype=np.int64) % min(period, np.iinfo(np.int64).max)
    return np.concatenate([straight, _steps(origin, of.increment, again)])


def _steps(start: int, increment: int, steps: Int64s) -> Int64s:
    """Each of them is within bounds, so that nothing that wraps round on the way is left of it in the sum."""
    with np.errstate(over="ignore"):
        return _wrapped(start) + steps * _wrapped(increment)


def _wrapped(value: int) -> np.int64:
    """``value`` modulo 2**64: the first value need not exist where there are none."""
    return np.int64((value + (1 << 63)) % (1 << 64) - (1 << 63))


def _exhausted(of: SequenceDef, name: str) -> DatabaseError:
    if of.increment > 0:
        return make_error("2200H", f'nextval: reached maximum value of sequence "{name}" ({of.maximum})')
    return make_error("2200H", f'nextval: reached minimum value of sequence "{name}" ({of.minimum})')
