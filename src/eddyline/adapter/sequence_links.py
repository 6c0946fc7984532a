"""What tables and sequences have to do with each other: whose a sequence is, and which defaults call it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from eddyline.adapter.catalog import CatalogSnapshot, SearchPathView
from eddyline.errors import make_error
from eddyline.expr.ir import Call, Cast, Expr, Literal
from eddyline.plan.relation import Constant, Map, Relation
from eddyline.repr.types import BIGINT, BOOLEAN, TEXT, SqlType
from eddyline.sql.catalog_view import SEQUENCE_COLUMNS, CatalogItem, ColumnDef, ItemKind, SequenceDef
from eddyline.sql.sequence_functions import next_value
from eddyline.sql.sequence_options import SequenceOptions, first_definition
from eddyline.sql.shown_defaults import default_of_sequence, sequences_in

__all__ = [
    "SequenceUse",
    "check_defaults",
    "check_no_identity",
    "sequence_item",
    "sequences_of",
    "uses_of",
    "with_sequences",
    "without_defaults",
]

_NAME_BYTES: Final = 63


@dataclass(frozen=True, slots=True)
class SequenceUse:
    """The default of column ``position`` of ``table`` calls a sequence; both as messages show them."""

    table: CatalogItem
    position: int
    column_shown: str
    sequence_shown: str


# -- making -----------------------------------------------------------------------------------------------------------


def sequence_item(item_id: str, schema: str, name: str, definition: SequenceDef) -> CatalogItem:
    return CatalogItem(
        id=item_id,
        schema=schema,
        name=name,
        kind=ItemKind.SEQUENCE,
        columns=SEQUENCE_COLUMNS,
        relation=_row(definition),
        sequence=definition,
    )


def _row(of: SequenceDef) -> Relation:
    """What SELECT finds in it."""
    position = (Literal(of.position, TEXT), Literal(of.first, BIGINT), Literal(of.increment, BIGINT))
    types = {"sequence_last_value": BIGINT, "sequence_log_cnt": BIGINT, "sequence_is_called": BOOLEAN}
    return Map(Constant(((),), ()), tuple(Call(func, position, t) for func, t in types.items()))


def with_sequences(
    snapshot: CatalogSnapshot,
    table: CatalogItem,
    options: Sequence[tuple[int, SequenceOptions]],
    ids: Sequence[str],
) -> tuple[CatalogItem, tuple[CatalogItem, ...]]:
    """A new table whose columns take values of sequences of their own, and these, with PostgreSQL's names."""
    columns = list(table.columns)
    made: list[CatalogItem] = []
    for (position, asked), item_id in zip(options, ids, strict=True):
        column = columns[position]
        taken = {table.name, *(s.name for s in made)}
        name = _free_name(snapshot, table, column.name, taken)
        definition = replace(first_definition(asked, item_id), owner=(table.id, position))
        made.append(sequence_item(item_id, table.schema, name, definition))
        columns[position] = replace(
            column,
            default=_stored(next_value(item_id, of_identity=bool(asked.identity)), column.type),
            default_text=None if asked.identity else default_of_sequence(item_id),
            identity=asked.identity,
        )
    return replace(table, columns=tuple(columns)), tuple(made)


def _stored(value: Expr, target: SqlType) -> Expr:
    return value if target == BIGINT else Cast(value, target, explicit=False)


def _free_name(snapshot: CatalogSnapshot, table: CatalogItem, column: str, taken: Collection[str]) -> str:
    """``table_column_seq``, or with the first number that makes it free."""
    number = 0
    while True:
        name = _object_name(table.name, column, f"seq{number or ''}")
        if name not in taken and snapshot.find(table.schema, name) is None:
            return name
        number += 1


def _object_name(first: str, second: str, label: str) -> str:
    """The three with lines between them, in 63 bytes: the longer one of the names is cut."""
    a, b = first.encode(), second.encode()
    room = _NAME_BYTES - len(label) - 2
    while len(a) + len(b) > room:
        a, b = (a[:-1], b) if len(a) > len(b) else (a, b[:-1])
    return f"{a.decode(errors='ignore')}_{b.decode(errors='ignore')}_{label}"


def check_defaults(snapshot: CatalogSnapshot, table: CatalogItem, own: Collection[str]) -> None:
    """40001 when a sequence that a default calls was dropped since it was bound."""
    called = {id for column in table.columns for id in sequences_in(column.default)}
    if any(id not in snapshot.by_id for id in called.difference(own)):
        raise make_error(
            "40001",
            "could not serialize access due to concurrent update",
            detail=f'A sequence that a default of "{table.name}" calls was dropped by another transaction.',
            hint="Retry the statement.",
        )


# -- dropping ---------------------------------------------------------------------------------------------------------


def sequences_of(snapshot: CatalogSnapshot, items: Iterable[CatalogItem]) -> list[CatalogItem]:
    """Those that go with tables among ``items`` and are not among them themselves, oldest first."""
    given = {item.id for item in items}
    found = [
        item
        for item in snapshot.by_id.values()
        if item.sequence is not None and item.sequence.owner is not None and item.sequence.owner[0] in given
    ]
    return sorted((item for item in found if item.id not in given), key=lambda item: int(item.id[1:]))


def uses_of(view: SearchPathView, gone: Sequence[CatalogItem]) -> list[SequenceUse]:
    """The defaults of tables that are not ``gone`` which call sequences that are."""
    sequences = {item.id: item for item in gone if item.kind is ItemKind.SEQUENCE}
    if not sequences:
        return []
    ids = {item.id for item in gone}
    return list(_uses(view, sequences, ids))


def _uses(view: SearchPathView, sequences: dict[str, CatalogItem], gone: Collection[str]) -> Iterator[SequenceUse]:
    tables = [i for i in view.snapshot.by_id.values() if i.kind is ItemKind.TABLE and i.id not in gone]
    for table in sorted(tables, key=lambda item: int(item.id[1:])):
        for position, column in enumerate(table.columns):
            for id in sorted(sequences_in(column.default) & sequences.keys()):
                shown = f"default value for column {column.name} of table {view.shown(table)}"
                yield SequenceUse(table, position, shown, f"sequence {view.shown(sequences[id])}")


def without_defaults(snapshot: CatalogSnapshot, uses: Iterable[SequenceUse]) -> CatalogSnapshot:
    for use in uses:
        table = snapshot.by_id[use.table.id]
        columns = [*table.columns]
        columns[use.position] = _without_default(columns[use.position])
        snapshot = snapshot.with_item(replace(table, columns=tuple(columns)))
    return snapshot


def _without_default(column: ColumnDef) -> ColumnDef:
    return replace(column, default=None, default_text=None)


def check_no_identity(view: SearchPathView, items: Sequence[CatalogItem]) -> None:
    """2BP01 for a sequence among them that is the identity of a column which stays."""
    given = {item.id for item in items}
    for item in items:
        definition = item.sequence
        if definition is None or not definition.identity or definition.owner is None or definition.owner[0] in given:
            continue
        table = view.snapshot.by_id[definition.owner[0]]
        column = f"column {table.columns[definition.owner[1]].name} of table {view.shown(table)}"
        raise make_error(
            "2BP01",
            f"cannot drop sequence {view.shown(item)} because {column} requires it",
            hint=f"You can drop {column} instead.",
        )
