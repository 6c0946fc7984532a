"""Views inlined, parameters replaced."""

from __future__ import annotations

import pytest

from eddyline.errors import DatabaseError
from eddyline.expr.ir import Parameter
from eddyline.plan.inline import inline_views
from eddyline.plan.parameters import has_parameters, substitute_parameters
from eddyline.plan.relation import Distinct, Filter, Get, Join, JoinKind, Let, LocalGet, Relation, TopK, Union
from eddyline.plan.traverse import post_order
from eddyline.repr.types import BIGINT, INTEGER

from .build import R, eq, lit


def test_views_in_views_are_inlined_and_others_stay() -> None:
    inner, outer = Get("inner", R.types), Get("outer", R.types)
    views: dict[str, Relation] = {"inner": Distinct(R), "outer": Union((inner, R))}
    assert inline_views(Filter(outer, (eq(0, 1),)), views.get) == Filter(Union((Distinct(R), R)), (eq(0, 1),))
    assert inline_views(outer, lambda view: views[view] if view == "outer" else None) == Union((inner, R))


def test_shared_names_of_several_views_do_not_clash() -> None:
    def view(value: Relation) -> Relation:
        shared = LocalGet("x", R.types)
        return Let("x", value, Union((shared, shared)))

    views: dict[str, Relation] = {"a": view(Distinct(R)), "b": view(R)}
    plan = view(Join(JoinKind.SEMI, Get("a", R.types), Get("b", R.types), (eq(0, 2),)))
    inlined = inline_views(plan, views.get)
    names = [node.name for node in post_order(inlined) if isinstance(node, Let)]
    assert len(names) == len(set(names)) == 3


def test_a_long_chain_of_views_is_inlined() -> None:
    views: dict[str, Relation] = {f"v{i}": Distinct(Get(f"v{i + 1}", R.types)) for i in range(2000)}
    assert sum(1 for _ in post_order(inline_views(Get("v0", R.types), views.get))) == 2001


def test_parameters_are_replaced_everywhere() -> None:
    plan = TopK(Filter(R, (eq(0, Parameter(1, INTEGER)),)), (), (), Parameter(2, BIGINT), None)
    assert has_parameters(plan)
    bound = substitute_parameters(plan, [lit(4), lit(5)])
    assert bound == TopK(Filter(R, (eq(0, lit(4)),)), (), (), lit(5), None)
    assert not has_parameters(bound)


def test_a_missing_parameter_is_an_error() -> None:
    with pytest.raises(DatabaseError) as failure:
        substitute_parameters(Filter(R, (eq(0, Parameter(2, INTEGER)),)), [lit(1)])
    assert failure.value.sqlstate == "42P02"
