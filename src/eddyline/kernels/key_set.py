"""Which of many hashes are those of a few keys, and the rows of the others dealt into buckets, where they are found.

A *key set* is uint64 words, a power of two of them, at least two.  The top bits of a hash (``hash >> shift``) name the
word, three groups of its low bits one bit of that word each.  It says yes to every key that was added, and to some
others: about one in a hundred where a word has four keys.

A *pick* names a row: its batch in the upper 32 bits, its position there in the lower ones.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.signatures import I64, U8, U64, VOID, read, write

__all__ = [
    "TAKE_STATE", "add_keys", "add_keys_twin", "deal_others", "deal_others_twin", "find_keys", "find_keys_twin",
    "take_picks", "take_picks_twin",
]  # fmt: skip

#: ``take_picks`` state: 0 next wanted hash, 1 next place in its bucket (-1: the bucket's first)
TAKE_STATE: Final = 2

_ONE: Final = np.uint64(1)
_BIT: Final = np.uint64(63)
_SECOND: Final = np.uint64(6)
_THIRD: Final = np.uint64(12)
_32: Final = np.int64(32)


@subroutine
def _bits(value: Any) -> Any:
    """The bits that a key sets in its word."""
    second = (value >> _SECOND) & _BIT
    third = (value >> _THIRD) & _BIT
    return (_ONE << (value & _BIT)) | (_ONE << second) | (_ONE << third)


@kernel(VOID(read(U64), I64, write(U64)))
def add_keys(hashes: npt.NDArray[np.uint64], shift: int, words: npt.NDArray[np.uint64]) -> None:
    """O(n)."""
    for i in range(hashes.shape[0]):
        words[np.int64(hashes[i] >> np.uint64(shift))] |= _bits(hashes[i])


@kernel(I64(read(U64), I64, read(U64), I64, write(I64), write(U8)))
def find_keys(
    hashes: npt.NDArray[np.uint64],
    shift: int,
    words: npt.NDArray[np.uint64],
    bucket_shift: int,
    counts: npt.NDArray[np.int64],
    found: npt.NDArray[np.uint8],
) -> int:
    """``found[i]``: 1 if the set says yes to hash *i*, else 0; ``counts[b]`` grows by the others of bucket *b*
    (``hash >> bucket_shift``).  Returns how many were found.  O(n)."""
    total = 0
    for i in range(hashes.shape[0]):
        value = hashes[i]
        bits = _bits(value)
        if words[np.int64(value >> np.uint64(shift))] & bits == bits:
            found[i] = 1
            total += 1
        else:
            found[i] = 0
            counts[np.int64(value >> np.uint64(bucket_shift))] += 1
    return total


@kernel(VOID(read(U64), read(U8), I64, I64, write(I64), write(U64), write(I64)))
def deal_others(
    hashes: npt.NDArray[np.uint64],
    found: npt.NDArray[np.uint8],
    batch: int,
    bucket_shift: int,
    cursors: npt.NDArray[np.int64],
    out_hashes: npt.NDArray[np.uint64],
    out_picks: npt.NDArray[np.int64],
) -> None:
    """Puts hash and pick of the rows of ``batch`` that were not found at the cursors of their buckets, which move on.
    O(n)."""
    first = batch << _32
    for i in range(hashes.shape[0]):
        if found[i] != 0:
            continue
        bucket = np.int64(hashes[i] >> np.uint64(bucket_shift))
        at = cursors[bucket]
        cursors[bucket] = at + 1
        out_hashes[at] = hashes[i]
        out_picks[at] = first | i


@kernel(I64(read(U64), I64, read(U64), read(I64), I64, read(U64), write(I64), write(I64), write(I64)))
def take_picks(
    wanted: npt.NDArray[np.uint64],
    shift: int,
    words: npt.NDArray[np.uint64],
    starts: npt.NDArray[np.int64],
    bucket_shift: int,
    hashes: npt.NDArray[np.uint64],
    picks: npt.NDArray[np.int64],
    state: npt.NDArray[np.int64],
    out: npt.NDArray[np.int64],
) -> int:
    """The picks of the dealt rows whose hash is wanted and that the set says no to, until ``out`` is full.  Returns
    their number; all are out iff state[0] == len(wanted).  A pick that was given is -1 from then on.

    Bucket *b* lies at ``starts[b] .. starts[b + 1]``.  ``state``: (0, -1) before the first call.  O(wanted × bucket),
    O(1) for a hash that the set says yes to or that is its neighbour's.
    """
    count = 0
    n = wanted.shape[0]
    row = state[0]
    at = state[1]
    while row < n:
        value = wanted[row]
        if at < 0:
            bits = _bits(value)
            if words[np.int64(value >> np.uint64(shift))] & bits == bits or (row > 0 and wanted[row - 1] == value):
                row += 1
                continue
            at = starts[np.int64(value >> np.uint64(bucket_shift))]
        stop = starts[np.int64(value >> np.uint64(bucket_shift)) + 1]
        while at < stop:
            if hashes[at] == value and picks[at] >= 0:
                if count == out.shape[0]:
                    state[0] = row
                    state[1] = at
                    return count
                out[count] = picks[at]
                picks[at] = -1
                count += 1
            at += 1
        at = -1
        row += 1
    state[0] = n
    state[1] = -1
    return count


def _bits_twin(value: int) -> int:
    return 1 << (value & 63) | 1 << (value >> 6 & 63) | 1 << (value >> 12 & 63)


def _has(words: Any, shift: int, value: int) -> bool:
    bits = _bits_twin(value)
    return int(words[value >> shift]) & bits == bits


def add_keys_twin(hashes: Any, shift: int, words: list[int]) -> None:
    for value in hashes.tolist():
        words[value >> shift] |= _bits_twin(value)


def find_keys_twin(hashes: Any, shift: int, words: Any) -> list[int]:
    """``found`` of each."""
    return [int(_has(words, shift, value)) for value in hashes.tolist()]


def deal_others_twin(hashes: Any, found: Any, batch: int) -> list[tuple[int, int]]:
    """(hash, pick) of the rows that were not found."""
    return [(value, batch << 32 | i) for i, value in enumerate(hashes.tolist()) if not found[i]]


def take_picks_twin(wanted: Any, shift: int, words: Any, dealt: list[tuple[int, int]]) -> list[int]:
    """The picks of all of ``dealt`` (hash, pick) that are wanted, in any order; they are gone from it afterwards."""
    values = {value for value in wanted.tolist() if not _has(words, shift, value)}
    taken = [pick for value, pick in dealt if value in values]
    dealt[:] = [(value, pick) for value, pick in dealt if value not in values]
    return taken
