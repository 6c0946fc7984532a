"""What ``pg_catalog`` and ``information_schema`` say of sequences, and of the columns that take values of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eddyline.adapter.pg_objects import identifier
from eddyline.adapter.system_relations import Contents, Row, sorted_items
from eddyline.expr.ir import Call, Case, Expr, Literal
from eddyline.plan.relation import Constant, Map, Project, Relation, Union
from eddyline.repr.type_facts import TYPE_FACTS
from eddyline.repr.types import BIGINT, BOOLEAN, TEXT, Kind
from eddyline.sql.catalog_view import CatalogItem, ColumnDef, ItemKind, SequenceDef
from eddyline.sql.shown_defaults import sequences_in, shown_default
from eddyline.sql.system_functions import DATABASE, oid_of

__all__ = [
    "SEQUENCES_SHAPE",
    "catalog_default",
    "dependency_rows",
    "identity_options",
    "schema_sequence_rows",
    "sequence_rows",
    "sequences_body",
    "serial_texts",
]

SEQUENCES_SHAPE: Final = (
    "schemaname sequencename sequenceowner data_type start_value:o min_value:o max_value:o increment_by:o cycle:b "
    "cache_size:o last_value:o"
)
_CLASSES, _DEFAULTS = 1259, 2604  # the OIDs of pg_class and pg_attrdef
_BITS: Final = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}
_PUBLIC: Final = "public"


def _qualified(item: CatalogItem) -> str:
    return f"{identifier(item.schema)}.{identifier(item.name)}"


def catalog_default(contents: Contents, column: ColumnDef, *, public: str | None = _PUBLIC) -> str | None:
    """The default of a column as text, with sequences under their qualified names but for those in ``public``."""

    def name_of(item_id: str) -> str | None:
        item = contents.by_id.get(item_id)
        if item is None:
            return None
        return identifier(item.name) if item.schema == public else _qualified(item)

    return shown_default(column, name_of)


def _sequences(contents: Contents) -> Iterator[tuple[CatalogItem, SequenceDef]]:
    for item in sorted_items(contents, ItemKind.SEQUENCE):
        assert item.sequence is not None
        yield item, item.sequence


def sequence_rows(contents: Contents) -> Iterator[Row]:
    """Of ``pg_sequence``."""
    for item, of in _sequences(contents):
        yield (
            oid_of(item.id), TYPE_FACTS[of.type.kind].oid, of.start, of.increment, of.maximum, of.minimum, of.cache,
            of.cycle,
        )  # fmt: skip


def sequences_body(contents: Contents) -> Relation:
    """``pg_sequences``, which says what each has given last: NULL of one that has given nothing."""
    types = (TEXT, TEXT, TEXT, TEXT, BIGINT, BIGINT, BIGINT, BIGINT, BOOLEAN, BIGINT)
    arms = []
    for item, of in _sequences(contents):
        owner = contents.access.named(contents.access.owner(item.id)).name
        row = (
            item.schema, item.name, owner, of.type.kind.value, of.start, of.minimum, of.maximum, of.increment, of.cycle,
            of.cache,
        )  # fmt: skip
        arms.append(Map(Constant((row,), types), (_last_value(of),)))
    if not arms:
        return Constant((), (*types, BIGINT))
    return Union(tuple(arms)) if len(arms) > 1 else Project(arms[0], tuple(range(len(types) + 1)))


def _last_value(of: SequenceDef) -> Expr:
    position = (Literal(of.position, TEXT), Literal(of.first, BIGINT), Literal(of.increment, BIGINT))
    called = Call("sequence_is_called", position, BOOLEAN)
    last = Call("sequence_last_value", position, BIGINT)
    return Case(((called, last),), Literal(None, BIGINT), BIGINT)


def schema_sequence_rows(contents: Contents) -> Iterator[Row]:
    """Of ``information_schema.sequences``, which has none of identities."""
    for item, of in _sequences(contents):
        if not of.identity:
            yield (
                DATABASE, item.schema, item.name, of.type.kind.value, _BITS[of.type.kind], 2, 0, str(of.start),
                str(of.minimum), str(of.maximum), str(of.increment), "YES" if of.cycle else "NO",
            )  # fmt: skip


def identity_options(contents: Contents, column: ColumnDef) -> tuple[str | None, ...]:
    """is_identity, identity_generation, …_start, …_increment, …_maximum, …_minimum, …_cycle."""
    found = [contents.by_id[id].sequence for id in sequences_in(column.default) if id in contents.by_id]
    of = found[0] if found else None
    if not column.identity or of is None:
        return ("NO", None, None, None, None, None, "NO")
    generation = "ALWAYS" if column.identity == "a" else "BY DEFAULT"
    bounds = (str(of.start), str(of.increment), str(of.maximum), str(of.minimum))
    return ("YES", generation, *bounds, "YES" if of.cycle else "NO")


def dependency_rows(contents: Contents) -> Iterator[Row]:
    """Of ``pg_depend``: sequences on the columns that they go with, defaults on the sequences that they call."""
    for item, of in _sequences(contents):
        if of.owner is not None:
            table_id, position = of.owner
            kind = "i" if of.identity else "a"
            yield _CLASSES, oid_of(item.id), 0, _CLASSES, oid_of(table_id), position + 1, kind
    for table in sorted_items(contents, ItemKind.TABLE):
        for number, column in enumerate(table.columns, 1):
            for id in sorted(sequences_in(column.default) if not column.identity else ()):
                yield _DEFAULTS, oid_of(table.id) * 2000 + number, 0, _CLASSES, oid_of(id), 0, "n"


def serial_texts(contents: Contents) -> Iterator[Row]:
    """What ``pg_get_serial_sequence`` says of columns, with the sequence's OID as the modifier."""
    for item, of in _sequences(contents):
        table = contents.by_id.get(of.owner[0]) if of.owner is not None else None
        if table is not None and of.owner is not None:
            column = table.columns[of.owner[1]].name
            yield f"serial {column}", oid_of(table.id), oid_of(item.id), _qualified(item)
