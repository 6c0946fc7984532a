"""Finding the rows of one key, over and over: everything that a probe needs is made once, and no Arrow array at all.

The kernels are those of every other probe (``trace.snapshot``): hash, search, equality.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from eddyline.kernels import cells
from eddyline.kernels.hashing import hash_rows
from eddyline.kernels.picked import net_picked
from eddyline.kernels.rows import pairs_equal
from eddyline.kernels.search import SEARCH_STATE, probe
from eddyline.repr.types import ELEMENT_KINDS, Kind, SqlType
from eddyline.trace.columns import address_of, cell_kinds
from eddyline.trace.hasher import Hasher
from eddyline.trace.run import Run
from eddyline.trace.snapshot import Snapshot

__all__ = ["MOST_ROWS", "Found", "PointProbe", "point_probe"]

#: rows that a probe finds
MOST_ROWS: Final = 64
#: updates that it looks at for them: a key that changes all the time has many in a second of history
_MOST_UPDATES: Final = 1024
#: room for one value: of a fixed width, or of variable length with its two offsets
_FIXED_BYTES: Final = 32
_LONGEST_BYTES: Final = 256

#: value of a key column -> its bytes
_Encode = Callable[[object], bytes]


class Found(NamedTuple):
    """Row ``row`` of ``run``, ``diff`` times, which is positive."""

    run: Run
    row: int
    diff: int


def _packed(code: str) -> _Encode:
    return struct.Struct(f"<{code}").pack


def _text(value: object) -> bytes:
    assert isinstance(value, str)
    return value.encode()


def _hexadecimal(value: object) -> bytes:
    assert isinstance(value, str)
    return bytes.fromhex(value)


#: from the literal (``expr.literals``) to the bytes of a cell
_ENCODE: Final[dict[Kind, _Encode]] = {
    Kind.BOOLEAN: _packed("?"),
    Kind.SMALLINT: _packed("h"),
    Kind.INTEGER: _packed("i"),
    Kind.BIGINT: _packed("q"),
    Kind.REAL: _packed("f"),
    Kind.DOUBLE: _packed("d"),
    Kind.TEXT: _text,
    Kind.VARCHAR: _text,
    Kind.BYTEA: _hexadecimal,
    Kind.DATE: _packed("i"),
    Kind.TIME: _packed("q"),
    Kind.TIMESTAMP: _packed("q"),
    Kind.TIMESTAMPTZ: _packed("q"),
    Kind.UUID: _hexadecimal,
    **dict.fromkeys(ELEMENT_KINDS, _hexadecimal),
}


def point_probe(types: Sequence[SqlType], hasher: Hasher) -> PointProbe | None:
    """A probe for keys of ``types``; None if there are none, or some whose values are not laid out here."""
    if not types or any(t.kind not in _ENCODE for t in types):
        return None
    return PointProbe(types, hasher)


class PointProbe:
    """One thread at a time: the buffers are its own.  Made by ``point_probe``."""

    def __init__(self, types: Sequence[SqlType], hasher: Hasher) -> None:
        kinds = cell_kinds(types)
        self._hasher = hasher
        self._encode = [_ENCODE[t.kind] for t in types]
        self._varlen = [kind in cells.VARLEN for kind in kinds]
        sizes = [16 + _LONGEST_BYTES if varlen else _FIXED_BYTES for varlen in self._varlen]
        self._buffer = np.zeros(sum(sizes), np.uint8)
        self._bytes = self._buffer.data
        self._starts = [sum(sizes[:i]) for i in range(len(sizes))]
        base = address_of(self._buffer)
        rows = []
        for kind, varlen, start in zip(kinds, self._varlen, self._starts, strict=True):
            values = base + start + (16 if varlen else 0)
            rows.append((kind, values, base + start if varlen else 0, 0, 0, 0))
        self._key = np.array(rows, np.int64).reshape(len(rows), cells.WIDTH)
        self._keys = self._key[None]
        self._hash = np.zeros(1, np.uint64)
        self._null_safe = np.zeros(len(types), np.uint8)
        self._state = np.zeros(SEARCH_STATE, np.int64)
        self._begin = np.array((0, 0, -1), np.int64)
        self._cursors = np.zeros(0, np.int64)
        self._out = np.empty((5, _MOST_UPDATES), np.int64)
        self._outs = tuple(self._out)
        self._ones = tuple(out[:1] for out in self._outs)
        self._equal = np.empty(_MOST_UPDATES, np.uint8)
        self._few = np.empty(128, np.int64)

    def set_key(self, values: Sequence[object]) -> bool:
        """The key to look for: literals of the columns' types, none NULL.  False: one is too long."""
        for value, encode, varlen, start in zip(values, self._encode, self._varlen, self._starts, strict=True):
            data = encode(value)
            size = len(data)
            if varlen:
                if size > _LONGEST_BYTES:
                    return False
                self._bytes[start + 8 : start + 16] = size.to_bytes(8, "little")
                start += 16
            self._bytes[start : start + size] = data
        hash_rows.short(self._key, 0, self._hasher.seed, self._hasher.mask, self._hash)
        return True

    def find(self, snapshot: Snapshot, below: int) -> list[Found] | None:
        """The rows with the key, after their updates before time ``below``.

        None: they come more than ``MOST_ROWS`` times, have more than ``_MOST_UPDATES`` updates, or are no multiset.
        """
        stacked = snapshot.stacked
        heads = stacked.heads
        if len(self._cursors) != len(heads):
            self._cursors = np.zeros(len(heads), np.int64)
        else:
            self._cursors.fill(0)
        self._state[:] = self._begin
        count = probe.short(
            heads, self._keys, self._hash, self._null_safe, below, self._cursors, self._state, *self._outs
        )
        if not count:
            return []
        if self._state[0] != 1:
            return None
        outs = self._ones if count == 1 else tuple(out[:count] for out in self._outs)
        equal = self._equal[:count]
        pairs_equal.short(self._keys, outs[0], stacked.key_descs, outs[1], outs[2], self._null_safe, 0, equal)
        runs, rows, diffs = outs[1], outs[2], outs[4]
        if count > MOST_ROWS and diffs.sum() > MOST_ROWS:  # adding up would be for nothing
            return None
        if count == 1:
            left = 1 if equal[0] and diffs[0] > 0 else 0 if not equal[0] else -1
        else:
            table = self._few if count < len(self._few) else np.empty(2 * _MOST_UPDATES, np.int64)
            left = net_picked.short(heads, stacked.descs, equal, runs, rows, diffs, table)
        if not 0 <= left <= MOST_ROWS:
            return None
        found = zip(runs[:left].tolist(), rows[:left].tolist(), diffs[:left].tolist(), strict=True)
        return [Found(stacked.runs[run], row, diff) for run, row, diff in found]
