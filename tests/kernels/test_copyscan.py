"""The COPY scanner against its twin, whole and in pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.kernels import copyscan
from eddyline.kernels.copyscan import TwinScan, meaningful_bytes, scan_records, scan_records_twin

Dialect = tuple[int, int, int, int]
TEXT: Dialect = (0, ord("\t"), -1, -1)
CSV: Dialect = (1, ord(","), ord('"'), ord('"'))
CSV_BACKSLASH: Dialect = (1, ord(","), ord('"'), ord("\\"))


def scan(data: bytes, dialect: Dialect, null_text: bytes, *, step: int | None = None) -> TwinScan:
    """All records; with ``step``, fed that many bytes more at a time."""
    state = np.zeros(copyscan.STATE, np.int64)
    meaningful = meaningful_bytes(dialect)
    nulls_at = np.frombuffer(null_text, np.uint8)
    records: list[tuple[int, list[bytes | None]]] = []
    begin, end = 0, len(data) if step is None else min(step, len(data))
    while True:
        part = np.frombuffer(data[begin:end], np.uint8)
        size = len(part)
        out, nulls = np.empty(size, np.uint8), np.empty(size + 2, np.uint8)
        offsets, marks = np.empty(size + 3, np.int64), np.zeros((size + 2, 4), np.int64)
        final = end == len(data)
        used = scan_records(
            part, int(final), np.array(dialect), nulls_at, meaningful, state, out, offsets, nulls, marks
        )
        for r in range(int(state[copyscan.RECORDS])):
            stop = marks[r + 1, 1] if r + 1 < state[copyscan.RECORDS] else state[copyscan.FIELDS]
            fields = [
                None if nulls[f] else out[offsets[f] : offsets[f + 1]].tobytes() for f in range(marks[r, 1], stop)
            ]
            records.append((int(marks[r, 0]), fields))
            if any(f is not None and (not f.isascii() or b"\0" in f) for f in fields):
                assert state[copyscan.ODD] == 1
        status = int(state[copyscan.STATUS])
        if status != copyscan.MORE or final:
            line = int(marks[int(state[copyscan.RECORDS]), 0]) if status != copyscan.MORE else int(state[copyscan.LINE])
            return TwinScan(records, status, line)
        begin += used
        end = min(end + (step or 0), len(data))


def data_of(alphabet: str) -> st.SearchStrategy[bytes]:
    return st.text(alphabet, max_size=40).map(str.encode)


@pytest.mark.parametrize("step", [None, 1, 3])
@given(data=data_of("a1\t\n\\N\\xF70né\0"))
@settings(max_examples=200, deadline=None)
def test_text_is_split_and_unescaped_as_the_twin_does(step: int | None, data: bytes) -> None:
    assert scan(data, TEXT, b"\\N", step=step) == scan_records_twin(data, TEXT, b"\\N")


@pytest.mark.parametrize("dialect", [CSV, CSV_BACKSLASH], ids=["csv", "backslash"])
@pytest.mark.parametrize("step", [None, 1, 3])
@given(data=data_of('a,"\n\\é').filter(lambda d: b"\\" not in d or not d.startswith(b"\\")))
@settings(max_examples=200, deadline=None)
def test_csv_is_split_and_unquoted_as_the_twin_does(dialect: Dialect, step: int | None, data: bytes) -> None:
    # the first newline decides whether later ones inside quotes count as lines
    data = b"x\n" + data
    assert scan(data, dialect, b"", step=step) == scan_records_twin(data, dialect, b"")


def test_an_end_marker_ends_the_data() -> None:
    found = scan(b"1\n\\.\n2\n", TEXT, b"\\N")
    assert (found.records, found.status) == ([(1, [b"1"])], copyscan.END)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"1\n2\r\n", copyscan.BAD_CR),
        (b"1\r\n2\n", copyscan.BAD_NEWLINE),
        (b"1\n\\.2\n", copyscan.BAD_MARKER),
        (b"1\r\n\\.\n", copyscan.BAD_MARKER_NEWLINE),
    ],
)
def test_what_does_not_fit_the_newline_style_stops_the_scan(data: bytes, status: int) -> None:
    found = scan(data, TEXT, b"\\N")
    assert (found.records, found.status, found.line) == ([(1, [b"1"])], status, 2)


def test_carriage_returns_alone_end_lines() -> None:
    assert scan(b"1\r2\r", TEXT, b"\\N").records == [(1, [b"1"]), (2, [b"2"])]


@pytest.mark.parametrize("data", [b"a\t1\n", b'"a,b\n",2\n', b"\\N\t\\x41\\t\n", b"\\N\n" * 3])
def test_fields_of_ascii_are_known_as_such(data: bytes) -> None:
    dialect = CSV if b'"' in data else TEXT
    state, size = np.zeros(copyscan.STATE, np.int64), len(data)
    scan_records(
        np.frombuffer(data, np.uint8),
        1,
        np.array(dialect),
        np.frombuffer(b"\\N", np.uint8),
        meaningful_bytes(dialect),
        state,
        np.empty(size, np.uint8),
        np.empty(size + 3, np.int64),
        np.empty(size + 2, np.uint8),
        np.zeros((size + 2, 4), np.int64),
    )
    assert state[copyscan.ODD] == 0
