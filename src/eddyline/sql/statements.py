"""What binding a statement yields: one frozen class per kind, everything named resolved and typed.

The adapter executes these.  Relations are over ``Get(item id)``; columns of a table stand in table order.  Parameters
stay ``ir.Parameter`` nodes, typed; ``bind_statement`` reports their types.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from eddyline.expr.ir import Expr, LiteralValue
from eddyline.plan.late import Late
from eddyline.plan.relation import Relation
from eddyline.repr.types import BOOLEAN, SqlType
from eddyline.sql.catalog_view import DEFAULT_CLUSTER_ID, CatalogItem, ColumnDef, ItemKind
from eddyline.sql.cluster_statements import ClusterStatement, ShowReplica
from eddyline.sql.column_reads import Reads
from eddyline.sql.query import BoundQuery
from eddyline.sql.role_statements import (
    AlterDefaultPrivileges,
    AlterOwner,
    AlterRole,
    AlterRoleSettings,
    CreateRole,
    DropOwned,
    DropRole,
    GrantRights,
    GrantRoles,
    ReassignOwned,
    RenameRole,
)
from eddyline.sql.sequence_options import SequenceOptions

__all__ = [
    "BINARY_SIGNATURE",
    "AlterRename",
    "AlterSequence",
    "Begin",
    "CloseCursor",
    "Commit",
    "Copy",
    "CopyFormat",
    "CreateIndex",
    "CreateMaterializedView",
    "CreateSchema",
    "CreateSequence",
    "CreateTable",
    "CreateTableAs",
    "CreateView",
    "Deallocate",
    "DeclareCursor",
    "Delete",
    "Discard",
    "Drop",
    "DropSchema",
    "Execute",
    "Explain",
    "Fetch",
    "FetchDirection",
    "Insert",
    "OnConflict",
    "Prepare",
    "Release",
    "Reset",
    "Returning",
    "Rollback",
    "RollbackTo",
    "Savepoint",
    "Select",
    "Set",
    "SetTransaction",
    "Show",
    "ShowObjects",
    "Signal",
    "Statement",
    "Subscribe",
    "Truncate",
    "Unlisten",
    "Update",
]


# --- reading -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Signal:
    """``output``: the position of the column with the numbers of processes whose statements are cancelled or, with
    ``terminate``, which are ended; waited for ``timeout_ms`` unless that is 0."""

    output: int
    terminate: bool = False
    timeout_ms: int = 0


@dataclass(frozen=True, slots=True)
class Select:
    """``as_of``: a constant expression, bigint (µs) or timestamptz.

    ``late``: what is computed of the rows once they are read, if anything is: ``query.relation`` is what is read then,
    ``query.order`` is over the result.  ``signals``: what becomes of outputs that are numbers of processes; the answer
    has in their place whether it did.
    """

    query: BoundQuery
    as_of: Expr | None = None
    late: Late | None = None
    signals: tuple[Signal, ...] = ()

    @property
    def types(self) -> tuple[SqlType, ...]:
        """Of the answer's columns."""
        asked = {signal.output for signal in self.signals}
        return tuple(BOOLEAN if i in asked else t for i, t in enumerate(self.query.types))


@dataclass(frozen=True, slots=True)
class Subscribe:
    """``name``: the item subscribed to by name, None for a query.  ``as_of``, ``up_to`` as in ``Select``."""

    query: BoundQuery
    name: str | None = None
    as_of: Expr | None = None
    up_to: Expr | None = None
    snapshot: bool = True
    progress: bool = False


@dataclass(frozen=True, slots=True)
class Explain:
    """``statement``: what is explained, or ``item``: the object whose plan is shown.  ``options``: lower-case names
    with their values as text ("" for none).  ``analyze``: run it, and say where its time went; only of a Select."""

    statement: Statement | None = None
    item: CatalogItem | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    analyze: bool = False

    @property
    def as_json(self) -> bool:
        """Whether the plan is one JSON document instead of lines of text."""
        return self.options.get("format") == "json"

    def shows(self, option: str) -> bool:
        """Whether an option that is on by default has not been switched off."""
        return self.options.get(option, "on") not in ("off", "false", "0")


@dataclass(frozen=True, slots=True)
class ShowObjects:
    """A listing of the catalog, taken when it was bound: ``rows`` of physical scalars."""

    names: tuple[str, ...]
    types: tuple[SqlType, ...]
    rows: tuple[tuple[LiteralValue, ...], ...]


# --- writing -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Returning:
    """``exprs`` over the row that each statement names, in RETURNING order."""

    names: tuple[str, ...]
    exprs: tuple[Expr, ...]

    @property
    def types(self) -> tuple[SqlType, ...]:
        return tuple(e.type for e in self.exprs)


@dataclass(frozen=True, slots=True)
class OnConflict:
    """``columns``: the conflict target, always the primary key (in key order), or empty for DO NOTHING without one.

    ``assignments`` is None for DO NOTHING; otherwise one expression per table column, giving the new row over the
    existing row's columns followed by the excluded row's.  ``where`` is over the same columns; where it is not true
    the existing row stays and nothing is returned.  ``changed``: positions of the columns that are assigned.
    """

    columns: tuple[int, ...]
    assignments: tuple[Expr, ...] | None = None
    where: Expr | None = None
    changed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Insert:
    """``relation``: the new rows, every column of ``table`` in order and of its type, defaults included; with ``late``,
    which makes them of it.

    ``returning`` is over the row as stored.  ``given``: positions of the columns that are not left to their defaults.
    ``reads``: columns that are named but to be written, here and below.
    """

    table: CatalogItem
    relation: Relation
    on_conflict: OnConflict | None = None
    returning: Returning | None = None
    late: Late | None = None
    given: tuple[int, ...] = ()
    reads: Reads = ()


@dataclass(frozen=True, slots=True)
class Update:
    """``relation``: the old row's columns, then the new row's, then further columns that only ``returning`` reads.

    A row to update comes with its multiplicity, once however many FROM rows match.  ``returning`` is over all
    columns of ``relation``; ``changed`` are the positions of the assigned table columns.  With ``late`` all this is of
    what that makes of ``relation``.
    """

    table: CatalogItem
    relation: Relation
    changed: tuple[int, ...]
    returning: Returning | None = None
    late: Late | None = None
    reads: Reads = ()


@dataclass(frozen=True, slots=True)
class Delete:
    """``relation``: the old row's columns, then further columns that only ``returning`` (over all) reads."""

    table: CatalogItem
    relation: Relation
    returning: Returning | None = None
    reads: Reads = ()


@dataclass(frozen=True, slots=True)
class Truncate:
    """``restart``: the sequences of the tables' columns begin again."""

    tables: tuple[CatalogItem, ...]
    restart: bool = False


class CopyFormat(enum.Enum):
    TEXT = "text"
    CSV = "csv"
    BINARY = "binary"
    PARQUET = "parquet"


#: what data in binary begin with
BINARY_SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"


@dataclass(frozen=True, slots=True)
class Copy:
    """COPY FROM has ``table`` and the positions of ``columns`` to fill; COPY TO has ``query``, or ``subscribe``.

    ``filename`` None: STDIN or STDOUT.  ``delimiter``, ``null``, ``quote`` and ``escape`` hold the format's defaults
    where they weren't given.  ``force_null``, ``force_not_null``, ``force_quote``: column names ("*" for all).
    """

    format: CopyFormat
    table: CatalogItem | None = None
    columns: tuple[int, ...] = ()
    query: BoundQuery | None = None
    subscribe: Subscribe | None = None
    filename: str | None = None
    header: bool = False
    header_match: bool = False
    delimiter: str = "\t"
    null: str = "\\N"
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] = ()
    force_null: tuple[str, ...] = ()
    force_not_null: tuple[str, ...] = ()


# --- definitions ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateTable:
    """``primary_key``: column positions in key order; its columns are not null already.

    ``sequences``: the positions of columns that take their values from sequences of their own, with how those count.
    """

    schema: str
    name: str
    columns: tuple[ColumnDef, ...]
    primary_key: tuple[int, ...] = ()
    if_not_exists: bool = False
    sequences: tuple[tuple[int, SequenceOptions], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """``with_data`` False: the table starts empty.  ``reads``: columns that the query names."""

    schema: str
    name: str
    columns: tuple[ColumnDef, ...]
    relation: Relation
    if_not_exists: bool = False
    with_data: bool = True
    reads: Reads = ()


@dataclass(frozen=True, slots=True)
class CreateView:
    """``definition``: the query as written.  ``reads``: columns that it names; None: all of what it reads."""

    schema: str
    name: str
    columns: tuple[ColumnDef, ...]
    relation: Relation
    definition: str
    or_replace: bool = False
    reads: Reads | None = None


@dataclass(frozen=True, slots=True)
class CreateMaterializedView:
    """``cluster``: its id.  ``reads``: columns that the query names; None: all of what it reads."""

    schema: str
    name: str
    columns: tuple[ColumnDef, ...]
    relation: Relation
    definition: str
    if_not_exists: bool = False
    cluster: str = DEFAULT_CLUSTER_ID
    reads: Reads | None = None


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """``keys`` are over the columns of ``on``.  ``name`` is None when the catalog should choose one; it then starts
    from ``name_stem``.  The index lives in the schema of ``on``.  ``cluster``: its id."""

    on: CatalogItem
    keys: tuple[Expr, ...]
    name: str | None = None
    name_stem: str = ""
    if_not_exists: bool = False
    cluster: str = DEFAULT_CLUSTER_ID


@dataclass(frozen=True, slots=True)
class CreateSequence:
    schema: str
    name: str
    options: SequenceOptions
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSequence:
    """``name``: (schema or None, name) as written."""

    name: tuple[str | None, str]
    options: SequenceOptions
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """``names``: (schema or None, name) as written."""

    kind: ItemKind
    names: tuple[tuple[str | None, str], ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class CreateSchema:
    """``owner``: a role, or what ``bind_roles`` has for one that the session knows; None: who makes it."""

    name: str
    if_not_exists: bool = False
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class DropSchema:
    names: tuple[str, ...]
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class AlterRename:
    """ALTER … RENAME TO: ``kind`` as written, ``name`` (schema or None, name)."""

    kind: ItemKind
    name: tuple[str | None, str]
    new_name: str
    if_exists: bool = False


# --- transactions and sessions -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """``isolation``: "serializable" …, None for the session's default; ``read_only`` likewise."""

    isolation: str | None = None
    read_only: bool | None = None
    tag: str = "BEGIN"


@dataclass(frozen=True, slots=True)
class Commit:
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Rollback:
    chain: bool = False


@dataclass(frozen=True, slots=True)
class Savepoint:
    name: str


@dataclass(frozen=True, slots=True)
class Release:
    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo:
    name: str


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """SET TRANSACTION, or with ``session`` SET SESSION CHARACTERISTICS AS TRANSACTION."""

    isolation: str | None = None
    read_only: bool | None = None
    session: bool = False


@dataclass(frozen=True, slots=True)
class Prepare:
    """``parsed``: the ``ParsedStatement`` to bind at each EXECUTE or once, with ``param_types`` declared so far."""

    name: str
    parsed: Any
    param_types: tuple[SqlType | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Execute:
    """``arguments``: constant expressions, not yet cast to the parameters' types (an untyped literal is text)."""

    name: str
    arguments: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Deallocate:
    """``name`` None: all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class DeclareCursor:
    """``hold``: it outlives the transaction.  ``scroll`` None: neither asked for nor forbidden."""

    name: str
    query: Select | Subscribe
    hold: bool = False
    scroll: bool | None = None


class FetchDirection(enum.Enum):
    FORWARD = "forward"
    BACKWARD = "backward"
    ABSOLUTE = "absolute"
    RELATIVE = "relative"


@dataclass(frozen=True, slots=True)
class Fetch:
    """``count`` None: all.  ``move``: go there without giving rows.  ``timeout_s``: how long to wait for the first
    change of a subscription."""

    name: str
    direction: FetchDirection = FetchDirection.FORWARD
    count: int | None = 1
    move: bool = False
    timeout_s: float = 1.0


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """``name`` None: all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Set:
    """``values``: the items of the list as text; None: DEFAULT.  ``name`` is lower case."""

    name: str
    values: tuple[str, ...] | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class AlterSystem:
    """A setting of the whole database.  ``name`` None: all (RESET only); ``values`` None: the default."""

    name: str | None
    values: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Show:
    """``name`` "all": every setting."""

    name: str


@dataclass(frozen=True, slots=True)
class Reset:
    """``name`` None: all."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    """``target``: all, plans, sequences or temp."""

    target: str


@dataclass(frozen=True, slots=True)
class Unlisten:
    """What pools send before they lend a connection again: nothing is listened to, so there is nothing to end."""


Statement: TypeAlias = (
    Select
    | Subscribe
    | Explain
    | ShowObjects
    | Insert
    | Update
    | Delete
    | Truncate
    | Copy
    | CreateTable
    | CreateTableAs
    | CreateView
    | CreateMaterializedView
    | CreateIndex
    | CreateSequence
    | AlterSequence
    | Drop
    | CreateSchema
    | DropSchema
    | AlterRename
    | AlterOwner
    | AlterDefaultPrivileges
    | AlterRole
    | AlterRoleSettings
    | DropOwned
    | ReassignOwned
    | CreateRole
    | DropRole
    | GrantRights
    | GrantRoles
    | RenameRole
    | Begin
    | Commit
    | Rollback
    | Savepoint
    | Release
    | RollbackTo
    | SetTransaction
    | Prepare
    | Execute
    | Deallocate
    | DeclareCursor
    | Fetch
    | CloseCursor
    | Set
    | AlterSystem
    | ClusterStatement
    | ShowReplica
    | Show
    | Reset
    | Discard
    | Unlisten
)
