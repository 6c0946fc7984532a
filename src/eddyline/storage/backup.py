"""Copies of a durable directory, also of one that is in use, by this process or another.

A prefix of the newest log file, with the files that it names, is a database: so the newest log file is copied first, as
far as it goes at that moment, then what it names.  If compaction removes one of these meanwhile, the copy begins again.
"""

from __future__ import annotations

from eddyline.errors import InternalError, make_error
from eddyline.storage.directory import begun_logs, is_database, recovered_state, write_format
from eddyline.storage.files import File, Files, corrupted, file_error
from eddyline.storage.frames import FrameReader
from eddyline.storage.log import log_name, rows_name

__all__ = ["copy_database"]

_ATTEMPTS = 20
_DAMAGED_ATTEMPTS = 2
_BLOCK_BYTES = 1 << 20
#: makes a copy that was not finished something else than a database
_UNFINISHED_NAME = "UNFINISHED"


class _Outdated(Exception):
    """What was to be copied has been replaced."""


def copy_database(source: Files, target: Files) -> int:
    """Copies the database in ``source``, as it is at some moment meanwhile, to ``target``, which is empty; its bytes.

    All checksums are verified.  Raises 42809 where ``source`` is no database, 58P02 if ``target`` is not empty, XX001
    for damage, and what the system refuses; then nothing is left in ``target``.
    """
    try:
        if not is_database(source):
            raise make_error("42809", f'directory "{source.title}" is not a database', hint="There is nothing to copy.")
    except OSError as error:
        raise file_error(error, "open", source.title) from error
    begun = False
    try:
        if target.names():
            raise make_error(
                "58P02", f'directory "{target.title}" is not empty', hint="Give the copy a directory of its own."
            )
        begun = True
        target.create(_UNFINISHED_NAME).close()
        size = _copied(source, target)
        write_format(target)
        target.remove(_UNFINISHED_NAME)
        target.sync_names()
    except OSError as error:
        _give_up(target, begun=begun)
        raise file_error(error, "copy to", target.title) from error
    except BaseException:
        _give_up(target, begun=begun)
        raise
    return size


def _copied(source: Files, target: Files) -> int:
    """Copies until that succeeds without anything having gone meanwhile."""
    for attempt in range(_ATTEMPTS):
        try:
            return _copy(source, target)
        except _Outdated:
            _clear(target)
        except InternalError:
            # A log file that is just being begun looks like a damaged one; it does not for long.
            if attempt >= _DAMAGED_ATTEMPTS:
                raise
            _clear(target)
    raise make_error(
        "55006", f'directory "{source.title}" changes faster than it can be copied', hint="Try again, or elsewhere."
    )


def _copy(source: Files, target: Files) -> int:
    newest = _copy_newest(source, target)
    found = recovered_state(target)
    names = {rows_name(t.rows.number): t.rows.bytes for t in found.state.tables.values() if t.rows is not None}
    names.update({log_name(span.number): span.end for span in found.state.logs})
    size = newest[1]
    for name, end in names.items():
        size += _copy_file(source, target, name, end)
        _verify(target, name)
    _check_unchanged(source, target, *newest)
    target.sync_names()
    return size


def _copy_newest(source: Files, target: Files) -> tuple[str, int]:
    """The newest log file that has been begun: its name, and how much of it was copied."""
    for number in begun_logs(source):
        return log_name(number), _copy_file(source, target, log_name(number), None)
    raise corrupted(source.title, "It has no log file with a readable head.")


def _copy_file(source: Files, target: Files, name: str, end: int | None) -> int:
    """Copies the first ``end`` bytes, or all there are now, and syncs them."""
    try:
        reading = source.open(name)
    except FileNotFoundError as error:
        raise _Outdated from error
    try:
        size = reading.size() if end is None else end
        writing = target.create(name)
        try:
            _copy_bytes(reading, writing, size)
            writing.sync()
        finally:
            writing.close()
    finally:
        reading.close()
    return size


def _copy_bytes(reading: File, writing: File, size: int) -> None:
    for offset in range(0, size, _BLOCK_BYTES):
        writing.write(reading.read(offset, min(_BLOCK_BYTES, size - offset)), offset)


def _verify(target: Files, name: str) -> None:
    file = target.open(name)
    try:
        frames = FrameReader(file)
        for _ in frames:
            continue
        if not frames.whole:
            raise corrupted(f"{target.title}/{name}", f"The copy is not readable at byte {frames.offset}.")
    finally:
        file.close()


def _check_unchanged(source: Files, target: Files, name: str, size: int) -> None:
    """That the end of the newest log file was not cut off meanwhile, as that of a commit that failed is."""
    start = max(0, size - _BLOCK_BYTES)
    files = []
    try:
        for folder in (source, target):
            try:
                files.append(folder.open(name))
            except FileNotFoundError:
                return  # followed by others, and gone: it had been good
        if files[0].read(start, size - start) != files[1].read(start, size - start):
            raise _Outdated
    finally:
        for file in files:
            file.close()


def _clear(target: Files) -> None:
    for name in target.names():
        if name != _UNFINISHED_NAME:
            target.remove(name)


def _give_up(target: Files, *, begun: bool) -> None:
    """Removes what there is of a copy, and what says that it is not finished last."""
    if begun:
        _clear(target)
        if _UNFINISHED_NAME in target.names():
            target.remove(_UNFINISHED_NAME)
