"""A small catalog with data, for comparing bound queries with PostgreSQL's stored answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import postgast

from eddyline.expr.ir import Literal, LiteralValue
from eddyline.expr.text_io import format_value, parse_literal
from eddyline.plan.relation import Constant, Map, Relation
from eddyline.repr.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    Kind,
    SqlType,
    numeric,
)
from eddyline.sql.catalog_view import (
    DEFAULT_CLUSTER,
    DEFAULT_CLUSTER_ID,
    CatalogCluster,
    CatalogItem,
    ColumnDef,
    ItemKind,
    ShownSetting,
)
from eddyline.sql.query import BoundQuery, bind_query
from eddyline.testing.interpret import Row, interpret, order_rows

TABLES: dict[str, tuple[tuple[tuple[str, SqlType], ...], tuple[int, ...], str]] = {
    "a": ((("x", INTEGER), ("t", TEXT)), (), "1|one;2|two;2|zwei;3|;|nil;5|five"),
    "b": ((("y", INTEGER), ("u", TEXT)), (), "1|eins;2|two;|nil;4|;4|vier"),
    "o": (
        (
            ("id", INTEGER),
            ("k", INTEGER),
            ("amount", numeric(2, 12)),
            ("name", SqlType(Kind.VARCHAR, length=20)),
            ("d", DATE),
            ("ts", TIMESTAMP),
            ("f", DOUBLE),
            ("flag", BOOLEAN),
            ("s", SMALLINT),
            ("big", BIGINT),
            ("c", SqlType(Kind.BPCHAR, length=5)),
        ),
        (0,),
        "1|10|12.50|ann|2024-01-31|2024-01-31 10:00:00|1.5|t|1|10000000000|ab;"
        "2|20|0.10|bob|2024-02-29|2024-02-29 23:59:59.5|-2.25|f|2|20|cd;"
        "3||||||||||;"
        "4|10|99.99|cy|2023-12-25|2023-12-25 00:00:00|NaN|t|-3|-7|ab;"
        "5|30|-5.00|ann|2024-03-01|2024-03-01 12:30:00|100||5|5|zz",
    ),
    "i": (
        (("k", INTEGER), ("v", INTEGER), ("w", numeric(3, 6)), ("label", TEXT)),
        (),
        "10|1|1.500|p;10|2|2.250|q;10|2|2.250|q;20||0.125|;20|7||r;|9|9.000|s;40|4|4.000|t",
    ),
    "e": ((("z", INTEGER),), (), ""),
}


@dataclass
class SampleCatalog:
    """The tables above in schema ``public``."""

    version: int = 1
    search_path: tuple[str, ...] = ("public",)
    creation_schema: str | None = "public"
    users: tuple[str, str] = ("postgres", "postgres")
    zone: str | None = None
    settings: tuple[ShownSetting, ...] = ()
    process: int = 0
    cluster: str = DEFAULT_CLUSTER
    cluster_id: str | None = DEFAULT_CLUSTER_ID
    tables: dict[str, CatalogItem] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, (columns, key, _) in TABLES.items():
            defined = tuple(ColumnDef(n, t) for n, t in columns)
            self.tables[name] = CatalogItem(name, "public", name, ItemKind.TABLE, defined, key)

    def clusters(self) -> tuple[CatalogCluster, ...]:
        return (CatalogCluster(DEFAULT_CLUSTER_ID, DEFAULT_CLUSTER),)

    def has_schema(self, schema: str) -> bool:
        return schema == "public"

    def schema_names(self) -> tuple[str, ...]:
        return ("public",)

    def resolve(self, schema: str | None, name: str) -> CatalogItem | None:
        return self.tables.get(name) if schema in (None, "public") else None

    def item(self, item_id: str) -> CatalogItem | None:
        return self.tables.get(item_id)

    def items(self, schema: str | None = None) -> tuple[CatalogItem, ...]:
        return tuple(self.tables.values())

    def indexes_on(self, item_id: str) -> tuple[CatalogItem, ...]:
        return ()

    def dependents(self, item_id: str) -> tuple[CatalogItem, ...]:
        return ()

    def built(self, item_id: str) -> bool:
        return True


def table_rows(name: str) -> list[Row]:
    columns, _, text = TABLES[name]
    rows = [line.split("|") for line in text.split(";") if line]
    return [tuple(parse_literal(v, t) if v else None for v, (_, t) in zip(row, columns, strict=True)) for row in rows]


def bind_text(query: str, params: dict[int, SqlType] | None = None) -> BoundQuery:
    select = postgast.parse(query).stmts[0].stmt.select_stmt
    return bind_query(select, SampleCatalog(), {} if params is None else params)


def run_text(
    query: str, parameters: dict[int, LiteralValue] | None = None, params: dict[int, SqlType] | None = None
) -> tuple[BoundQuery, list[tuple[str | None, ...]]]:
    """The bound query and its rows as PostgreSQL prints them, finishing applied."""
    bound = bind_text(query, params)
    tables = {name: table_rows(name) for name in TABLES}
    rows = order_rows(interpret(bound.relation, tables, parameters), bound.relation.types, bound.order)
    start, stop = finishing(bound)
    shown = [shown_row(row, bound.types) for row in rows[start:stop]]
    return bound, shown


def finishing(bound: BoundQuery) -> tuple[int, int | None]:
    """OFFSET and LIMIT as slice bounds."""
    (values,) = interpret(_bounds(bound), {})
    offset, limit = (int(v) if v is not None else None for v in values)
    start = offset or 0
    return start, None if limit is None else start + limit


def _bounds(bound: BoundQuery) -> Relation:
    none = Literal(None, BIGINT)
    return Map(Constant(((),), ()), (bound.offset or none, bound.limit or none))


def shown_row(row: Row, types: Sequence[SqlType]) -> tuple[str | None, ...]:
    return tuple(None if v is None else format_value(v, t) for v, t in zip(row, types, strict=False))


def as_bag(rows: Sequence[Sequence[str | None]]) -> Counter[tuple[str | None, ...]]:
    return Counter(tuple(r) for r in rows)
