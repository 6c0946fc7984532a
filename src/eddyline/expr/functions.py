"""The complete function registry: the binder resolves names here, the evaluator finds implementations here.

Function modules register with ``eddyline.expr.registry`` (``declare``, ``implements``) and are listed in
the import below; nobody else imports ``registry`` for look-ups, because it is empty until they are loaded.

Implementation ids that no SQL name resolves to, for the binder and the planner (``Call.func``):
``eq ne lt le gt ge`` (two arguments of one kind), ``is_distinct_from``, ``is_not_distinct_from``, ``is_null``,
``is_not_null``, ``not``, ``is_true``, ``is_not_true``, ``is_false``, ``is_not_false``, ``is_unknown``,
``is_not_unknown``, ``make_array``, ``stack_arrays``, ``array_element``, ``array_slice``, ``array_subscripts``, and
``any_…`` and ``all_…`` before the name of a comparison.
"""

from __future__ import annotations

from eddyline.expr import (
    aggregates,
    arithmetic,
    array_functions,
    bytea_functions,
    comparison,
    datetime_arithmetic,
    datetime_make,
    datetime_parts,
    datetime_truncate,
    interval_arithmetic,
    json_functions,
    numeric_functions,
    numeric_transcendental,
    operators,
    pattern,
    regex_functions,
    text_functions,
    text_search,
)
from eddyline.expr.operators import same_type
from eddyline.expr.registry import (
    AggregateOverload,
    Implementation,
    Overload,
    aggregate_overloads,
    implementation,
    overloads,
    registered_aggregates,
    registered_names,
)

__all__ = [
    "FUNCTION_MODULES",
    "AggregateOverload",
    "Implementation",
    "Overload",
    "aggregate_overloads",
    "implementation",
    "overloads",
    "registered_aggregates",
    "registered_names",
    "same_type",
]

#: loaded for what they register
FUNCTION_MODULES = (
    aggregates,
    arithmetic,
    array_functions,
    bytea_functions,
    comparison,
    datetime_arithmetic,
    datetime_make,
    datetime_parts,
    datetime_truncate,
    interval_arithmetic,
    json_functions,
    numeric_functions,
    numeric_transcendental,
    operators,
    pattern,
    regex_functions,
    text_functions,
    text_search,
)
