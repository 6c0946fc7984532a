"""Splitting COPY's text and csv data into records and fields, escapes undone, as PostgreSQL 15 does it.

A block of data is scanned at a time; what is not complete at its end is left for the next call, which gets it again
with more data behind it.  ``state`` carries over what PostgreSQL remembers: the line number and the newline style.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from eddyline.kernels.kernel import kernel, subroutine
from eddyline.kernels.signatures import I64, U8, read, write

__all__ = [
    "BAD_CR",
    "BAD_MARKER",
    "BAD_MARKER_NEWLINE",
    "BAD_NEWLINE",
    "END",
    "MORE",
    "ODD",
    "STATE",
    "UNTERMINATED",
    "TwinScan",
    "meaningful_bytes",
    "scan_records",
    "scan_records_twin",
]

#: why a scan stopped
MORE: Final = 0  # the block is used up
END: Final = 1  # an end-of-copy marker
BAD_CR: Final = 2
BAD_NEWLINE: Final = 3
BAD_MARKER: Final = 4
BAD_MARKER_NEWLINE: Final = 5
UNTERMINATED: Final = 6  # a quoted field, at the end of the data

#: fields of ``state``: line number and newline style carry over; the rest is the last scan's result
LINE: Final = 0
EOL: Final = 1
STATUS: Final = 2
RECORDS: Final = 3
FIELDS: Final = 4
ODD: Final = 5  # whether some byte of a field may be 0 or no ASCII
STATE: Final = 6

UNKNOWN: Final = 0
NL: Final = 1
CR: Final = 2
CRNL: Final = 3

INCOMPLETE: Final = -1


@subroutine
def _is_null(data: Any, start: Any, stop: Any, null_text: Any) -> Any:
    if stop - start != null_text.shape[0]:
        return False
    for k in range(null_text.shape[0]):  # noqa: SIM110 - jitted
        if data[start + k] != null_text[k]:
            return False
    return True


@subroutine
def _marker(data: Any, at: Any, final: Any, eol: Any, csv: Any) -> Any:
    """What backslash and point at ``at`` mean: END, MORE (nothing, csv only), an error, or INCOMPLETE."""
    size = data.shape[0]
    i = at + 2
    if i + 1 >= size and final == 0:
        return INCOMPLETE
    if i >= size:
        return MORE if csv != 0 else BAD_MARKER
    if eol == CRNL:
        if data[i] == 10:
            return MORE if csv != 0 else BAD_MARKER_NEWLINE
        if data[i] != 13:
            return MORE if csv != 0 else BAD_MARKER
        i += 1
        if i >= size:
            return MORE if csv != 0 else BAD_MARKER
    c = data[i]
    if c not in (10, 13):
        return MORE if csv != 0 else BAD_MARKER
    if (eol in (NL, CRNL) and c != 10) or (eol == CR and c != 13):
        return BAD_MARKER_NEWLINE
    return END


@subroutine
def _hex_digit(c: Any) -> Any:
    if 48 <= c <= 57:
        return np.int64(c) - 48
    if 65 <= c <= 70:
        return np.int64(c) - 55
    if 97 <= c <= 102:
        return np.int64(c) - 87
    return np.int64(-1)


@subroutine
def _unescape(data: Any, at: Any, out: Any, written: Any) -> Any:
    """Writes the byte that the backslash at ``at`` and what follows it stand for; the position behind them."""
    size = data.shape[0]
    c: Any = np.int64(data[at + 1])
    i = at + 2
    if 48 <= c <= 55:
        c -= 48
        for _ in range(2):
            if i < size and 48 <= data[i] <= 55:
                c = c * 8 + np.int64(data[i]) - 48
                i += 1
            else:
                break
    elif c == 120 and i < size and _hex_digit(data[i]) >= 0:
        c = _hex_digit(data[i])
        i += 1
        if i < size and _hex_digit(data[i]) >= 0:
            c = c * 16 + _hex_digit(data[i])
            i += 1
    elif c == 98:
        c = 8
    elif c == 102:
        c = 12
    elif c == 110:
        c = 10
    elif c == 114:
        c = 13
    elif c == 116:
        c = 9
    elif c == 118:
        c = 11
    out[written] = np.uint8(c & 255)
    return i


@kernel(
    I64(read(U8), I64, read(I64), read(U8), read(U8), write(I64), write(U8), write(I64), write(U8), write(I64, 2)),
)
def scan_records(
    data: npt.NDArray[np.uint8],
    final: int,
    dialect: npt.NDArray[np.int64],
    null_text: npt.NDArray[np.uint8],
    meaningful: npt.NDArray[np.uint8],
    state: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    nulls: npt.NDArray[np.uint8],
    records: npt.NDArray[np.int64],
) -> int:
    """Scans all complete records of ``data``; returns the position behind them.

    ``dialect``: csv (0 or 1), delimiter, quote, escape.  ``meaningful``: ``meaningful_bytes`` of it.  ``final``: 1
    if no data follow.  Field *f* is ``out[offsets[f]:offsets[f + 1]]``, or NULL by ``nulls[f]``.  ``records[r]``:
    line, first field, start and stop in ``data``; one row more holds the line that stopped the scan and its start.
    Requires (unchecked) room for ``len(data)`` bytes, ``len(data) + 2`` fields and records.
    """
    csv, delimiter, quote, escape = dialect[0], dialect[1], dialect[2], dialect[3]
    size = data.shape[0]
    line, eol = state[LINE], state[EOL]
    count = fields = written = np.int64(0)
    offsets[0] = 0
    status = np.int64(MORE)
    seen = np.int64(0)  # all bytes of fields, or-ed; 256 for a 0
    at = np.int64(0)
    while at < size and status == MORE:
        start = at
        record_line = line + 1
        first_field, first_byte = fields, written
        field_start, field_byte = at, written
        in_quote = saw_quote = False
        stop = np.int64(-1)  # end of the record's text, once found
        following = at
        i = at
        while i < size:
            c = np.int64(data[i])
            if meaningful[c] == 0:  # most bytes, in quotes or not, mean nothing but themselves
                seen |= c
                out[written] = data[i]
                written += 1
                i += 1
                continue
            if c == 0:
                seen |= 256
            if in_quote:
                if c in (escape, quote) and i + 1 >= size and final == 0:
                    break
                if c == escape and i + 1 < size and (data[i + 1] == escape or data[i + 1] == quote):
                    out[written] = data[i + 1]
                    written += 1
                    i += 2
                elif c == quote:
                    in_quote = False
                    i += 1
                else:
                    if c == (10 if eol == NL else 13):
                        record_line += 1
                    out[written] = data[i]
                    written += 1
                    i += 1
                continue
            if c == 13:
                if eol in (UNKNOWN, CRNL):
                    if i + 1 >= size and final == 0:
                        break
                    if i + 1 < size and data[i + 1] == 10:
                        eol = np.int64(CRNL)
                        following = i + 2
                    elif eol == CRNL:
                        status = np.int64(BAD_CR)
                        break
                    else:
                        eol = np.int64(CR)
                        following = i + 1
                elif eol == NL:
                    status = np.int64(BAD_CR)
                    break
                else:
                    following = i + 1
                stop = i
                break
            if c == 10:
                if eol in (CR, CRNL):
                    status = np.int64(BAD_NEWLINE)
                    break
                eol = np.int64(NL)
                following = i + 1
                stop = i
                break
            if c == 92 and (csv == 0 or i == start):
                if i + 4 > size and final == 0:
                    break
                if i + 1 < size and data[i + 1] == 46:
                    found = _marker(data, i, final, eol, csv)
                    if found == INCOMPLETE:
                        break
                    if found == END:
                        status = np.int64(END)
                        stop = i
                        following = size
                        break
                    if found != MORE:
                        status = np.int64(found)
                        break
            if c == delimiter:
                nulls[fields] = 0
                if not saw_quote and _is_null(data, field_start, i, null_text):
                    nulls[fields] = 1
                    written = field_byte
                fields += 1
                offsets[fields] = written
                i += 1
                field_start, field_byte = i, written
                saw_quote = False
                continue
            if csv != 0 and c == quote:
                in_quote = saw_quote = True
                i += 1
                continue
            if c == 92 and csv == 0:
                if i + 1 >= size:
                    i += 1
                    continue
                i = _unescape(data, i, out, written)
                seen |= np.int64(out[written]) if out[written] != 0 else 256
                written += 1
                continue
            out[written] = data[i]
            written += 1
            i += 1
        if stop < 0 and status == MORE and i >= size and final != 0:
            if in_quote:
                status = np.int64(UNTERMINATED)
            else:
                stop = size
                following = size
        if stop < 0 or (stop == start and status == END):
            fields, written = first_field, first_byte
            records[count, 0] = record_line
            records[count, 1] = fields
            records[count, 2] = start
            records[count, 3] = min(i + 1, size)
            break
        nulls[fields] = 0
        if not saw_quote and _is_null(data, field_start, stop, null_text):
            nulls[fields] = 1
            written = field_byte
        fields += 1
        offsets[fields] = written
        records[count, 0] = record_line
        records[count, 1] = first_field
        records[count, 2] = start
        records[count, 3] = stop
        count += 1
        records[count, 0] = record_line + 1
        records[count, 1] = fields
        records[count, 2] = following
        records[count, 3] = following
        line = record_line
        at = following
    state[LINE] = line
    state[EOL] = eol
    state[STATUS] = status
    state[RECORDS] = count
    state[FIELDS] = fields
    state[ODD] = 1 if seen >= 128 else 0
    return int(at)


def meaningful_bytes(dialect: tuple[int, int, int, int]) -> npt.NDArray[np.uint8]:
    """uint8[256]: 0 for a byte that stands for itself wherever it is and that is ASCII's but not 0."""
    meaningful = np.zeros(256, np.uint8)
    meaningful[[0, 10, 13, 92, *(byte for byte in dialect[1:] if byte >= 0)]] = 1
    return meaningful


class TwinScan(NamedTuple):
    """``records``: (line, fields) each, a field being bytes or None."""

    records: list[tuple[int, list[bytes | None]]]
    status: int
    line: int


_TEXT_ESCAPES: Final = {98: 8, 102: 12, 110: 10, 114: 13, 116: 9, 118: 11}


def scan_records_twin(data: bytes, dialect: tuple[int, int, int, int], null_text: bytes) -> TwinScan:
    """All records of complete ``data``, in two steps as PostgreSQL's source has them: lines, then fields.

    ``line``: where the scan stopped.  Newline styles other than "\\n", and end markers, are not looked at.
    """
    csv, delimiter, quote, escape = dialect
    records: list[tuple[int, list[bytes | None]]] = []
    line, at = 0, 0
    while at < len(data):
        stop = _line_end(data, at, csv, quote, escape)
        text = data[at:stop]
        line += 1
        if csv:
            line += text.count(b"\n") if records else 0
            fields = _csv_fields(text, delimiter, quote, escape, null_text)
            if fields is None:
                return TwinScan(records, UNTERMINATED, line)
        else:
            fields = [None if raw == null_text else _text_value(raw) for raw in _text_fields(text, delimiter)]
        records.append((line, fields))
        at = stop + 1
    return TwinScan(records, MORE, line)


def _line_end(data: bytes, at: int, csv: int, quote: int, escape: int) -> int:
    in_quote = escaped = False
    while at < len(data):
        c = data[at]
        if csv:
            if in_quote and c == escape != quote:
                escaped = not escaped
            if c == quote and not escaped:
                in_quote = not in_quote
            if c != escape or escape == quote:
                escaped = False
            if c == 10 and not in_quote:
                return at
        elif c == 92:
            at += 1
        elif c == 10:
            return at
        at += 1
    return len(data)


def _csv_fields(text: bytes, delimiter: int, quote: int, escape: int, null_text: bytes) -> list[bytes | None] | None:
    fields: list[bytes | None] = []
    at = 0
    while True:
        begin, value, saw_quote = at, bytearray(), False
        while at < len(text) and text[at] != delimiter:
            if text[at] != quote:
                value.append(text[at])
                at += 1
                continue
            saw_quote = True
            at += 1
            while True:
                if at >= len(text):
                    return None
                if text[at] == escape and at + 1 < len(text) and text[at + 1] in (escape, quote):
                    value.append(text[at + 1])
                    at += 2
                elif text[at] == quote:
                    at += 1
                    break
                else:
                    value.append(text[at])
                    at += 1
        fields.append(None if not saw_quote and text[begin:at] == null_text else bytes(value))
        if at >= len(text):
            return fields
        at += 1


def _text_fields(text: bytes, delimiter: int) -> list[bytes]:
    fields, begin, at = [], 0, 0
    while at < len(text):
        if text[at] == delimiter:
            fields.append(text[begin:at])
            begin = at + 1
        at += 2 if text[at] == 92 else 1
    return [*fields, text[begin:]]


def _text_value(raw: bytes) -> bytes:
    value, at = bytearray(), 0
    while at < len(raw):
        if raw[at] != 92 or at + 1 >= len(raw):
            if raw[at] != 92:
                value.append(raw[at])
            at += 1
            continue
        at += 1
        digits = b"01234567" if 48 <= raw[at] <= 55 else b"0123456789abcdefABCDEF"
        begin = at + (raw[at] == 120)
        end = begin
        while end < len(raw) and raw[end] in digits and end - begin < (3 if len(digits) == 8 else 2):
            end += 1
        if (len(digits) == 8 or raw[at] == 120) and end > begin:
            value.append(int(raw[begin:end], 8 if len(digits) == 8 else 16) & 255)
            at = end
        else:
            value.append(_TEXT_ESCAPES.get(raw[at], raw[at]))
            at += 1
    return bytes(value)
