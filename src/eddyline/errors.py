"""The whole error surface: one tree, sorted by what the caller does about it.

    Warning
    Error                        every failure; .sqlstate .position .detail .hint .context
    ├── InterfaceError           the API was misused (closed session, wrong argument): fix the program
    └── DatabaseError
        ├── ProgrammingError     the statement is wrong (syntax, names, types): fix the statement
        ├── NotSupportedError    valid SQL that we do not have: rewrite the statement
        ├── DataError            a value is wrong (overflow, division by zero): fix the data
        │   └── NoLongerReadableError   the time asked for is below a collection's since: ask for a later one
        ├── IntegrityError       a constraint refused the write: fix the data
        ├── OperationalError     cancelled, timed out, out of a resource, lost replica: retry or give up
        └── InternalError        our fault: report it

The class follows from the SQLSTATE (``error_class``), so that a code raised anywhere reaches every frontend
as the same exception.  Names are those of PEP 249; codes are those of PostgreSQL 15, appendix A.
Row-level failures inside a dataflow are data (``eddyline.repr.rowerror``), not exceptions.
"""

from __future__ import annotations

__all__ = [
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NoLongerReadableError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Warning",
    "error_class",
    "exhausted",
    "make_error",
    "unsupported",
]


class Warning(Exception):  # the name PEP 249 asks for
    """An important warning (PEP 249)."""


class Error(Exception):
    """Base of every error; ``message`` is lower case without a full stop.

    ``position``: 1-based character offset into the statement, or None.  ``context``: where in the data that are read it
    happened, or None.
    """

    default_sqlstate = "XX000"

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str | None = None,
        position: int | None = None,
        detail: str | None = None,
        hint: str | None = None,
        context: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate if sqlstate is not None else self.default_sqlstate
        self.position = position
        self.detail = detail
        self.hint = hint
        self.context = context

    def __str__(self) -> str:
        lines = [self.message]
        if self.detail:
            lines.append(f"DETAIL: {self.detail}")
        if self.hint:
            lines.append(f"HINT: {self.hint}")
        if self.context:
            lines.append(f"CONTEXT: {self.context}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        said = self.message, self.sqlstate, self.position, self.detail, self.hint, self.context
        return (_rebuild, (type(self), *said))


def _rebuild(
    cls: type[Error],
    message: str,
    sqlstate: str,
    position: int | None,
    detail: str | None,
    hint: str | None,
    context: str | None,
) -> Error:
    return cls(message, sqlstate=sqlstate, position=position, detail=detail, hint=hint, context=context)


class InterfaceError(Error):
    default_sqlstate = "08003"


class DatabaseError(Error):
    default_sqlstate = "XX000"


class ProgrammingError(DatabaseError):
    default_sqlstate = "42601"


class NotSupportedError(DatabaseError):
    default_sqlstate = "0A000"


class DataError(DatabaseError):
    default_sqlstate = "22000"


class NoLongerReadableError(DataError):
    """22023: history below ``since`` has been folded together; whoever can read from elsewhere does."""

    default_sqlstate = "22023"

    @classmethod
    def at(cls, time: int, since: int) -> NoLongerReadableError:
        """Of a collection, or an index, that answers from ``since`` on."""
        return cls(
            f"time {time} is no longer readable",
            detail=f"The oldest readable time (since) is {since}.",
            hint="Read at that time or a later one, or leave AS OF out.",
        )


class IntegrityError(DatabaseError):
    default_sqlstate = "23000"


class OperationalError(DatabaseError):
    default_sqlstate = "58000"


class InternalError(DatabaseError):
    default_sqlstate = "XX000"


_BY_CLASS: dict[str, type[DatabaseError]] = {
    "08": OperationalError,
    "0A": NotSupportedError,
    "21": DataError,
    "22": DataError,
    "23": IntegrityError,
    "40": OperationalError,
    "53": OperationalError,
    "54": OperationalError,
    "55": OperationalError,
    "57": OperationalError,
    "58": OperationalError,
    "XX": InternalError,
}


def error_class(sqlstate: str) -> type[DatabaseError]:
    """The exception class of a SQLSTATE; what no class claims is a fault of the statement."""
    return _BY_CLASS.get(sqlstate[:2], ProgrammingError)


def make_error(
    sqlstate: str,
    message: str,
    *,
    position: int | None = None,
    detail: str | None = None,
    hint: str | None = None,
    context: str | None = None,
) -> DatabaseError:
    """The exception for ``sqlstate``, not raised."""
    found = error_class(sqlstate)
    return found(message, sqlstate=sqlstate, position=position, detail=detail, hint=hint, context=context)


def exhausted(problem: RecursionError | MemoryError) -> DatabaseError:
    """What the interpreter ran out of, as the statement's error: 54001 or 53200."""
    if isinstance(problem, MemoryError):
        return make_error("53200", "out of memory", hint="Read or write less at once.")
    return make_error("54001", "stack depth limit exceeded", hint="Nest the statement's expressions less deeply.")


def unsupported(what: str, *, position: int | None = None, hint: str | None = None) -> NotSupportedError:
    """0A000 that names the construct: ``unsupported("window functions")``."""
    return NotSupportedError(f"{what} is not supported", position=position, hint=hint)
