"""What a statement says besides its result: texts with the severity and the SQLSTATE that clients are told."""

from __future__ import annotations

from typing import Final

__all__ = ["Notice", "no_transaction_block", "notice", "severity_of", "skipped", "sqlstate_of", "warning"]

_EXISTS: Final = {"schema": "42P06", "relation": "42P07"}


class Notice(str):
    """A text; ``severity`` is NOTICE or WARNING."""

    __slots__ = ("severity", "sqlstate")
    severity: str
    sqlstate: str


def notice(text: str, sqlstate: str = "00000") -> Notice:
    return _made(text, "NOTICE", sqlstate)


def warning(text: str, sqlstate: str = "01000") -> Notice:
    return _made(text, "WARNING", sqlstate)


def skipped(kind: str, name: str, *, exists: bool) -> Notice:
    """Of IF [NOT] EXISTS."""
    if exists:
        return notice(f'{kind} "{name}" already exists, skipping', _EXISTS.get(kind, "42710"))
    return notice(f'{kind} "{name}" does not exist, skipping')


def no_transaction_block(what: str) -> Notice:
    """That ``what`` did nothing outside of one."""
    return warning(f"{what} can only be used in transaction blocks", "25P01")


def severity_of(text: str) -> str:
    return text.severity if isinstance(text, Notice) else "NOTICE"


def sqlstate_of(text: str) -> str:
    return text.sqlstate if isinstance(text, Notice) else "00000"


def _made(text: str, severity: str, sqlstate: str) -> Notice:
    made = Notice(text)
    made.severity, made.sqlstate = severity, sqlstate
    return made
