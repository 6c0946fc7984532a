"""Portals: statements with their arguments, and how far their rows have been given."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from eddyline.adapter.named_statements import NamedStatement
from eddyline.adapter.outcome import Outcome, ResultSet
from eddyline.adapter.result_columns import Columns
from eddyline.adapter.subscription_rows import SubscriptionRows
from eddyline.errors import Error, make_error
from eddyline.expr.arithmetic import INTEGER_LIMITS
from eddyline.expr.binary_io import parse_binary
from eddyline.expr.ir import Literal
from eddyline.expr.text_io import parse_literal
from eddyline.expr.timezone import Zone
from eddyline.frontends.pgwire.client_messages import Bind, decoded
from eddyline.repr.types import Kind, SqlType

__all__ = ["Portal", "arguments_of", "formats_of"]

_DIGITS = re.compile(rb"-?[0-9]{1,19}")
_TEXTS = (Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR)


@dataclass(slots=True)
class Portal:
    """``statement`` None: the empty one.  ``formats``: of the result's columns, as the client asked for them.

    ``outcome``: once it has run.  ``rows``: those at hand, of which ``given`` have been sent; a subscription's come
    piece by piece from ``feed``.  ``stale``: its transaction is over, so that its name may be taken.
    """

    statement: NamedStatement | None
    arguments: tuple[Literal, ...] = ()
    formats: tuple[int, ...] = ()
    columns: Columns | None = None
    outcome: Outcome | None = None
    rows: ResultSet | None = None
    given: int = 0
    feed: SubscriptionRows | None = field(default=None)
    stale: bool = False

    @property
    def suspended(self) -> bool:
        """Whether there may be rows that were not given."""
        if self.feed is not None:
            return True
        return self.rows is not None and self.given < self.rows.rows

    def close(self) -> None:
        """Ends a subscription.  Twice is harmless."""
        if self.feed is not None:
            self.feed.close()
            self.feed = None
        self.rows = None


def arguments_of(bind: Bind, types: Sequence[SqlType], zone: Zone) -> tuple[Literal, ...]:
    """The values of Bind as literals of the parameters' types.  08P01 for a wrong number; the types' input errors."""
    if len(bind.values) != len(types):
        raise make_error(
            "08P01",
            f'bind message supplies {len(bind.values)} parameters, but prepared statement "{bind.statement}" '
            f"requires {len(types)}",
        )
    formats = formats_of(bind.formats, len(types), "parameter")
    return tuple(
        _argument(value, sql_type, code, number, zone)
        for number, (value, sql_type, code) in enumerate(zip(bind.values, types, formats, strict=True), 1)
    )


def _argument(value: bytes | None, sql_type: SqlType, code: int, number: int, zone: Zone) -> Literal:
    if value is None:
        return Literal(None, sql_type)
    try:
        if code:
            return Literal(parse_binary(value, sql_type), sql_type)
        if b"\x00" in value:
            raise make_error("22021", 'invalid byte sequence for encoding "UTF8": 0x00')
        limits = INTEGER_LIMITS.get(sql_type.kind)
        if limits is not None and _DIGITS.fullmatch(value) and limits[0] <= int(value) <= limits[1]:
            return Literal(int(value), sql_type)  # as reading it would give, which takes an array
        text = decoded(value)
        return Literal(text if sql_type.kind in _TEXTS else parse_literal(text, sql_type, zone), sql_type)
    except Error as error:
        if error.detail is None:
            error.detail = f"parameter ${number}"
        raise


def formats_of(given: Sequence[int], count: int, what: str) -> tuple[int, ...]:
    """A format for each of ``count`` columns or parameters; 08P01 for a wrong number of them."""
    if not given:
        return (0,) * count
    if len(given) == 1:
        return tuple(given) * count
    if len(given) != count:
        raise make_error("08P01", f"bind message has {len(given)} {what} formats but there are {count} {what}s")
    return tuple(given)
