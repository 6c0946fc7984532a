"""``pg_cancel_backend`` and ``pg_terminate_backend`` in the list of a SELECT.

They do something, once for each row, which expressions do not: so they may stand only as whole items of the outermost
SELECT's list.  There the number is selected in their place, and the statement says what is to be done with it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from postgast import pg_query_pb2 as pb

from eddyline.errors import make_error, unsupported
from eddyline.sql.ast import AstNode, kind_of, name_list
from eddyline.sql.query import BoundQuery
from eddyline.sql.statement_binding import StatementBinding
from eddyline.sql.statements import Signal

__all__ = ["bind_signalling"]

_TERMINATE: Final = "pg_terminate_backend"
#: by name, how many arguments there may be
_CALLS: Final = {"pg_cancel_backend": (1,), _TERMINATE: (1, 2)}
#: stands for a call's column until it is bound; no identifier has zeros
_MARK: Final = "\0signal "


def bind_signalling(binding: StatementBinding, select: AstNode) -> tuple[BoundQuery, tuple[Signal, ...]]:
    """The query of a statement, and what is to be done with which of its outputs."""
    calls = [(number, t) for number, t in enumerate(select.target_list) if _is_call(t.res_target.val)]
    if not calls:
        return binding.query(select, place=None), ()
    changed = type(select)()
    changed.CopyFrom(select)
    asked: dict[str, tuple[str, str, int]] = {}
    for number, target in calls:
        call = target.res_target.val.func_call
        name = name_list(call.funcname)[-1]
        mark = f"{_MARK}{number}"
        asked[mark] = name, target.res_target.name or name, _timeout_ms(binding, call)
        own = changed.target_list[number].res_target
        own.name = mark
        own.val.CopyFrom(_as_integer(call.args[0]))
    query = binding.query(changed, place=None)
    signals = tuple(
        Signal(output, asked[name][0] == _TERMINATE, asked[name][2])
        for output, name in enumerate(query.names)
        if name in asked
    )
    names = tuple(asked[name][1] if name in asked else name for name in query.names)
    return replace(query, names=names), signals


def _is_call(node: AstNode) -> bool:
    if kind_of(node) != "func_call":
        return False
    names, call = name_list(node.func_call.funcname), node.func_call
    return (
        names[-1] in _CALLS
        and names[:-1] in ((), ("pg_catalog",))
        and len(call.args) in _CALLS[names[-1]]
        and not (call.agg_distinct or call.agg_star or call.HasField("agg_filter") or call.HasField("over"))
    )


def _timeout_ms(binding: StatementBinding, call: AstNode) -> int:
    if len(call.args) < 2:
        return 0
    given = call.args[1]
    if kind_of(given) != "a_const" or given.a_const.WhichOneof("val") != "ival":
        raise unsupported("a timeout that is no number", position=binding.locate(call.location))
    timeout = int(given.a_const.ival.ival)
    if timeout < 0:
        raise make_error("22003", '"timeout" must not be negative')
    return timeout


def _as_integer(node: AstNode) -> pb.Node:
    names = [pb.Node(string=pb.String(sval=part)) for part in ("pg_catalog", "int4")]
    kind = pb.TypeName(names=names, typemod=-1, location=-1)
    return pb.Node(type_cast=pb.TypeCast(arg=node, type_name=kind, location=-1))
