"""The faces of query binding: finishing, parameters, standalone expressions, refusals."""

from __future__ import annotations

from decimal import Decimal

import postgast
import pytest

from eddyline.errors import Error, NotSupportedError
from eddyline.expr.ir import Call, Column, Literal, Parameter, SortKey
from eddyline.plan.relation import Constant, Distinct, Get, Join, JoinKind, Relation, TopK
from eddyline.plan.traverse import children
from eddyline.repr.types import BIGINT, INTEGER, SMALLINT, TEXT, Kind, SqlType, numeric
from eddyline.sql.query import RowSource, TargetColumn, bind_expression, bind_query
from tests.sql.sample import SampleCatalog, bind_text, run_text


def nodes(relation: Relation) -> list[Relation]:
    found: list[Relation] = []
    stack = [relation]
    while stack:
        found.append(stack[-1])
        stack.extend(children(stack.pop()))
    return found


def join_kinds(query: str) -> list[JoinKind]:
    return [n.kind for n in nodes(bind_text(query).relation) if isinstance(n, Join)]


def test_order_and_limit_stay_apart_and_hidden_columns_follow_the_outputs() -> None:
    bound = bind_text("SELECT name FROM o ORDER BY amount DESC, id LIMIT 3 OFFSET 1")
    assert (bound.names, bound.hidden_columns) == (("name",), 2)
    assert bound.order == (SortKey(1, desc=True, nulls_first=True), SortKey(2))
    assert (bound.limit, bound.offset) == (Literal(3, BIGINT), Literal(1, BIGINT))
    assert not any(isinstance(n, TopK) for n in nodes(bound.relation))


def test_view_body_folds_limit_into_top_k_and_drops_hidden_columns() -> None:
    relation = bind_text("SELECT name FROM o ORDER BY amount LIMIT 3").as_relation()
    assert [t.kind for t in relation.types] == [Kind.VARCHAR]
    assert any(isinstance(n, TopK) for n in nodes(relation))


def test_view_body_without_limit_has_no_order() -> None:
    assert bind_text("SELECT id FROM e, o ORDER BY z").as_relation().types == (INTEGER,)
    assert not any(isinstance(n, TopK) for n in nodes(bind_text("SELECT z FROM e ORDER BY z").as_relation()))


def test_exists_and_in_in_where_are_semi_joins_and_not_exists_an_anti_join() -> None:
    assert join_kinds("SELECT id FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.k = o.k AND v > id)") == [JoinKind.SEMI]
    assert join_kinds("SELECT id FROM o WHERE NOT EXISTS (SELECT 1 FROM i WHERE i.k = o.k)") == [JoinKind.ANTI]
    assert join_kinds("SELECT id FROM o WHERE k IN (SELECT k FROM i WHERE v = id)") == [JoinKind.SEMI]


def test_aggregate_of_an_equality_correlated_subquery_is_one_grouping_and_one_left_join() -> None:
    query = "SELECT id, (SELECT count(*) FROM i WHERE i.k = o.k) FROM o"
    assert join_kinds(query) == [JoinKind.LEFT]
    assert not any(isinstance(n, Distinct) for n in nodes(bind_text(query).relation))


def test_grouping_that_might_fail_for_unasked_keys_is_restricted_to_the_asked_ones() -> None:
    query = "SELECT x, (SELECT sum(10 / v) FROM i WHERE i.k = a.x) FROM a"
    assert any(isinstance(n, Distinct) for n in nodes(bind_text(query).relation))


def test_second_row_of_a_scalar_subquery_fails_only_where_the_value_is_reached() -> None:
    _, rows = run_text("SELECT CASE WHEN x > 100 THEN (SELECT v FROM i) ELSE 0 END FROM a WHERE x = 1")
    assert rows == [("0",)]
    with pytest.raises(Error, match="more than one row") as caught:
        run_text("SELECT (SELECT v FROM i) FROM a")
    assert caught.value.sqlstate == "21000"


def test_with_query_mentioned_once_is_inlined_and_twice_is_shared() -> None:
    once = bind_text("WITH w AS (SELECT x FROM a) SELECT * FROM w")
    twice = bind_text("WITH w AS (SELECT DISTINCT x FROM a) SELECT count(*) FROM w p, w q")
    assert once.relation == bind_text("SELECT x FROM a").relation
    assert sum(isinstance(n, Get) for n in nodes(twice.relation)) == 1


def test_comparison_with_a_constant_leaves_the_column_bare() -> None:
    for condition, literal in (
        ("s = 1", Literal(1, SMALLINT)),
        ("big = 7", Literal(7, BIGINT)),
        ("amount = 5", Literal("5.00", numeric(2))),
        ("name = 'ann'", Literal("ann", SqlType(Kind.VARCHAR))),
    ):
        relation = bind_text(f"SELECT 1 FROM o WHERE {condition}").relation
        (predicate,) = next(n.predicates for n in nodes(relation) if hasattr(n, "predicates"))
        assert isinstance(predicate, Call)
        assert isinstance(predicate.args[0], Column)
        assert predicate.args[1] == literal


@pytest.mark.parametrize(
    ("query", "types"),
    [
        ("SELECT x FROM a WHERE x = $1", {1: INTEGER}),
        ("SELECT x + $1::int8, $2::text FROM a", {1: BIGINT, 2: TEXT}),
        ("SELECT $1", {1: TEXT}),
        ("SELECT coalesce($1, 2.5)", {1: SqlType(Kind.NUMERIC)}),
        ("SELECT x FROM a LIMIT $1 OFFSET $2", {1: BIGINT, 2: BIGINT}),
        ("SELECT x IN ($1, $2) FROM a UNION SELECT $3", {1: INTEGER, 2: INTEGER, 3: SqlType(Kind.BOOLEAN)}),
        ("SELECT CASE WHEN $1 THEN x ELSE $2 END FROM a", {1: SqlType(Kind.BOOLEAN), 2: INTEGER}),
        ("SELECT (SELECT v FROM i WHERE i.k = $1 AND label = $2)", {1: INTEGER, 2: TEXT}),
    ],
)
def test_parameters_take_their_types_from_the_context(query: str, types: dict[int, SqlType]) -> None:
    found: dict[int, SqlType] = {}
    bind_text(query, found)
    assert found == types


def test_given_parameter_types_are_kept_and_conflicting_uses_refused() -> None:
    bound = bind_text("SELECT $1", {1: INTEGER})
    assert bound.types == (INTEGER,)
    with pytest.raises(Error) as caught:
        bind_text("SELECT x FROM a WHERE x = $1 AND t = $1")
    assert caught.value.sqlstate == "42883"
    with pytest.raises(Error) as caught:
        bind_text("SELECT $1 IS NULL")
    assert (caught.value.sqlstate, caught.value.message) == ("42P18", "could not determine data type of parameter $1")


def test_parameters_reach_the_plan_and_are_answered() -> None:
    types: dict[int, SqlType] = {}
    _, rows = run_text("SELECT t FROM a WHERE x = $1", {1: 5}, types)
    assert rows == [("five",)]


def test_values_for_an_insert_take_their_columns_types_and_defaults() -> None:
    select = postgast.parse("VALUES ('1', DEFAULT), (2, 'x')").stmts[0].stmt.select_stmt
    targets = (TargetColumn("n", numeric(2, 12)), TargetColumn("t", TEXT, Literal("d", TEXT)))
    bound = bind_query(select, SampleCatalog(), {}, targets=targets)
    assert bound.relation == Constant((("1.00", "d"), ("2.00", "x")), (numeric(2, 12), TEXT))


def test_assignment_without_a_cast_is_refused_with_a_hint() -> None:
    select = postgast.parse("SELECT t FROM a").stmts[0].stmt.select_stmt
    with pytest.raises(Error) as caught:
        bind_query(select, SampleCatalog(), {}, targets=(TargetColumn("n", INTEGER),))
    error = caught.value
    assert (error.sqlstate, error.message) == ("42804", 'column "n" is of type integer but expression is of type text')
    assert error.hint == "You will need to rewrite or cast the expression."


def expression(text: str, **options: object) -> object:
    node = postgast.parse(f"SELECT {text}").stmts[0].stmt.select_stmt.target_list[0].res_target.val
    source = RowSource("t", (("p", INTEGER), ("q", TEXT)))
    excluded = RowSource("excluded", (("p", INTEGER),), offset=2, qualified_only=True)
    params: dict[int, SqlType] = {}
    return bind_expression(node, SampleCatalog(), params, sources=(source, excluded), **options)  # type: ignore[arg-type]  # passed on


def test_standalone_expression_reads_columns_by_position() -> None:
    assert expression("q") == Column(1, TEXT)
    assert expression("p + excluded.p") == Call("int_add", (Column(0, INTEGER), Column(2, INTEGER)), INTEGER)
    assert expression("$1", target=TargetColumn("p", INTEGER)) == Parameter(1, INTEGER)
    assert expression("'7'", target=TargetColumn("p", INTEGER)) == Literal(7, INTEGER)


def test_standalone_expression_refuses_subqueries_and_aggregates() -> None:
    with pytest.raises(NotSupportedError, match="a subquery in DEFAULT expressions"):
        expression("(SELECT 1)", forbids="DEFAULT expressions")
    with pytest.raises(Error, match="aggregate functions are not allowed in DEFAULT expressions") as caught:
        expression("count(*)", forbids="DEFAULT expressions")
    assert caught.value.sqlstate == "42803"


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("SELECT count(*) OVER () FROM o", "OVER"),
        ("SELECT x FROM a WINDOW w AS (ORDER BY x)", "WINDOW"),
        ("SELECT id FROM o FOR UPDATE", "FOR UPDATE"),
        ("SELECT id FROM o TABLESAMPLE system (10)", "TABLESAMPLE"),
        ("SELECT id INTO z FROM o", "INTO"),
        ("SELECT id FROM o ORDER BY id FETCH FIRST 2 ROWS WITH TIES", "WITH TIES"),
        ("SELECT id FROM o LIMIT (SELECT 1)", "LIMIT"),
        ("SELECT * FROM generate_series(1, 5) WITH ORDINALITY", "ORDINALITY"),
        ("SELECT ROW(1, 2)", "row"),
        ("SELECT ARRAY[interval '1 day']", "an array of interval"),
        ("SELECT ARRAY(SELECT interval '1 day')", "an array of interval"),
        ("SELECT unnest(ARRAY[1]), generate_series(1, 2)", "generate_series beside another"),
        ("SELECT (o).id FROM o", "field selection"),
        ("SELECT o FROM o", "whole-row"),
        ("SELECT t SIMILAR TO 'o%' FROM a", "SIMILAR"),
        ("SELECT '[]'::jsonb", "jsonb"),
        ("SELECT '{}'::interval[]", "an array of interval"),
        ("SELECT array_fill(0, ARRAY[3])", "array_fill"),
        ("SELECT * FROM ROWS FROM (unnest(ARRAY[1]), unnest(ARRAY[2])) t", "ROWS FROM"),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM a", "WITHIN GROUP"),
        ('SELECT t COLLATE "de_DE" FROM a', "de_DE"),
        ("SELECT B'101'", "bit string"),
        ("SELECT x FROM a ORDER BY x USING <", "USING"),
        ("SELECT x FROM a GROUP BY DISTINCT ROLLUP (x)", "GROUP BY DISTINCT"),
        ("WITH RECURSIVE w AS (SELECT 1 UNION ALL SELECT * FROM w) CYCLE a SET b USING c TABLE w", "CYCLE"),
        ("WITH w AS (DELETE FROM a RETURNING x) SELECT * FROM w", "data-modifying"),
        ("SELECT * FROM ROWS FROM (generate_series(1, 2), generate_series(1, 2))", "ROWS FROM"),
        ("SELECT generate_series(1, 2), generate_series(1, 3)", "set-returning"),
        ("SELECT 1 + generate_series(1, 2)", "set-returning"),
        ("SELECT interval(3) '1 s'", "precision"),
        ("SELECT xmlelement(name a)", "XML"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(query: str, word: str) -> None:
    with pytest.raises(NotSupportedError) as caught:
        bind_text(query)
    assert caught.value.sqlstate == "0A000"
    assert word.lower() in caught.value.message.lower()


def test_nesting_past_the_stack_is_54001() -> None:
    node = postgast.parse("SELECT 1").stmts[0].stmt.select_stmt
    value = node.target_list[0].res_target.val
    deep = type(value)()
    deep.CopyFrom(value)
    cursor = deep
    for _ in range(3000):
        cursor.null_test.nulltesttype = 1
        cursor = cursor.null_test.arg
    cursor.a_const.ival.ival = 1
    node.target_list[0].res_target.val.CopyFrom(deep)
    with pytest.raises(Error) as caught:
        bind_query(node, SampleCatalog(), {})
    assert caught.value.sqlstate == "54001"


def test_long_operator_chains_and_in_lists_are_no_nesting() -> None:
    chain = " || ".join(["t"] * 45)
    assert run_text(f"SELECT {chain} FROM a WHERE x = 1")[1] == [("one" * 45,)]
    many = ", ".join(str(n) for n in range(2, 500))
    assert len(run_text(f"SELECT x FROM a WHERE x IN ({many})")[1]) == 4
    assert len(run_text(f"SELECT x FROM a WHERE x NOT IN ({many})")[1]) == 1
    assert join_kinds(f"SELECT x FROM a WHERE x IN ({many})") == [JoinKind.SEMI]


def test_correlated_subquery_tells_equal_values_apart_that_print_differently() -> None:
    query = (
        "SELECT n, (SELECT max(v.n::text || b.u) FROM b WHERE b.y > v.n - 1 AND b.y < v.n + 1) "
        "FROM (VALUES (1.0), (1.00), (2)) v(n)"
    )
    _, rows = run_text(query)
    assert sorted(rows, key=str) == [("1.0", "1.0eins"), ("1.00", "1.00eins"), ("2", "2two")]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [("EXCEPT ALL", [1]), ("INTERSECT ALL", [1, 2.5]), ("EXCEPT", []), ("INTERSECT", [1, 2.5])],
)
def test_set_operations_match_rows_by_equality_not_by_print(operation: str, expected: list[float]) -> None:
    query = f"(VALUES (1.0), (1.0), (2.5)) {operation} (VALUES (1.00), (2.50), (7.000))"
    _, rows = run_text(query)
    assert sorted(Decimal(r[0] or "NaN") for r in rows) == expected


def test_a_cast_to_a_precision_is_checked_in_comparisons() -> None:
    with pytest.raises(Error) as caught:
        run_text("SELECT b::numeric(12,3) = b FROM (VALUES (5000000000)) v(b)")
    assert caught.value.sqlstate == "22003"


def test_varchar_beside_char_compares_as_char() -> None:
    _, rows = run_text("SELECT v = c, c = v, v < c FROM (VALUES ('a'::varchar, 'a'::char(4))) t(v, c)")
    assert rows == [("t", "t", "f")]
