"""One seed: tables, views over them, changes; after every change every view is compared with PostgreSQL.

Beside the views: queries that are no views, compared in order; lookups by key; reads of an earlier time; reads inside
transactions; what a statement returns and refuses; and a subscription whose sum is the view.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field

import psycopg

import eddyline
from eddyline.testing.fuzz.changes import Change, changes
from eddyline.testing.fuzz.oracles import DuckOracle, bag, bag_of_equals, equal_text, loosely_equal
from eddyline.testing.fuzz.queries import Query, QueryGenerator, Source
from eddyline.testing.fuzz.schema import literal, random_tables

__all__ = ["Mismatch", "Tally", "run_seed"]

_VIEWS = 3
#: classes of errors that depend on the rows: cardinality, data, limits (a character that text can't hold)
_ROW_ERRORS = ("21", "22", "54")
_ANSWER_SECONDS = 60
_FRAME = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")

Rows = list[tuple[object, ...]]
Connection = psycopg.Connection[tuple[object, ...]]


class Mismatch(AssertionError):
    """A view that differs from PostgreSQL; the message is a script that shows it."""


@dataclass(slots=True)
class Tally:
    """Counts over all seeds run so far.  ``checks``: by kind, how often an answer was compared."""

    used: Counter[str] = field(default_factory=Counter)
    queries: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    duck_differences: list[str] = field(default_factory=list)

    def __iadd__(self, other: Tally) -> Tally:
        self.used += other.used
        self.queries += other.queries
        self.rejected += other.rejected
        self.checks += other.checks
        self.duck_differences += other.duck_differences
        return self


@dataclass(frozen=True, slots=True)
class _View:
    name: str
    query: Query
    mode: str
    #: whether DuckDB reads its query, and those of the views below it, as PostgreSQL does
    portable: bool


@dataclass(frozen=True, slots=True)
class _Remembered:
    """An answer that was right at ``time``."""

    time: int
    query: str
    rows: Counter[tuple[str, ...]]


def run_seed(
    seed: int, steps: int, postgres: Connection, tally: Tally, *, interactive: bool | None = None, workers: int = 1
) -> None:
    """Raises Mismatch at the first difference.  ``postgres`` went through ``prepare_postgres``.

    ``interactive``: the database's layout; None: even seeds have two runtimes, odd ones have one.
    """
    interactive = seed % 2 == 0 if interactive is None else interactive
    schema = f"fuzz_{seed}"
    postgres.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    postgres.execute(f"CREATE SCHEMA {schema}")
    postgres.execute(f"SET search_path = {schema}")
    try:
        with eddyline.connect(interactive=interactive, workers=workers) as db:
            # An answer that never comes is a mismatch, too.
            db.execute(f"SET statement_timeout = '{_ANSWER_SECONDS}s'")
            _Run(seed, db, postgres, tally, interactive=interactive).run(steps)
    except psycopg.errors.QueryCanceled:
        # A query of random joins that the oracle itself can't answer in time says nothing about anybody.
        tally.checks["abandoned"] += 1
    finally:
        postgres.execute("ROLLBACK")
        postgres.execute(f"DROP SCHEMA {schema} CASCADE")


class _Run:
    def __init__(
        self, seed: int, db: eddyline.Connection, postgres: Connection, tally: Tally, *, interactive: bool
    ) -> None:
        self.seed = seed
        self.interactive = interactive
        self.rng = random.Random(seed)
        self.db = db
        self.postgres = postgres
        self.tally = tally
        self.tables = random_tables(self.rng)
        self.sources = [
            Source(t.name, tuple((c.name, c.family) for c in t.columns), derived=False) for t in self.tables
        ]
        self.script: list[str] = []
        self.views: list[_View] = []
        self.remembered: list[_Remembered] = []
        self.duck = DuckOracle(self.tables)

    def run(self, steps: int) -> None:
        try:
            for table in self.tables:
                self._both(table.ddl)
            for i in range(_VIEWS - 1):
                self._create(f"v{i}")
            with self.db.session() as self.reader:
                self.reader.execute(f"SET statement_timeout = '{_ANSWER_SECONDS}s'")
                self._steps(steps)
            for view in self.views:
                self._compare(self.db, view.query.text, "direct")
        finally:
            self.duck.close()

    def _steps(self, steps: int) -> None:
        subscription, followed = None, ""
        for step, change in enumerate(changes(self.rng, self.tables, steps, self.tally.used)):
            if step == steps // 4:
                # A view over tables that have rows: its first state comes from snapshots.
                self._create(f"v{_VIEWS - 1}")
            if step == steps // 2 and self.rng.random() < 0.3:
                self._drop_index()
            if step == 2 * steps // 3:
                for text in QueryGenerator(self.rng, self.sources, self.tally.used).exercises():
                    self._compare(self.db, text, "exercise")
            held = self._hold() if self.rng.random() < 0.2 else None
            self._apply(change)
            if held is not None:
                self._release(held)
            for view in self.views:
                self._compare(self.rng.choice((self.db, self.reader)), f"SELECT * FROM {view.name}", "view")
            self._compare_duck()
            if self.rng.random() < 0.6:
                self._ad_hoc()
            self._time_travel()
            if step == steps // 3:
                followed = self.rng.choice(self._safe_names())
                subscription = self.db.subscribe(followed, progress=True)
        if subscription is not None:
            self._check_subscription(subscription, followed)

    def _safe_names(self) -> list[str]:
        return [*(v.name for v in self.views if not v.query.fallible), self.tables[0].name]

    # -- statements

    def _both(self, statement: str) -> None:
        self.script.append(statement)
        self.postgres.execute(statement)
        self._ours(statement)

    def _ours(self, statement: str) -> None:
        try:
            self.db.execute(statement)
        except eddyline.Error as failure:
            raise self._mismatch(f"PostgreSQL takes it; here: {failure.sqlstate} {failure}") from failure

    def _create(self, name: str) -> None:
        constructs: Counter[str] = Counter()
        generator = QueryGenerator(self.rng, self.sources, constructs)
        query = generator.fallible_query() if self.rng.random() < 0.15 else generator.query()
        mode = self.rng.choices(("index", "materialized", "plain"), (5, 2, 1))[0]
        self.tally.queries += 1
        try:
            self.postgres.execute(f"CREATE VIEW {name} AS {query.text}")
        except psycopg.Error as refusal:
            self.tally.rejected[f"PostgreSQL: {refusal.diag.message_primary}"] += 1
            self._check_refused(f"CREATE VIEW {name} AS {query.text}", refusal)
            return
        statement = f"CREATE {'MATERIALIZED VIEW' if mode == 'materialized' else 'VIEW'} {name} AS {query.text}"
        self.script.append(statement)
        try:
            self.db.execute(statement)
        except eddyline.NotSupportedError as refusal:
            self.tally.rejected[f"unsupported: {refusal.message}"] += 1
            self.postgres.execute(f"DROP VIEW {name}")
            self.script.pop()
            return
        except eddyline.Error as failure:
            raise self._mismatch(f"PostgreSQL takes the view; here: {failure.sqlstate} {failure}") from failure
        if mode == "index":
            self.script.append(f"CREATE INDEX ON {name} (c0)")
            self._ours(self.script[-1])
        if not query.fallible:
            self.sources.append(Source(name, tuple((f"c{i}", f) for i, f in enumerate(query.families))))
        self.tally.used += constructs
        self.tally.used[f"mode_{mode}"] += 1
        portable = not query.fallible and self.duck.create_view(name, query.text, constructs)
        self.views.append(_View(name, query, mode, portable))

    def _drop_index(self) -> None:
        """From here on a view is computed when it is read, if none of its readers keeps its index."""
        indexed = [v.name for v in self.views if v.mode == "index"]
        if not indexed:
            return
        self.tally.used["drop_index"] += 1
        name = self.rng.choice(indexed)
        self.script.append(f"DROP INDEX {name}_c0_idx")
        self._ours(self.script[-1])
        if self.rng.random() < 0.5:
            self.script.append(f"CREATE INDEX ON {name} (c0)")
            self._ours(self.script[-1])

    def _hold(self) -> tuple[str, Counter[tuple[str, ...]]]:
        """Begins a transaction in the other session: (query, its answer)."""
        query = f"SELECT * FROM {self.rng.choice(self._safe_names())}"
        self.reader.execute("BEGIN")
        return query, bag(self._theirs(query))

    def _release(self, held: tuple[str, Counter[tuple[str, ...]]]) -> None:
        """What a transaction has read stays as it was, whatever has been written since."""
        query, before = held
        after = bag(self._theirs(query))
        if after != before:
            raise self._mismatch(f"in one transaction {query} gives first {dict(before)}, then {dict(after)}")
        self.reader.execute("COMMIT")
        self.tally.checks["repeated_read"] += 1

    def _theirs(self, query: str) -> Rows:
        try:
            return self.reader.execute(query).fetchall()
        except eddyline.Error as failure:
            raise self._mismatch(f"{query}: {failure.sqlstate} {failure}") from failure

    def _apply(self, change: Change) -> None:
        for i, statement in enumerate(change.statements):
            self.script.append(statement)
            try:
                right = self.postgres.execute(statement)
            except psycopg.errors.QueryCanceled:
                raise
            except psycopg.Error as refusal:
                if "BEGIN" in change.statements:
                    raise self._mismatch(f"PostgreSQL refuses part of a transaction: {refusal}") from refusal
                self._check_refused(statement, refusal)
                continue
            try:
                left = self.db.execute(statement)
            except eddyline.Error as failure:
                raise self._mismatch(f"PostgreSQL takes the change; here: {failure.sqlstate} {failure}") from failure
            if left.statusmessage != right.statusmessage:
                raise self._mismatch(f"PostgreSQL says {right.statusmessage}; here: {left.statusmessage}")
            if right.description is not None:
                self._same_columns(left, right)
                self._equal(left.fetchall(), right.fetchall(), "returning")
            last = i + 2 == len(change.statements) and change.statements[0] == "BEGIN"
            if last and not statement.startswith(_FRAME) and self.rng.random() < 0.6:
                self._compare(self.db, f"SELECT * FROM {self.rng.choice(self._safe_names())}", "in_transaction")

    def _check_refused(self, statement: str, expected: psycopg.Error) -> None:
        try:
            self.db.execute(statement)
        except eddyline.Error as failure:
            if failure.sqlstate != expected.sqlstate:
                what = f"PostgreSQL raises {expected.sqlstate} {expected}; here: {failure.sqlstate} {failure}"
                raise self._mismatch(f"{statement}: {what}") from failure
            self.tally.checks["refused_alike"] += 1
        else:
            raise self._mismatch(f"{statement}: PostgreSQL raises {expected.sqlstate} {expected}; here it is done")

    # -- reads

    def _compare(self, session: eddyline.Connection, query: str, kind: str, *, ordered: bool = False) -> None:
        self.script.append(query)
        try:
            asked = self.postgres.execute(query)
            right = asked.fetchall()
        except psycopg.errors.QueryCanceled:
            raise
        except psycopg.Error as expected:
            self._compare_error(session, query, expected)
            self.script.pop()
            return
        try:
            cursor = session.execute(query)
            left = cursor.fetchall()
        except eddyline.Error as failure:
            raise self._mismatch(f"{failure.sqlstate} {failure}") from failure
        self._same_columns(cursor, asked)
        self._equal(left, right, kind, ordered=ordered)
        self.script.pop()
        if kind == "view" and cursor.time is not None and self.rng.random() < 0.3:
            self.remembered.append(_Remembered(cursor.time, query, bag(left)))

    def _same_columns(self, ours: eddyline.Cursor, theirs: psycopg.Cursor[tuple[object, ...]]) -> None:
        """Names and types of the columns."""
        left = [(c[0], c[1]) for c in ours.description or ()]
        right = [(c.name, _type_name(c.type_code)) for c in theirs.description or ()]
        if left != right:
            raise self._mismatch(f"columns {left} instead of {right}")

    def _equal(self, left: Rows, right: Rows, kind: str, *, ordered: bool = False) -> None:
        self.tally.checks[kind] += 1
        ours, theirs = bag(left), bag(right)
        if ours != theirs:
            if bag_of_equals(left) != bag_of_equals(right):
                missing, surplus = theirs - ours, ours - theirs
                raise self._mismatch(f"{kind}: missing {dict(missing)}, surplus {dict(surplus)}")
            self.tally.checks["other_representative"] += 1
        elif ordered and not _same_order(left, right):
            raise self._mismatch(f"{kind}: another order: {left} instead of {right}")

    def _compare_error(self, session: eddyline.Connection, query: str, expected: psycopg.Error) -> None:
        if expected.sqlstate is None or expected.sqlstate[:2] not in _ROW_ERRORS:
            raise self._mismatch(f"PostgreSQL raises {expected.sqlstate} {expected}") from expected
        try:
            session.execute(query).fetchall()
        except eddyline.Error as failure:
            if failure.sqlstate[:2] in _ROW_ERRORS:
                # Where several rows fail, which of them is told is left open.
                self.tally.checks["failed_alike" if failure.sqlstate == expected.sqlstate else "failed_otherwise"] += 1
                return
            got = f"{failure.sqlstate} {failure}"
            raise self._mismatch(f"PostgreSQL raises {expected.sqlstate} {expected}; here: {got}") from failure
        else:
            raise self._mismatch(f"PostgreSQL raises {expected.sqlstate} {expected}; here: rows")

    def _ad_hoc(self) -> None:
        rng = self.rng
        safe = [s for s in self.sources if s.name in self._safe_names()]
        source = rng.choice(safe)
        name, family = rng.choice(source.columns[:1] if rng.random() < 0.7 else source.columns)
        key = literal(rng, family)
        match rng.choice(("ordered", "ordered", "lookup", "lookup_list", "prepared", "parameter", "fallible_read")):
            case "ordered":
                generator = QueryGenerator(rng, self.sources, self.tally.used)
                inner = generator.query(1)
                order = generator.directions(len(inner.families)) + generator.limits()
                text = f"SELECT * FROM ({inner.text}) AS o ORDER BY {order}"
                self._compare(self.db, text, "ordered", ordered=True)
            case "lookup":
                self._compare(self.reader, f"SELECT * FROM {source.name} WHERE {name} = {key}", "lookup")
            case "lookup_list":
                keys = ", ".join((key, literal(rng, family), "NULL"))
                self._compare(self.reader, f"SELECT * FROM {source.name} WHERE {name} IN ({keys})", "lookup")
            case "prepared":
                self._both(f"PREPARE p AS SELECT * FROM {source.name} WHERE {name} = $1")
                self._compare(self.db, f"EXECUTE p ({key})", "prepared")
                self._both("DEALLOCATE p")
            case "parameter":
                query = f"SELECT * FROM {source.name} WHERE {name} = $1"
                value = self.postgres.execute(f"SELECT {key}").fetchone()
                assert value is not None
                right = self.postgres.execute(f"SELECT * FROM {source.name} WHERE {name} = {key}").fetchall()
                self.script.append(f"{query} -- {key}")
                self._equal(self.reader.execute(query, value).fetchall(), right, "parameter")
                self.script.pop()
            case _:
                failing = QueryGenerator(rng, self.sources, self.tally.used).fallible_query()
                self._compare(self.db, failing.text, "fallible_read")

    def _time_travel(self) -> None:
        """What was read at a time is read at it again, or is no longer there."""
        while self.remembered and self.rng.random() < 0.4:
            before = self.remembered.pop(self.rng.randrange(len(self.remembered)))
            query = f"{before.query} AS OF {before.time}"
            try:
                rows = bag(self.reader.execute(query).fetchall())
            except eddyline.ProgrammingError as failure:
                raise self._mismatch(f"{query}: {failure.sqlstate} {failure}") from failure
            except eddyline.DataError as gone:
                if gone.sqlstate != "22023" or "since" not in str(gone):
                    raise self._mismatch(f"{query}: {gone.sqlstate} {gone}") from gone
                self.tally.checks["as_of_gone"] += 1
                continue
            self.tally.checks["as_of"] += 1
            if rows != before.rows:
                raise self._mismatch(f"{query}: {dict(rows)} instead of {dict(before.rows)}")

    def _check_subscription(self, subscription: eddyline.Subscription, name: str) -> None:
        answer = self.db.execute(f"SELECT * FROM {name}")
        assert answer.time is not None
        right = Counter(_image(tuple(row.values())) for row in answer.arrow().to_pylist())
        total: Counter[str] = Counter()
        deadline = time.monotonic() + _ANSWER_SECONDS
        while (change := subscription.next(deadline - time.monotonic())) is not None:
            updates = change.updates.to_pylist()
            if updates[0]["mz_progressed"]:
                if change.time > answer.time:
                    break
                continue
            for row in updates:
                diff = row["mz_diff"]
                total[_image(tuple(row.values())[3:])] += diff
        subscription.close()
        if change is None:
            raise self._mismatch(f"SUBSCRIBE {name}: does not reach {answer.time}")
        total = Counter({row: count for row, count in total.items() if count})
        if total != right:
            raise self._mismatch(f"SUBSCRIBE {name}: {dict(total)} instead of {dict(right)}")
        self.tally.checks["subscription"] += 1

    def _compare_duck(self) -> None:
        """PostgreSQL decides; DuckDB's agreement with it shows that the comparison itself compares something."""
        portable = [view for view in self.views if view.portable]
        if not portable:
            return
        for table in self.tables:
            self.duck.load(table.name, self.postgres.execute(f"SELECT * FROM {table.name}").fetchall())
        for view in portable:
            theirs = self.duck.rows(view.name)
            if theirs is None:
                continue
            right = self.postgres.execute(f"SELECT * FROM {view.name}").fetchall()
            equal = loosely_equal(theirs, right)
            if not equal:
                self.tally.duck_differences.append(f"{view.query.text}: {theirs} in DuckDB, {right} in PostgreSQL")
            self.tally.checks["duckdb_equal" if equal else "duckdb_differs"] += 1

    def _mismatch(self, difference: str) -> Mismatch:
        runtimes = "two runtimes" if self.interactive else "one runtime"
        return Mismatch(f"seed {self.seed}, {runtimes}: {difference}\n" + ";\n".join(self.script) + ";")


def _type_name(oid: int) -> str:
    found = psycopg.adapters.types.get(oid)
    return found.regtype if found is not None else str(oid)


def _image(row: tuple[object, ...]) -> str:
    """The text of a row of an Arrow batch, whose numerics share one scale."""
    return " | ".join(equal_text(value) for value in row)


def _same_order(left: Rows, right: Rows) -> bool:
    return all(bag([a]) == bag([b]) for a, b in zip(left, right, strict=True)) or all(
        bag_of_equals([a]) == bag_of_equals([b]) for a, b in zip(left, right, strict=True)
    )
