"""Messages survive the trip through bytes; other bytes are refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from eddyline.errors import DatabaseError
from eddyline.expr.ir import Call, Column, FilterStep, Literal, MapStep, Mfp
from eddyline.plan.dataflow import Arrange, DataflowDescription, ExportIndex, ImportSource
from eddyline.protocol.codec import decode_command, decode_response, encode, row_batch_bytes, row_batch_from_bytes
from eddyline.protocol.messages import (
    AllowCompaction,
    CancelPeek,
    Command,
    CreateDataflow,
    Frontiers,
    Hello,
    Peek,
    PeekResponse,
    Response,
    RowBatch,
    Status,
    SubscribeResponse,
)
from eddyline.repr.batch import Batch
from eddyline.repr.time import EMPTY, Time
from eddyline.repr.types import BIGINT, BOOLEAN, INTERVAL, TEXT, TIMESTAMPTZ, numeric

MFP = Mfp(
    (
        MapStep(Call("add", (Column(0, BIGINT), Literal(1, BIGINT)), BIGINT)),
        FilterStep(Literal(True, BOOLEAN)),
    ),
    (1,),
    (BIGINT,),
)
TYPES = (BIGINT,)
DATAFLOW = DataflowDescription(
    "d", (ImportSource("t", TYPES), Arrange(0, (0,), TYPES), ExportIndex("i", "t", 1, (0,), TYPES)), 3, EMPTY
)


@pytest.mark.parametrize(
    "command",
    [
        Hello("n"),
        CreateDataflow(DATAFLOW),
        AllowCompaction("i", EMPTY),
        Peek("i", "u", 7, (BIGINT, TEXT, BOOLEAN), ((1, "x", None), (-5, "", True)), MFP, 3),
        CancelPeek("u"),
    ],
)
def test_commands_round_trip(command: Command) -> None:
    assert decode_command(encode(command)) == command


@pytest.mark.parametrize(
    "response",
    [
        Frontiers("i", EMPTY),
        PeekResponse("u", error=("22012", "division by zero", None)),
        PeekResponse("u", canceled=True),
        SubscribeResponse("s", 1, 5),
        Status("gone", fatal=True),
    ],
)
def test_responses_round_trip(response: Response) -> None:
    assert decode_response(encode(response)) == response


def test_rows_travel_as_arrow() -> None:
    types = (BIGINT, TEXT, numeric(2), TIMESTAMPTZ, INTERVAL)
    columns = (
        pa.array([1, None], pa.int64()),
        pa.array(["é", None], pa.large_string()),
        pa.array([None, 1], pa.decimal128(38, 2)),
        pa.array([0, None], pa.timestamp("us", tz="UTC")),
        pa.array([b"x" * 16, None], pa.binary(16)),
    )
    batch = Batch(types, columns, np.array([3, 4]), np.array([1, -2]))
    decoded = decode_response(encode(PeekResponse("u", rows=RowBatch(batch))))
    assert isinstance(decoded, PeekResponse)
    assert decoded.rows is not None
    rows = decoded.rows.payload
    assert isinstance(rows, Batch)
    assert rows.types == types
    assert [c.to_pylist() for c in rows.columns] == [c.to_pylist() for c in columns]
    assert (rows.times.tolist(), rows.diffs.tolist()) == ([3, 4], [1, -2])


def test_rows_in_pieces_arrive_in_order() -> None:
    types = (BIGINT,)
    pieces = [Batch.at(types, (pa.array([n, n + 1], pa.int64()),), 2, Time(7)) for n in (1, 5)]
    response = PeekResponse("u", rows=RowBatch.of(types, [pieces[0], Batch.empty(types), pieces[1]]))
    decoded = decode_response(encode(response))
    assert isinstance(decoded, PeekResponse)
    for rows in (response.rows, decoded.rows):
        assert rows is not None
        assert [p.columns[0].to_pylist() for p in rows.pieces()] == [[1, 2], [5, 6]]
        assert rows.batch().columns[0].to_pylist() == [1, 2, 5, 6]
    assert len(RowBatch.of(types, []).batch()) == 0


def test_other_bytes_are_refused() -> None:
    good = encode(CreateDataflow(DATAFLOW))
    rng = np.random.default_rng(1)
    samples = [b"", b"\x00", good[:-1], encode(Frontiers("i", 1)), bytes(rng.integers(0, 256, 200, np.uint8))]
    for data in samples:
        with pytest.raises(DatabaseError) as caught:
            decode_command(data)
        assert caught.value.sqlstate == "08P01"
    batch = row_batch_bytes(Batch.empty((BIGINT,)))
    for data in (b"", batch[:20], b"\xff" * 64):
        with pytest.raises(DatabaseError):
            row_batch_from_bytes(data)
