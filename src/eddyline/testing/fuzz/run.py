"""One seed: tables, views over them, changes; after every change every view is compared with PostgreSQL."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import psycopg

import eddyline
from eddyline.testing.fuzz.oracles import DuckOracle, bag, loosely_equal
from eddyline.testing.fuzz.queries import Query, QueryGenerator, Source
from eddyline.testing.fuzz.schema import changes, random_tables

__all__ = ["Mismatch", "Tally", "run_seed"]

_VIEWS = 3
_ANSWER_SECONDS = 5


class Mismatch(AssertionError):
    """A view that differs from PostgreSQL; the message is a script that shows it."""


@dataclass(slots=True)
class Tally:
    """Counts over all seeds run so far."""

    used: Counter[str] = field(default_factory=Counter)
    queries: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    comparisons: int = 0
    duck_equal: int = 0
    duck_differs: int = 0
    errors_agreed: int = 0


@dataclass(frozen=True, slots=True)
class _View:
    name: str
    query: Query
    mode: str
    constructs: Counter[str]


Connection = psycopg.Connection[tuple[object, ...]]


def run_seed(
    seed: int, steps: int, postgres: Connection, tally: Tally, *, interactive: bool = True, workers: int = 1
) -> None:
    """Raises Mismatch at the first difference."""
    rng = random.Random(seed)
    tables = random_tables(rng)
    schema = f"fuzz_{seed}"
    postgres.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    postgres.execute(f"CREATE SCHEMA {schema}")
    postgres.execute(f"SET search_path = {schema}")
    duck = DuckOracle(tables)
    script: list[str] = [t.ddl for t in tables]
    try:
        with eddyline.connect(interactive=interactive, workers=workers) as db:
            # An answer that never comes is a mismatch, too.
            db.execute(f"SET statement_timeout = '{_ANSWER_SECONDS}s'")
            for table in tables:
                db.execute(table.ddl)
                postgres.execute(table.ddl)
            sources = [Source(t.name, tuple((c.name, c.family) for c in t.columns)) for t in tables]
            views = [v for i in range(_VIEWS) if (v := _create(rng, f"v{i}", sources, db, postgres, tally, script))]
            for change in changes(rng, tables, steps):
                _apply(change, db, postgres, duck, script)
                for view in views:
                    _compare(seed, f"SELECT * FROM {view.name}", db, postgres, tally, script)
            for view in views:
                _compare(seed, view.query.text, db, postgres, tally, script)
                _compare_duck(view, postgres, duck, tally)
    finally:
        duck.close()
        postgres.execute(f"DROP SCHEMA {schema} CASCADE")


def _create(
    rng: random.Random,
    name: str,
    sources: list[Source],
    db: eddyline.Connection,
    postgres: Connection,
    tally: Tally,
    script: list[str],
) -> _View | None:
    constructs: Counter[str] = Counter()
    query = QueryGenerator(rng, sources, constructs).query()
    mode = rng.choices(("index", "materialized", "plain"), (5, 2, 1))[0]
    tally.queries += 1
    try:
        postgres.execute(f"CREATE VIEW {name} AS {query.text}")
    except psycopg.Error as refusal:
        tally.rejected[f"PostgreSQL: {refusal.diag.message_primary}"] += 1
        return None
    kind = "MATERIALIZED VIEW" if mode == "materialized" else "VIEW"
    statement = f"CREATE {kind} {name} AS {query.text}"
    script.append(statement)
    try:
        db.execute(statement)
    except eddyline.NotSupportedError as refusal:
        tally.rejected[f"unsupported: {refusal.message}"] += 1
        postgres.execute(f"DROP VIEW {name}")
        script.pop()
        return None
    except eddyline.Error as failure:
        raise Mismatch(_report(script, f"PostgreSQL takes the view; here: {failure.sqlstate} {failure}")) from failure
    if mode == "index":
        script.append(f"CREATE INDEX ON {name} (c0)")
        db.execute(script[-1])
    sources.append(Source(name, tuple((f"c{i}", f) for i, f in enumerate(query.families))))
    tally.used += constructs
    tally.used[f"mode_{mode}"] += 1
    return _View(name, query, mode, constructs)


def _apply(
    change: list[str], db: eddyline.Connection, postgres: Connection, duck: DuckOracle, script: list[str]
) -> None:
    if len(change) > 1:
        change = ["BEGIN", *change, "COMMIT"]
    for statement in change:
        script.append(statement)
        postgres.execute(statement)
        duck.execute(statement)
        try:
            db.execute(statement)
        except eddyline.Error as failure:
            raise Mismatch(
                _report(script, f"PostgreSQL takes the change; here: {failure.sqlstate} {failure}")
            ) from failure


def _compare(
    seed: int, query: str, db: eddyline.Connection, postgres: Connection, tally: Tally, script: list[str]
) -> None:
    tally.comparisons += 1
    try:
        right = postgres.execute(query).fetchall()
    except psycopg.Error as expected:
        _compare_error(seed, query, expected, db, tally, script)
        return
    try:
        left = db.execute(query).fetchall()
    except eddyline.Error as failure:
        raise Mismatch(_report([*script, query], f"seed {seed}: {failure.sqlstate} {failure}")) from failure
    ours, theirs = bag(left), bag(right)
    if ours != theirs:
        missing, surplus = theirs - ours, ours - theirs
        raise Mismatch(_report([*script, query], f"seed {seed}: missing {dict(missing)}, surplus {dict(surplus)}"))


def _compare_error(
    seed: int, query: str, expected: psycopg.Error, db: eddyline.Connection, tally: Tally, script: list[str]
) -> None:
    try:
        db.execute(query).fetchall()
    except eddyline.DataError as failure:
        if failure.sqlstate == expected.sqlstate:
            tally.errors_agreed += 1
            return
        got = f"{failure.sqlstate} {failure}"
    else:
        got = "rows"
    raise Mismatch(
        _report([*script, query], f"seed {seed}: PostgreSQL raises {expected.sqlstate} {expected}; here: {got}")
    )


def _compare_duck(view: _View, postgres: Connection, duck: DuckOracle, tally: Tally) -> None:
    """PostgreSQL decides; DuckDB's agreement with it shows that the comparison itself compares something."""
    if any(word in view.query.text for word in (" v0", " v1", " v2")):
        return
    theirs = duck.rows(view.query.text, view.constructs)
    if theirs is None:
        return
    if loosely_equal(theirs, postgres.execute(view.query.text).fetchall()):
        tally.duck_equal += 1
    else:
        tally.duck_differs += 1


def _report(script: list[str], difference: str) -> str:
    return difference + "\n" + ";\n".join(script) + ";"
