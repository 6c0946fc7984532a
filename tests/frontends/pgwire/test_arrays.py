"""Arrays beside PostgreSQL's: expressions, tables, both formats of the wire."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest

from eddyline.testing.postgres import PostgresServer
from eddyline.testing.served import ServedDatabase
from tests.frontends.pgwire.conftest import Connection

#: of one value each, as text
EXPRESSIONS = [
    "ARRAY[1, 2, NULL]", "ARRAY['a', NULL, 'b c']", "ARRAY[1.50, 2.25]", "ARRAY[true, false, NULL]",
    "ARRAY[[1,2],[3,4]]", "ARRAY[ARRAY[1], ARRAY[2]]", "ARRAY[]::int[]", "ARRAY['1', '2']::int[]",
    "ARRAY[1, 2.5, 3::bigint]", "ARRAY[1::smallint, 2]", "'{1,2,3}'::int[]", "'{}'::text[]",
    "'{a,\"b c\",NULL,\"NULL\",\"\"}'::text[]", "'{{1,2},{3,4}}'::int[]", "'[0:1]={1,2}'::int[]",
    "' { 1 , 2 } '::int[]", "'{\"a\\\"b\",c\\\\d,\"{}\"}'::text[]", "'{2024-01-01,infinity}'::date[]",
    "'{1.5,-0.25,100}'::numeric(6,2)[]", "'{abc,d}'::varchar(2)[]", "'{ab,c}'::char(3)[]",
    "'{NaN,-Infinity,1.5,-2e-300}'::float8[]", "'{1.5}'::real[]", "'{\\\\x00ff01}'::bytea[]",
    "'{2024-01-01 10:00:00.25}'::timestamp[]", "'{2024-01-01 10:00:00+02}'::timestamptz[]", "'{10:11:12}'::time[]",
    "'{00112233-4455-6677-8899-aabbccddeeff}'::uuid[]", "'{1,2}'::int[]::text", "'{1,2}'::int[]::bigint[]",
    "'{1.4,1.5}'::numeric[]::int[]", "ARRAY[1,2]::text[]", "'{{1,2},{3,4}}'::int[]::text[]", "'1 2'::int2vector",
    "ARRAY[1,2] || 3", "0 || ARRAY[1,2]", "ARRAY[1] || ARRAY[2,3]", "ARRAY[1] || NULL::int", "NULL::int[] || 1",
    "ARRAY[[1,2]] || ARRAY[3,4]", "ARRAY[1,2] || '{3}'", "'{}'::int[] || ARRAY[1]",
    "array_append(ARRAY[1], 2::bigint)", "array_prepend('x', ARRAY['y'])", "array_cat(ARRAY[1], NULL)",
    "'a'::varchar || '-' || 1", "'[5:6]={1,2}'::int[] || 3", "(ARRAY[5,6,7])[2]", "(ARRAY[5,6,7])[0]",
    "(ARRAY[5,6,7])[NULL]", "('{{1,2},{3,4}}'::int[])[2][1]", "('{{1,2},{3,4}}'::int[])[2]",
    "('[0:2]={7,8,9}'::int[])[0]", "(ARRAY[5,6,7])[2:]", "(ARRAY[5,6,7])[:2]", "(ARRAY[5,6,7])[2:9]",
    "(ARRAY[5,6,7])[3:2]", "('{{1,2},{3,4}}'::int[])[1:2][2:2]", "('{{1,2},{3,4}}'::int[])[2:2]",
    "('{{1,2},{3,4}}'::int[])[1:1][2]", "array_length(ARRAY[1,2],1)", "array_length('{}'::int[],1)",
    "array_length('{{1,2,3}}'::int[],2)", "array_upper('[0:2]={7,8,9}'::int[],1)",
    "array_lower('[0:2]={7,8,9}'::int[],1)", "array_ndims('{{1},{2}}'::int[])", "array_dims('{{1},{2}}'::int[])",
    "cardinality('{{1,2},{3,4}}'::int[])", "cardinality('{}'::int[])", "array_to_string(ARRAY[1,NULL,3], ',')",
    "array_to_string(ARRAY[1,NULL,3], ',', '*')", "array_to_string('{{a,b},{c,d}}'::text[], '-')",
    "array_to_string(ARRAY[true,false], ',')", "string_to_array('a,b,,c', ',')", "string_to_array('a,b', NULL)",
    "string_to_array('a,b', '')", "string_to_array('', ',')", "string_to_array('a,x,b', ',', 'x')",
    "array_position(ARRAY['a','b','a'], 'a')", "array_position(ARRAY['a','b','a'], 'a', 2)",
    "array_position(ARRAY[1,NULL], NULL)", "array_position(ARRAY[1], 5)", "array_positions(ARRAY[1,2,1], 1)",
    "array_remove(ARRAY[1,2,1,NULL], 1)", "array_remove(ARRAY[1,NULL], NULL)", "array_replace(ARRAY[1,2,1], 1, 9)",
    "trim_array(ARRAY[1,2,3], 2)", "ARRAY[1,2] = ARRAY[1,2]", "ARRAY[1,2] < ARRAY[1,3]", "ARRAY[1,2] < ARRAY[1,2,0]",
    "ARRAY[1,NULL] > ARRAY[1,2]", "ARRAY[NULL]::int[] = ARRAY[NULL]::int[]", "'{{1,2}}'::int[] = '{1,2}'::int[]",
    "ARRAY['b'] > ARRAY['a','z']", "ARRAY[-1] < ARRAY[1]", "ARRAY[-1.5] < ARRAY[-1.25]",
    "'{-1.5}'::float8[] < '{0}'::float8[]", "ARRAY[''] < ARRAY['a']", "ARRAY[1.0] = ARRAY[1.00]",
    "ARRAY[1,2,3] @> ARRAY[3,1]", "ARRAY[1,2] @> ARRAY[NULL]::int[]", "ARRAY[1] <@ ARRAY[1,2]",
    "ARRAY[1,2] && ARRAY[2,3]", "ARRAY[1] && '{}'", "ARRAY[1,2] @> '{1}'", "2 = ANY ('{1,2}'::int[])",
    "3 = ANY (ARRAY[1,NULL])", "3 = ANY ('{}'::int[])", "NULL::int = ANY ('{}'::int[])",
    "NULL::int = ANY ('{1}'::int[])", "3 = ANY (NULL::int[])", "1 <> ALL ('{2,3}'::int[])",
    "1 <> ALL ('{2,NULL}'::int[])", "1 < ALL ('{}'::int[])", "5 > ANY ('{7,3}'::bigint[])",
    "1.5 = ANY ('{1,1.5}'::numeric[])", "'abc' LIKE ANY ('{x%,a%}'::text[])", "'abc' LIKE ALL ('{%c,a%}'::text[])",
    "'b' = ANY (string_to_array('a,b', ','))", "2 = ANY ('{{1,2},{3,4}}'::int[])",
    "ARRAY(SELECT x FROM generate_series(1, 5) x ORDER BY x DESC)", "ARRAY(SELECT 1 WHERE false)",
    "ARRAY(SELECT x FROM generate_series(1, 9) x ORDER BY -x LIMIT 3)", "ARRAY(SELECT NULL::text)",
    "ARRAY(SELECT x * 2 FROM unnest(ARRAY[3,1,2]) x WHERE x <> 1)",
    "ARRAY(SELECT b FROM (VALUES (1,'x'),(2,'w')) v (a, b) ORDER BY a)",
    "(SELECT array_agg(x ORDER BY x DESC) FROM generate_series(1, 4) x)",
    "(SELECT array_agg(x) FROM generate_series(1, 0) x)",
    "(SELECT array_agg(x ORDER BY x) FILTER (WHERE x > 2) FROM generate_series(1, 4) x)",
    "(SELECT array_agg(DISTINCT x % 3 ORDER BY x % 3 DESC) FROM generate_series(1, 9) x)",
    "(SELECT array_agg(DISTINCT x % 3) FILTER (WHERE x % 3 > 0) FROM generate_series(1, 9) x)",
    "(SELECT array_agg(10 / x ORDER BY x) FILTER (WHERE x > 0) FROM generate_series(0, 2) x)",
    "(SELECT array_agg(v ORDER BY n) FROM (VALUES (1,'b'),(2,NULL),(3,'a')) t (n, v))",
    "greatest(ARRAY[1,2], ARRAY[1,3])", "coalesce(NULL::int[], '{4}')", "CASE WHEN true THEN ARRAY[1] ELSE '{2}' END",
    "nullif(ARRAY[1], ARRAY[1])", "(SELECT max(a) FROM (VALUES (ARRAY[1,9]),(ARRAY[2])) v (a))",
    "json_build_object('a', 1, 'b', NULL, 'c', ARRAY[1,2], 'd', 'x\"y', 'e', 1.50, 'f', true)",
]  # fmt: skip
QUERIES = [
    "SELECT * FROM unnest(ARRAY[3,1], ARRAY['x','y','z']) WITH ORDINALITY AS t (a, b, n) ORDER BY n",
    "SELECT * FROM unnest(ARRAY[[1,2],[3,4]]) WITH ORDINALITY ORDER BY ordinality",
    "SELECT unnest(ARRAY[1,2,3]) AS a, unnest('{a,b}'::text[]) AS b, generate_subscripts(ARRAY[7,7], 1) ORDER BY 1",
    "SELECT n, x FROM (VALUES (1, ARRAY[5,6]), (2, '{}'), (3, NULL)) v (n, a), unnest(a) AS x ORDER BY n, x",
    "SELECT n, x FROM (VALUES (1, ARRAY[5,6]), (2, '{}')) v (n, a) LEFT JOIN unnest(a) AS x ON true ORDER BY n, x",
    "SELECT i FROM generate_subscripts('[3:5]={1,2,3}'::int[], 1, true) i ORDER BY i",
    "SELECT x FROM string_to_table('b,a', ',') x ORDER BY x",
    "SELECT a, count(*) FROM (VALUES (ARRAY[1.0]), (ARRAY[1.00]), (NULL), (ARRAY[2])) v (a) GROUP BY a ORDER BY a",
    "SELECT DISTINCT a FROM (VALUES ('{x}'::text[]), ('{x}'), ('{}'), (ARRAY[NULL]::text[])) v (a) ORDER BY a DESC",
    "SELECT a.x, b.y FROM (VALUES (ARRAY[1,2], 1)) a (k, x) JOIN (VALUES (ARRAY[1,2], 'm')) b (k, y) USING (k)",
    "SELECT g, array_agg(x ORDER BY x) FROM (VALUES (1, 'b'), (2, 'c'), (1, 'a')) v (g, x) GROUP BY g ORDER BY g",
    "SELECT g, x, y, row_number() OVER (PARTITION BY g ORDER BY x DESC) AS n FROM (VALUES (1, 3, 'a'), (1, 1, NULL), "
    "(2, 5, 'c'), (2, 5, 'c'), (NULL, 7, 'z')) w (g, x, y) ORDER BY 1, 4",
    "SELECT row_number() OVER (ORDER BY x), row_number() OVER (PARTITION BY x % 2 ORDER BY x DESC), x FROM "
    "generate_series(1, 5) x ORDER BY 1",
    "SELECT x % 2, count(*), row_number() OVER (ORDER BY count(*)) FROM generate_series(1, 5) x GROUP BY 1 ORDER BY 3",
    "SELECT DISTINCT row_number() OVER (PARTITION BY x / 2) FROM generate_series(1, 5) x ORDER BY 1",
    "SELECT row_number() OVER () FROM generate_series(1, 0)",
    "SELECT unnest(array_agg(x ORDER BY x)) FROM generate_series(1, 3) x ORDER BY 1",
]
ERRORS = [
    "'{1,x}'::int[]", "'{1,2'::int[]", "'1,2'::int[]", "'{1}}'::int[]", "'{{1},{2,3}}'::int[]", "'{1,,2}'::int[]",
    "'[1:3]={1,2}'::int[]", "ARRAY[]", "ARRAY[1, 'x']", "ARRAY[1, true]", "(1)[1]", "1 = ANY (2)", "unnest(1)",
    "ARRAY[1] || ARRAY['x']", "ARRAY[[1],[2,3]]", "ARRAY[[1,2]] || 3", "trim_array(ARRAY[1], 2)",
    "array_append(1, 2)", "ARRAY[1]::date[]", "'{99999999999}'::int[]", "array_position(ARRAY[[1]], 1)",
    "ARRAY[1] + 1", "(ARRAY[1])['x']", "json_build_object('a')", "ARRAY[1]::bigint[] = ARRAY[1]",
    "ARRAY[1] @> ARRAY['x']::text[]", "json_build_object(NULL, 1)", "string_to_array(1, ',')",
]  # fmt: skip


@pytest.fixture
def both(served: ServedDatabase, postgres: PostgresServer) -> Iterator[tuple[Connection, Connection]]:
    with psycopg.connect(served.url, autocommit=True) as ours, postgres.connect() as theirs:
        yield ours, theirs


def test_expressions_give_what_they_give_in_postgres(both: tuple[Connection, Connection]) -> None:
    for start in range(0, len(EXPRESSIONS), 40):
        part = EXPRESSIONS[start : start + 40]
        query = "SELECT " + ", ".join(f"({e})::text" for e in part)
        ours, theirs = (connection.execute(query.encode()).fetchone() for connection in both)
        assert ours is not None and theirs is not None
        shown = zip(part, ours, theirs, strict=True)
        assert [(e, o) for e, o, _ in shown] == [(e, t) for e, t in zip(part, theirs, strict=True)]


def test_values_have_the_same_types_in_both_formats(both: tuple[Connection, Connection]) -> None:
    typed = [e for e in EXPRESSIONS if "infinity" not in e]
    for binary in (False, True):
        for start in range(0, len(typed), 40):
            query = ("SELECT " + ", ".join(typed[start : start + 40])).encode()
            ours, theirs = (connection.execute(query, binary=binary) for connection in both)
            assert ours.description is not None and theirs.description is not None
            assert [c.type_code for c in ours.description] == [c.type_code for c in theirs.description]
            assert str(ours.fetchall()) == str(theirs.fetchall())


def test_queries_give_what_they_give_in_postgres(both: tuple[Connection, Connection]) -> None:
    for query in QUERIES:
        ours, theirs = (connection.execute(query.encode()).fetchall() for connection in both)
        assert ours == theirs, query


def test_mistakes_have_the_same_codes_as_in_postgres(both: tuple[Connection, Connection]) -> None:
    for expression in ERRORS:
        found = []
        for connection in both:
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(f"SELECT {expression}".encode())
            found.append((expression, caught.value.sqlstate))
        assert found[0] == found[1]


def test_columns_of_tables_hold_arrays(both: tuple[Connection, Connection], schema: str) -> None:
    values = [
        (1, [1, None, 3], ["a", None, 'é,"'], [Decimal("1.50")], [datetime.date(2024, 1, 2)], [uuid.UUID(int=7)]),
        (2, [], [], [], [], []),
        (3, None, None, None, None, None),
        (4, [[1, 2], [3, 4]], ["x"], [Decimal("-2.25"), Decimal("0.00")], [datetime.date(1, 1, 1)], [uuid.UUID(int=8)]),
    ]
    answers = []
    for connection in both:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        connection.execute(f"SET search_path = {schema}")
        connection.execute(
            "CREATE TABLE t (id int PRIMARY KEY, a int[], b text[] DEFAULT '{d}', n numeric(8,2)[], d date[], u uuid[])"
        )
        connection.execute("CREATE INDEX by_b ON t (b)")
        connection.execute(
            "CREATE MATERIALIZED VIEW m AS SELECT b, array_agg(id ORDER BY id DESC) AS ids FROM t GROUP BY b"
        )
        with connection.cursor() as cursor:
            for row in values:
                cursor.execute("INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s)", row)
        with connection.cursor().copy("COPY t (id, a, b) FROM STDIN") as copy:
            copy.write_row((5, [9, 8], ["a", None, 'é,"']))
        with connection.cursor().copy("COPY t (id, a, b) FROM STDIN (FORMAT BINARY)") as binary:
            binary.set_types(["int4", "int4[]", "text[]"])
            binary.write_row((6, [9, None], ["x"]))
        connection.execute("UPDATE t SET a = array_append(a, 10) WHERE id = ANY (%s)", ([5, 6],))
        connection.execute("INSERT INTO t (id) VALUES (7)")
        if connection is both[1]:
            connection.execute("REFRESH MATERIALIZED VIEW m")
        found = [
            connection.execute("SELECT * FROM t ORDER BY a NULLS FIRST, id", binary=b).fetchall() for b in (False, True)
        ]
        found.append(connection.execute("SELECT id FROM t WHERE b = %s ORDER BY 1", (["a", None, 'é,"'],)).fetchall())
        found.append(connection.execute("SELECT b, ids FROM m ORDER BY b").fetchall())
        with connection.cursor().copy("COPY (SELECT * FROM t ORDER BY id) TO STDOUT") as out:
            found.append([(bytes(block),) for block in out])
        answers.append(found)
        if connection is both[1]:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
    assert answers[0] == answers[1]
