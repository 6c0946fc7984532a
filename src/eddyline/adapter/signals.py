"""``pg_cancel_backend`` and ``pg_terminate_backend``: what they do, once for each row of the SELECT that calls them."""

from __future__ import annotations

import time
from typing import Final

import pyarrow as pa

from eddyline.adapter.access_rules import AccessRules, Role
from eddyline.adapter.notices import warning
from eddyline.adapter.outcome import ResultSet
from eddyline.adapter.read import ReadContext
from eddyline.adapter.session_list import Activity, SessionList
from eddyline.errors import make_error
from eddyline.expr.text_io import literal_array
from eddyline.repr.batch import concat_arrays
from eddyline.repr.types import BOOLEAN
from eddyline.sql.statements import Signal

__all__ = ["signalled"]

_LOOK_AGAIN_S: Final = 0.01


def signalled(context: ReadContext, signals: tuple[Signal, ...], result: ResultSet) -> tuple[ResultSet, list[str]]:
    """The result with what became of each process in place of its number, and warnings.

    42501 for the session of a superuser or of a role whose rights the current one does not have.
    """
    columns, types = list(result.columns), list(result.types)
    notices: list[str] = []
    for signal in signals:
        numbers = columns[signal.output].to_pylist()
        columns[signal.output] = _booleans([_sent(context, signal, number, notices) for number in numbers])
        types[signal.output] = BOOLEAN
    return ResultSet(result.names, tuple(types), tuple(columns), result.rows, result.time), notices


def _booleans(values: list[bool | None]) -> pa.Array:
    arrays = [literal_array(value, BOOLEAN, 1) for value in values]
    return concat_arrays(arrays) if arrays else literal_array(None, BOOLEAN, 0)


def _sent(context: ReadContext, signal: Signal, process: int | None, notices: list[str]) -> bool | None:
    if process is None:
        return None
    sessions = context.engine.sessions
    target = sessions.of(process)
    if target is None:
        notices.append(warning(f"PID {process} is not a PostgreSQL backend process"))
        return False
    rules = context.engine.catalog.snapshot().access
    _check(rules, rules.role(context.catalog.users[0]), target, signal)
    if not signal.terminate:
        target.client.cancel()
        context.interrupt.check()  # its own
        return True
    target.client.end()
    context.interrupt.check()
    if signal.timeout_ms and not _has_ended(context, sessions, target, signal.timeout_ms):
        notices.append(warning(f"backend with PID {process} did not terminate within {signal.timeout_ms} milliseconds"))
        return False
    return True


def _check(rules: AccessRules, role: Role, target: Activity, signal: Signal) -> None:
    if role.superuser:
        return
    owner = rules.roles.get(target.user)
    if owner is not None and owner.superuser:
        what = "terminate superuser process" if signal.terminate else "cancel superuser query"
        raise make_error("42501", f"must be a superuser to {what}")
    if owner is None or owner.id not in rules.acts_as(role):
        what = "process is being terminated" if signal.terminate else "query is being canceled"
        raise make_error("42501", f"must be a member of the role whose {what} or member of pg_signal_backend")


def _has_ended(context: ReadContext, sessions: SessionList, target: Activity, timeout_ms: int) -> bool:
    """Waits for it, for so long."""
    deadline = time.monotonic() + timeout_ms / 1000
    while sessions.of(target.number()) is target:
        context.interrupt.check()
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_AGAIN_S)
    return True
