"""What is wrong with a statement: PostgreSQL 15's SQLSTATE, message, position and hint, recorded from a server."""

from __future__ import annotations

import pytest

from eddyline.errors import Error, NotSupportedError
from eddyline.testing.catalog_script import CatalogScript

SETUP = """
CREATE TABLE t (
    a int PRIMARY KEY, b text NOT NULL DEFAULT 'x', c numeric(12,2) DEFAULT 1.5, d timestamptz DEFAULT now()
);
CREATE TABLE u (a int, b varchar(3), n bigint);
CREATE TABLE k2 (a int, b int, v text, PRIMARY KEY (b, a));
CREATE VIEW v AS SELECT a, b FROM t;
CREATE MATERIALIZED VIEW m AS SELECT a FROM t;
CREATE INDEX i ON t (b);
CREATE SCHEMA s;
CREATE TABLE s.t (x int);
"""


Expected = tuple[str, str, int | None, str | None]


@pytest.fixture(scope="module")
def script() -> CatalogScript:
    return CatalogScript(SETUP)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "INSERT INTO t VALUES (1, 'b', 2, now(), 5)",
            ("42601", "INSERT has more expressions than target columns", 41, None),
        ),
        ("INSERT INTO t (a, b) VALUES (1)", ("42601", "INSERT has more target columns than expressions", 19, None)),
        ("INSERT INTO t (a) VALUES (1, 2)", ("42601", "INSERT has more expressions than target columns", 30, None)),
        ("INSERT INTO t (a, zz) VALUES (1, 2)", ("42703", 'column "zz" of relation "t" does not exist', 19, None)),
        ("INSERT INTO t (a, a) VALUES (1, 2)", ("42701", 'column "a" specified more than once', 19, None)),
        ("INSERT INTO t VALUES (1), (1, 'x')", ("42601", "VALUES lists must all be the same length", 28, None)),
        (
            "INSERT INTO t SELECT 1, 'x', 2, now(), 5",
            ("42601", "INSERT has more expressions than target columns", 40, None),
        ),
        ("INSERT INTO t (a, b) SELECT 1", ("42601", "INSERT has more target columns than expressions", 19, None)),
        ("INSERT INTO nope VALUES (1)", ("42P01", 'relation "nope" does not exist', 13, None)),
        ("INSERT INTO s.nope VALUES (1)", ("42P01", 'relation "s.nope" does not exist', 13, None)),
        ("INSERT INTO nos.t VALUES (1)", ("42P01", 'relation "nos.t" does not exist', 13, None)),
        ("INSERT INTO m VALUES (1)", ("42809", 'cannot change materialized view "m"', None, None)),
        ("INSERT INTO i VALUES (1)", ("42809", '"i" is an index', 13, None)),
        ("INSERT INTO t VALUES ('abc')", ("22P02", 'invalid input syntax for type integer: "abc"', 23, None)),
        (
            "INSERT INTO t VALUES (now())",
            (
                "42804",
                'column "a" is of type integer but expression is of type timestamp with time zone',
                23,
                "You will need to rewrite or cast the expression.",
            ),
        ),
        (
            "INSERT INTO t (a, c) VALUES (1, true)",
            (
                "42804",
                'column "c" is of type numeric but expression is of type boolean',
                33,
                "You will need to rewrite or cast the expression.",
            ),
        ),
        (
            "INSERT INTO t (a) SELECT 'x'::text",
            (
                "42804",
                'column "a" is of type integer but expression is of type text',
                26,
                "You will need to rewrite or cast the expression.",
            ),
        ),
        (
            "INSERT INTO t (a) SELECT b FROM t",
            (
                "42804",
                'column "a" is of type integer but expression is of type text',
                26,
                "You will need to rewrite or cast the expression.",
            ),
        ),
        ("INSERT INTO t (a) VALUES (sum(1))", ("42803", "aggregate functions are not allowed in VALUES", 27, None)),
        ("INSERT INTO t (a) VALUES (zz)", ("42703", 'column "zz" does not exist', 27, None)),
        (
            "INSERT INTO t (a) VALUES (1) ON CONFLICT (b) DO NOTHING",
            ("42P10", "there is no unique or exclusion constraint matching the ON CONFLICT specification", None, None),
        ),
        ("INSERT INTO t (a) VALUES (1) ON CONFLICT (zz) DO NOTHING", ("42703", 'column "zz" does not exist', 42, None)),
        (
            "INSERT INTO t (a) VALUES (1) ON CONFLICT ON CONSTRAINT zz DO NOTHING",
            ("42704", 'constraint "zz" for table "t" does not exist', None, None),
        ),
        (
            "INSERT INTO t (a) VALUES (1) ON CONFLICT DO UPDATE SET b = 'y'",
            (
                "42601",
                "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                30,
                "For example, ON CONFLICT (column_name).",
            ),
        ),
        (
            "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET zz = 1",
            ("42703", 'column "zz" of relation "t" does not exist', 60, None),
        ),
        (
            "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = b || 'x'",
            ("42702", 'column reference "b" is ambiguous', 64, None),
        ),
        (
            "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 'x', b = 'y'",
            ("42601", 'multiple assignments to same column "b"', None, None),
        ),
        (
            "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET c = true",
            (
                "42804",
                'column "c" is of type numeric but expression is of type boolean',
                64,
                "You will need to rewrite or cast the expression.",
            ),
        ),
        (
            "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 'x' WHERE t.a",
            ("42804", "argument of WHERE must be type boolean, not type integer", 74, None),
        ),
        (
            "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = 'x' WHERE u.a > 1",
            ("42P01", 'missing FROM-clause entry for table "u"', 74, None),
        ),
        (
            "INSERT INTO u VALUES (1) ON CONFLICT (a) DO NOTHING",
            ("42P10", "there is no unique or exclusion constraint matching the ON CONFLICT specification", None, None),
        ),
        ("INSERT INTO t (a) VALUES (1) RETURNING zz", ("42703", 'column "zz" does not exist', 40, None)),
        (
            "INSERT INTO t (a) VALUES (1) RETURNING excluded.a",
            ("42P01", 'missing FROM-clause entry for table "excluded"', 40, None),
        ),
        (
            "INSERT INTO t (a) VALUES (1) RETURNING count(*)",
            ("42803", "aggregate functions are not allowed in RETURNING", 40, None),
        ),
        ("UPDATE t SET zz = 1", ("42703", 'column "zz" of relation "t" does not exist', 14, None)),
        ("UPDATE t SET a = 1, a = 2", ("42601", 'multiple assignments to same column "a"', None, None)),
        (
            "UPDATE t SET a = true",
            (
                "42804",
                'column "a" is of type integer but expression is of type boolean',
                18,
                "You will need to rewrite or cast the expression.",
            ),
        ),
        ("UPDATE t SET a = 'abc'", ("22P02", 'invalid input syntax for type integer: "abc"', 18, None)),
        (
            "UPDATE t SET a = b",
            (
                "42804",
                'column "a" is of type integer but expression is of type text',
                18,
                "You will need to rewrite or cast the expression.",
            ),
        ),
        ("UPDATE t SET (a, b) = (1, 2, 3)", ("42601", "number of columns does not match number of values", 23, None)),
        ("UPDATE t SET (a, b) = (SELECT 1)", ("42601", "number of columns does not match number of values", 23, None)),
        (
            "UPDATE t SET (a, b) = 5",
            ("0A000", "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression", 23, None),
        ),
        ("UPDATE t SET a = sum(a)", ("42803", "aggregate functions are not allowed in UPDATE", 18, None)),
        ("UPDATE t SET a = zz", ("42703", 'column "zz" does not exist', 18, None)),
        ("UPDATE t SET a = 1 WHERE zz", ("42703", 'column "zz" does not exist', 26, None)),
        ("UPDATE t SET a = 1 WHERE a", ("42804", "argument of WHERE must be type boolean, not type integer", 26, None)),
        ("UPDATE t SET a = 1 WHERE sum(a) > 1", ("42803", "aggregate functions are not allowed in WHERE", 26, None)),
        ("UPDATE t SET a = 1 FROM t", ("42712", 'table name "t" specified more than once', None, None)),
        ("UPDATE t SET a = 1 FROM nope", ("42P01", 'relation "nope" does not exist', 25, None)),
        ("UPDATE t SET a = 1 FROM u WHERE b = 'x'", ("42702", 'column reference "b" is ambiguous', 33, None)),
        ("UPDATE t SET t.a = 1", ("42703", 'column "t" of relation "t" does not exist', 14, None)),
        ("UPDATE m SET a = 1", ("42809", 'cannot change materialized view "m"', None, None)),
        ("UPDATE nope SET a = 1", ("42P01", 'relation "nope" does not exist', 8, None)),
        ("UPDATE t SET a = 1 RETURNING zz", ("42703", 'column "zz" does not exist', 30, None)),
        ("DELETE FROM t WHERE zz = 1", ("42703", 'column "zz" does not exist', 21, None)),
        ("DELETE FROM t WHERE a", ("42804", "argument of WHERE must be type boolean, not type integer", 21, None)),
        ("DELETE FROM t USING u WHERE b = 'x'", ("42702", 'column reference "b" is ambiguous', 29, None)),
        ("DELETE FROM nope", ("42P01", 'relation "nope" does not exist', 13, None)),
        ("DELETE FROM m", ("42809", 'cannot change materialized view "m"', None, None)),
        ("DELETE FROM t RETURNING zz", ("42703", 'column "zz" does not exist', 25, None)),
        ("DELETE FROM t USING t", ("42712", 'table name "t" specified more than once', None, None)),
        ("TRUNCATE nope", ("42P01", 'relation "nope" does not exist', None, None)),
        ("TRUNCATE v", ("42809", '"v" is not a table', None, None)),
        ("CREATE TABLE x (a int, a int)", ("42701", 'column "a" specified more than once', None, None)),
        (
            "CREATE TABLE x (a int PRIMARY KEY, b int PRIMARY KEY)",
            ("42P16", 'multiple primary keys for table "x" are not allowed', 42, None),
        ),
        ("CREATE TABLE x (a int, PRIMARY KEY (b))", ("42703", 'column "b" named in key does not exist', 24, None)),
        (
            "CREATE TABLE x (a int, PRIMARY KEY (a, a))",
            ("42701", 'column "a" appears twice in primary key constraint', 24, None),
        ),
        (
            "CREATE TABLE x (a int NULL NOT NULL)",
            ("42601", 'conflicting NULL/NOT NULL declarations for column "a" of table "x"', 28, None),
        ),
        (
            "CREATE TABLE x (a int DEFAULT 1 DEFAULT 2)",
            ("42601", 'multiple default values specified for column "a" of table "x"', 33, None),
        ),
        ("CREATE TABLE x (a int DEFAULT 'abc')", ("22P02", 'invalid input syntax for type integer: "abc"', 31, None)),
        (
            "CREATE TABLE x (a int DEFAULT true)",
            (
                "42804",
                'column "a" is of type integer but default expression is of type boolean',
                None,
                "You will need to rewrite or cast the expression.",
            ),
        ),
        (
            "CREATE TABLE x (a int DEFAULT b, b int)",
            ("0A000", "cannot use column reference in DEFAULT expression", 31, None),
        ),
        ("CREATE TABLE x (a int DEFAULT (SELECT 1))", ("0A000", "cannot use subquery in DEFAULT expression", 31, None)),
        (
            "CREATE TABLE x (a int DEFAULT sum(1))",
            ("42803", "aggregate functions are not allowed in DEFAULT expressions", 31, None),
        ),
        ("CREATE TABLE x (a nope)", ("42704", 'type "nope" does not exist', 19, None)),
        ("CREATE TABLE x (a s.nope)", ("42704", 'type "s.nope" does not exist', 19, None)),
        ("CREATE TABLE x (a varchar(0))", ("22023", "length for type varchar must be at least 1", 19, None)),
        ("CREATE TABLE x (ctid int)", ("42701", 'column name "ctid" conflicts with a system column name', None, None)),
        ("CREATE TABLE nos.x (a int)", ("3F000", 'schema "nos" does not exist', 14, None)),
        ("CREATE TABLE x (a int DEFAULT $1)", ("42P02", "there is no parameter $1", 31, None)),
        ("CREATE TABLE x (a, b) AS SELECT 1", ("42601", "too many column names were specified", None, None)),
        ("CREATE TABLE x AS SELECT 1 AS a, 2 AS a", ("42701", 'column "a" specified more than once', None, None)),
        ("CREATE TABLE x AS SELECT zz", ("42703", 'column "zz" does not exist', 26, None)),
        (
            "CREATE VIEW x (a, b) AS SELECT 1",
            ("42601", "CREATE VIEW specifies more column names than columns", None, None),
        ),
        ("CREATE VIEW x AS SELECT 1 AS a, 2 AS a", ("42701", 'column "a" specified more than once', None, None)),
        ("CREATE VIEW x AS SELECT $1::int", ("42P02", "there is no parameter $1", 25, None)),
        ("CREATE VIEW x AS SELECT * FROM nope", ("42P01", 'relation "nope" does not exist', 32, None)),
        (
            "CREATE MATERIALIZED VIEW x (a, b) AS SELECT 1",
            ("42601", "too many column names were specified", None, None),
        ),
        ("CREATE INDEX ON nope (a)", ("42P01", 'relation "nope" does not exist', None, None)),
        ("CREATE INDEX ON t (zz)", ("42703", 'column "zz" does not exist', None, None)),
        ("CREATE INDEX ON i (a)", ("42809", '"i" is an index', None, None)),
        (
            "CREATE INDEX ON t ((sum(a)))",
            ("42803", "aggregate functions are not allowed in index expressions", 21, None),
        ),
        ("CREATE INDEX ON t (((SELECT 1)))", ("0A000", "cannot use subquery in index expression", 21, None)),
        ("CREATE INDEX ON t USING nope (a)", ("42704", 'access method "nope" does not exist', None, None)),
        ("COPY t (zz) FROM STDIN", ("42703", 'column "zz" of relation "t" does not exist', None, None)),
        ("COPY t (a, a) FROM STDIN", ("42701", 'column "a" specified more than once', None, None)),
        ("COPY nope FROM STDIN", ("42P01", 'relation "nope" does not exist', None, None)),
        ("COPY v TO STDOUT", ("42809", 'cannot copy from view "v"', None, "Try the COPY (SELECT ...) TO variant.")),
        (
            "COPY m TO STDOUT",
            ("42809", 'cannot copy from materialized view "m"', None, "Try the COPY (SELECT ...) TO variant."),
        ),
        ("COPY t FROM STDIN (FORMAT nope)", ("22023", 'COPY format "nope" not recognized', 20, None)),
        ("COPY t FROM STDIN (nope 1)", ("42601", 'option "nope" not recognized', 20, None)),
        (
            "COPY t FROM STDIN (DELIMITER 'ab')",
            ("0A000", "COPY delimiter must be a single one-byte character", None, None),
        ),
        ("COPY t FROM STDIN (DELIMITER 'a')", ("22023", 'COPY delimiter cannot be "a"', None, None)),
        ("COPY t FROM STDIN (QUOTE 'x')", ("0A000", "COPY quote available only in CSV mode", None, None)),
        (
            "COPY t FROM STDIN (FORMAT csv, QUOTE ',')",
            ("22023", "COPY delimiter and quote must be different", None, None),
        ),
        (
            "COPY t FROM STDIN (FORMAT csv, QUOTE 'ab')",
            ("0A000", "COPY quote must be a single one-byte character", None, None),
        ),
        (
            "COPY t FROM STDIN (FORMAT csv, HEADER nope)",
            ("42601", 'header requires a Boolean value or "match"', None, None),
        ),
        ("COPY t FROM STDIN (HEADER, HEADER)", ("42601", "conflicting or redundant options", 28, None)),
        ("COPY t TO STDOUT (HEADER match)", ("0A000", 'cannot use "match" with HEADER in COPY TO', None, None)),
        (
            "COPY t FROM STDIN (FORMAT csv, NULL '\"')",
            ("0A000", "CSV quote character must not appear in the NULL specification", None, None),
        ),
        (
            "COPY t FROM STDIN (FORMAT csv, FORCE_QUOTE *)",
            ("0A000", "COPY force quote only available using COPY TO", None, None),
        ),
        ("EXPLAIN (nope) SELECT 1", ("42601", 'unrecognized EXPLAIN option "nope"', 10, None)),
        ("EXPLAIN SELECT zz", ("42703", 'column "zz" does not exist', 16, None)),
        ("PREPARE p (nope) AS SELECT 1", ("42704", 'type "nope" does not exist', 12, None)),
    ],
)
def test_errors_are_postgresql_s(script: CatalogScript, text: str, expected: Expected) -> None:
    """Where PostgreSQL gives no position, one of ours is welcome."""
    with pytest.raises(Error) as caught:
        script.run(text)
    error = caught.value
    sqlstate, message, position, hint = expected
    assert (error.sqlstate, error.message) == (sqlstate, message)
    if position is not None:
        assert error.position == position
    assert error.hint == hint


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("CREATE TABLE x (a int CHECK (a > 1))", "a CHECK constraint is not supported"),
        ("CREATE TABLE x (a int, CHECK (a > 1))", "a CHECK constraint is not supported"),
        ("CREATE TABLE x (a int UNIQUE)", "a UNIQUE constraint is not supported"),
        ("CREATE TABLE x (a int, UNIQUE (a))", "a UNIQUE constraint is not supported"),
        ("CREATE TABLE x (a int REFERENCES t)", "a FOREIGN KEY constraint is not supported"),
        ("CREATE TABLE x (a int, FOREIGN KEY (a) REFERENCES t)", "a FOREIGN KEY constraint is not supported"),
        ("CREATE TABLE x (a int GENERATED ALWAYS AS (1) STORED)", "GENERATED … STORED"),
        ("CREATE TABLE x (a int PRIMARY KEY DEFERRABLE)", "DEFERRABLE"),
        ("CREATE TABLE x (a interval[])", "an array of interval is not supported"),
        ('CREATE TABLE x (a text COLLATE "en_US")', "collation"),
        ("CREATE TABLE x (LIKE t)", "LIKE"),
        ("CREATE TABLE x (a int) INHERITS (t)", "INHERITS"),
        ("CREATE TABLE x (a int) PARTITION BY LIST (a)", "PARTITION BY"),
        ("CREATE TABLE x (a int) WITH (fillfactor = 10)", "WITH (…) of a table"),
        ("CREATE TEMP TABLE x (a int)", "temporary"),
        ("CREATE UNLOGGED TABLE x (a int)", "unlogged"),
        ("CREATE TEMP VIEW x AS SELECT 1", "temporary"),
        ("CREATE VIEW x AS SELECT a FROM t WITH CHECK OPTION", "WITH CHECK OPTION"),
        ("CREATE MATERIALIZED VIEW x AS SELECT 1 WITH NO DATA", "WITH NO DATA"),
        ("CREATE UNIQUE INDEX ON t (b)", "CREATE UNIQUE INDEX"),
        ("CREATE INDEX ON t (b) WHERE a > 1", "partial index"),
        ("CREATE INDEX ON t (b) INCLUDE (a)", "INCLUDE"),
        ("CREATE INDEX ON t USING gin (b)", "index access method gin"),
        ("CREATE INDEX ON t (b text_pattern_ops)", "operator class"),
        ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE FUNCTION"),
        ("CREATE TRIGGER g BEFORE INSERT ON t EXECUTE FUNCTION f()", "CREATE TRIGGER"),
        ("CREATE TYPE e AS ENUM ('a')", "CREATE TYPE … AS ENUM"),
        ("CREATE DATABASE d", "CREATE DATABASE"),
        ("ALTER TABLE t ADD COLUMN z int", "ALTER … ADD COLUMN"),
        ("ALTER TABLE t RENAME COLUMN a TO z", "RENAME COLUMN"),
        ("DROP FUNCTION f()", "DROP FUNCTION"),
        ("COMMENT ON TABLE t IS 'x'", "COMMENT"),
        ("CREATE ROLE r REPLICATION", "a role's REPLICATION"),
        ("MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE", "MERGE"),
        ("REFRESH MATERIALIZED VIEW m", "REFRESH MATERIALIZED VIEW"),
        ("LOCK TABLE t", "LOCK TABLE"),
        ("DO 'x'", "DO"),
        ("VACUUM", "VACUUM"),
        ("ANALYZE t", "ANALYZE"),
        ("LISTEN x", "LISTEN"),
        ("PREPARE TRANSACTION 'x'", "two-phase commit"),
        ("BEGIN DEFERRABLE", "DEFERRABLE"),
        ("SELECT 1 INTO x", "SELECT INTO"),
        ("UPDATE t SET b = 'x' WHERE CURRENT OF c", "CURRENT OF"),
        ("WITH q AS (DELETE FROM t RETURNING a) SELECT * FROM q", "data-modifying"),
        ("INSERT INTO t (a) VALUES (1) RETURNING (SELECT 1)", "a subquery in RETURNING"),
        ("INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = (SELECT 'x')", "a subquery in UPDATE"),
        ("COPY t FROM PROGRAM 'cat'", "PROGRAM"),
        ("COPY t FROM STDIN WHERE a > 1", "WHERE"),
        ("COPY t FROM STDIN (FORMAT parquet, DELIMITER ',')", "delimiter with format parquet"),
        ("COPY (DELETE FROM t RETURNING a) TO STDOUT", "COPY of a statement other than a query"),
        ("EXPLAIN ANALYZE INSERT INTO t (a) VALUES (1)", "EXPLAIN ANALYZE of a statement other than a read"),
        ("EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1", "EXPLAIN ANALYZE of a statement other than a read"),
        ("EXPLAIN ANALYZE SUBSCRIBE t", "EXPLAIN ANALYZE of a statement other than a read"),
        ("EXPLAIN (ANALYZE) VIEW v", "EXPLAIN ANALYZE VIEW"),
        ("EXPLAIN (BUFFERS, ANALYZE) SELECT 1", "EXPLAIN option BUFFERS"),
        ("EXPLAIN (COSTS) SELECT 1", "EXPLAIN option COSTS"),
        ("EXPLAIN (ANALYZE, WAL on) SELECT a FROM t AS OF 5", "EXPLAIN option WAL"),
        ("EXPLAIN (FORMAT yaml) SELECT 1", "EXPLAIN format yaml"),
        ("CREATE VIEW x AS SELECT a FROM t WHERE b = current_user", "the current user or a right of it in a view"),
        ("CREATE VIEW x AS SELECT 1 WHERE EXISTS (SELECT session_user)", "the current user or a right of it in a view"),
        (
            "CREATE VIEW x AS SELECT has_table_privilege('t', 'SELECT')",
            "the current user or a right of it in a view",
        ),
        (
            "CREATE MATERIALIZED VIEW x AS SELECT a FROM t UNION SELECT length(current_role)",
            "the current user or a right of it in a view",
        ),
        ("CREATE VIEW x AS SELECT current_setting('statement_timeout')", "current_setting in a view"),
    ],
)
def test_what_is_not_there_is_refused_by_name(script: CatalogScript, text: str, what: str) -> None:
    with pytest.raises(NotSupportedError) as caught:
        script.run(text)
    assert caught.value.sqlstate == "0A000"
    assert what in caught.value.message


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("REFRESH MATERIALIZED VIEW m", "always fresh"),
        ("ALTER TABLE t ADD COLUMN z int", "INSERT … SELECT"),
        ("SELECT * FROM information_schema.domains", "SHOW TABLES"),
        ("SELECT * FROM pg_catalog.pg_stat_bgwriter", "SHOW TABLES"),
        ("SELECT * FROM pg_stat_bgwriter", "SHOW TABLES"),
        ("INSERT INTO pg_stat_bgwriter VALUES (1)", "SHOW TABLES"),
    ],
)
def test_habits_of_postgresql_are_told_what_to_do_instead(script: CatalogScript, text: str, hint: str) -> None:
    with pytest.raises(Error) as caught:
        script.run(text)
    assert caught.value.hint is not None
    assert hint in caught.value.hint


def test_too_many_columns(script: CatalogScript) -> None:
    columns = ", ".join(f"c{i} int" for i in range(1601))
    with pytest.raises(Error) as caught:
        script.run(f"CREATE TABLE x ({columns})")
    assert (caught.value.sqlstate, caught.value.message) == ("54011", "tables can have at most 1600 columns")


def test_positions_count_characters_over_the_whole_text(script: CatalogScript) -> None:
    text = "SELECT 'é';  UPDATE t SET b = 'é', zz = 1"
    with pytest.raises(Error) as caught:
        script.run(text)
    assert caught.value.position == text.index("zz") + 1
