"""Messages as bytes: MessagePack for the structs, an Arrow IPC stream for rows."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from eddyline.errors import make_error
from eddyline.protocol.measures_messages import ProcessMeasures, ReportMeasures
from eddyline.protocol.messages import Command, Response
from eddyline.protocol.peer_messages import Exchanged
from eddyline.protocol.storage_messages import StorageRequest, StorageUpdate
from eddyline.repr.batch import Batch
from eddyline.repr.types import SqlType, arrow_type

__all__ = [
    "decode_command",
    "decode_exchanged",
    "decode_from_controller",
    "decode_from_process",
    "decode_response",
    "decode_storage_request",
    "decode_storage_update",
    "encode",
    "row_batch_bytes",
    "row_batch_from_bytes",
]

_ROWS = 1  # extension code of a RowBatch's payload
_TYPES_KEY = b"eddyline.types"


def row_batch_bytes(batch: Batch) -> bytes:
    """``batch`` as an Arrow IPC stream: its columns ``c0``…, then ``time`` and ``diff``; types in the metadata."""
    names = [f"c{i}" for i in range(len(batch.types))]
    fields = [pa.field(n, arrow_type(t)) for n, t in zip(names, batch.types, strict=True)]
    fields += [pa.field("time", pa.int64()), pa.field("diff", pa.int64())]
    schema = pa.schema(fields, metadata={_TYPES_KEY: msgspec.msgpack.encode(batch.types)})
    arrays = [*batch.columns, pa.array(batch.times), pa.array(batch.diffs)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    return bytes(sink.getvalue())


def row_batch_from_bytes(data: bytes) -> Batch:
    """The batch that ``row_batch_bytes`` wrote.  08P01 if the bytes are something else."""
    try:
        with pa.ipc.open_stream(data) as reader:
            types = msgspec.msgpack.decode((reader.schema.metadata or {})[_TYPES_KEY], type=tuple[SqlType, ...])
            record = reader.read_next_batch()
        if [f.type for f in record.schema] != [*map(arrow_type, types), pa.int64(), pa.int64()]:
            raise make_error("08P01", "malformed rows in a message")
        *columns, times, diffs = record.columns
        return Batch(types, tuple(columns), _int64(times), _int64(diffs))
    except (pa.ArrowException, OSError, KeyError, StopIteration, msgspec.MsgspecError, ValueError) as error:
        raise make_error("08P01", "malformed rows in a message") from error


def _int64(array: pa.Array) -> Any:
    return np.asarray(array.to_numpy(zero_copy_only=True))


def _enc_hook(value: object) -> object:
    if isinstance(value, Batch):
        return msgspec.msgpack.Ext(_ROWS, row_batch_bytes(value))
    raise NotImplementedError(f"no encoding for {type(value).__name__}")


def _ext_hook(code: int, data: memoryview) -> object:
    if code != _ROWS:
        raise ValueError(f"unknown extension {code}")
    return row_batch_from_bytes(bytes(data))


_encoder = msgspec.msgpack.Encoder(enc_hook=_enc_hook)
_commands: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Command, ext_hook=_ext_hook)
_responses: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Response, ext_hook=_ext_hook)
_from_controller: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Command | ReportMeasures, ext_hook=_ext_hook)
_from_process: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Response | ProcessMeasures, ext_hook=_ext_hook)
_requests: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(StorageRequest, ext_hook=_ext_hook)
_updates: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(StorageUpdate, ext_hook=_ext_hook)
_exchanged: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(Exchanged, ext_hook=_ext_hook)


_Message: TypeAlias = Command | ReportMeasures | Response | ProcessMeasures | StorageRequest | StorageUpdate | Exchanged


def encode(message: _Message) -> bytes:
    return _encoder.encode(message)


def decode_command(data: bytes) -> Command:
    """08P01 if ``data`` is no command."""
    command: Command = _decode(_commands, data)
    return command


def decode_response(data: bytes) -> Response:
    """08P01 if ``data`` is no response."""
    response: Response = _decode(_responses, data)
    return response


def decode_from_controller(data: bytes) -> Command | ReportMeasures:
    """What a process reads on its connection for commands; 08P01 if ``data`` is none of it."""
    message: Command | ReportMeasures = _decode(_from_controller, data)
    return message


def decode_from_process(data: bytes) -> Response | ProcessMeasures:
    """What a controller reads on a connection for commands; 08P01 if ``data`` is none of it."""
    message: Response | ProcessMeasures = _decode(_from_process, data)
    return message


def decode_storage_request(data: bytes) -> StorageRequest:
    """08P01 if ``data`` is no request."""
    request: StorageRequest = _decode(_requests, data)
    return request


def decode_storage_update(data: bytes) -> StorageUpdate:
    """08P01 if ``data`` is no update."""
    update: StorageUpdate = _decode(_updates, data)
    return update


def decode_exchanged(data: bytes) -> Exchanged:
    """08P01 if ``data`` is no message between processes of a replica."""
    message: Exchanged = _decode(_exchanged, data)
    return message


def _decode(decoder: msgspec.msgpack.Decoder[Any], data: bytes) -> Any:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, ValueError) as error:
        raise make_error("08P01", "malformed message") from error
