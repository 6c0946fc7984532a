"""How a sequence counts: the options of CREATE and ALTER SEQUENCE and of identity columns, and what they come to.

Bounds, defaults and messages are PostgreSQL's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from eddyline.errors import make_error, unsupported
from eddyline.repr.types import BIGINT, SqlType
from eddyline.sql.ast import AstNode, name_list, unwrap
from eddyline.sql.catalog_view import SequenceDef
from eddyline.sql.conversion import INTEGER_RANGES
from eddyline.sql.named_objects import Locate
from eddyline.sql.type_names import type_of_name

__all__ = ["NOBODY", "SequenceOptions", "altered", "first_definition", "sequence_options"]

#: OWNED BY NONE
NOBODY: Final[tuple[str, ...]] = ()
_FIELDS: Final = {"as": "type", "increment": "increment", "start": "start", "cache": "cache", "cycle": "cycle"}
_BIGINT: Final = INTEGER_RANGES[BIGINT.kind]


@dataclass(frozen=True, slots=True)
class SequenceOptions:
    """What was said; None: nothing.  ``minimum`` and ``maximum``: "none" for NO MINVALUE and NO MAXVALUE.

    ``restart``: "start" for RESTART without a value.  ``owned_by``: the names of a table, maybe with its schema, and of
    a column, or ``NOBODY``.  ``identity``: what the column is GENERATED, "a" (always) or "d"; "" of others.
    """

    type: SqlType | None = None
    increment: int | None = None
    minimum: int | str | None = None
    maximum: int | str | None = None
    start: int | None = None
    restart: int | str | None = None
    cache: int | None = None
    cycle: bool | None = None
    owned_by: tuple[str, ...] | None = None
    identity: str = ""


def sequence_options(nodes: Iterable[AstNode], locate: Locate, identity: str = "") -> SequenceOptions:
    """42601 for an option given twice, 22003 for a value that is no bigint."""
    given: dict[str, Any] = {}
    for option in map(unwrap, nodes):
        position = locate(option.location)
        name = str(option.defname)
        field = _FIELDS.get(name) or {"minvalue": "minimum", "maxvalue": "maximum"}.get(name, name)
        if field in given:
            raise make_error("42601", "conflicting or redundant options", position=position)
        if name == "as":
            given[field] = type_of_name(option.arg.type_name, locate)
        elif name == "cycle":
            given[field] = bool(option.arg.boolean.boolval)
        elif name == "owned_by" and not identity:
            given[field] = _owner(name_list(option.arg.list.items), position)
        elif name in ("minvalue", "maxvalue"):
            given[field] = _integer(option.arg) if option.HasField("arg") else "none"
        elif name == "restart":
            given[field] = _integer(option.arg) if option.HasField("arg") else "start"
        elif name in _FIELDS:
            given[field] = _integer(option.arg)
        else:
            raise unsupported(f"{name.upper().replace('_', ' ')} of a sequence", position=position)
    return SequenceOptions(**given, identity=identity)


def _owner(names: tuple[str, ...], position: int | None) -> tuple[str, ...]:
    if names == ("none",):
        return NOBODY
    if not 2 <= len(names) <= 3:
        raise make_error(
            "42601",
            "invalid OWNED BY option",
            hint="Specify OWNED BY table.column or OWNED BY NONE.",
            position=position,
        )
    return names


def _integer(node: AstNode) -> int:
    if node.WhichOneof("node") == "integer":
        return int(node.integer.ival)
    text = str(node.float.fval)
    if not text.lstrip("+-").isdecimal():
        raise make_error("22P02", f'invalid input syntax for type bigint: "{text}"')
    value = int(text)
    if not _BIGINT[0] <= value <= _BIGINT[1]:
        raise make_error("22003", f'value "{text}" is out of range for type bigint')
    return value


def first_definition(options: SequenceOptions, position: str) -> SequenceDef:
    """Of a new sequence whose position goes by that key.  22023 for what does not go together."""
    sql_type = BIGINT if options.type is None else options.type
    increment = 1 if options.increment is None else options.increment
    low, high = _range_of(sql_type, options)
    rising = increment > 0
    minimum = options.minimum if isinstance(options.minimum, int) else (1 if rising else low)
    maximum = options.maximum if isinstance(options.maximum, int) else (high if rising else -1)
    start = options.start if options.start is not None else (minimum if rising else maximum)
    first = start if options.restart in (None, "start") else int(str(options.restart))
    made = SequenceDef(
        sql_type,
        start,
        increment,
        minimum,
        maximum,
        1 if options.cache is None else options.cache,
        bool(options.cycle),
        position,
        first,
        identity=bool(options.identity),
    )
    _check(made, first)
    return made


def altered(old: SequenceDef, options: SequenceOptions, position: str, last: int) -> SequenceDef:
    """``position``: the key of its position from now on, if it begins anew; ``last``: where it stands.  22023."""
    sql_type = old.type if options.type is None else options.type
    low, high = _range_of(sql_type, options)
    old_low, old_high = INTEGER_RANGES[old.type.kind]
    increment = old.increment if options.increment is None else options.increment
    rising = increment > 0
    minimum, maximum = old.minimum, old.maximum
    if isinstance(options.minimum, int):
        minimum = options.minimum
    elif options.type is not None and minimum == old_low:
        minimum = low
    elif options.minimum == "none":
        minimum = 1 if rising else low
    if isinstance(options.maximum, int):
        maximum = options.maximum
    elif options.type is not None and maximum == old_high:
        maximum = high
    elif options.maximum == "none":
        maximum = high if rising else -1
    start = old.start if options.start is None else options.start
    changed = replace(
        old,
        type=sql_type,
        start=start,
        increment=increment,
        minimum=minimum,
        maximum=maximum,
        cache=old.cache if options.cache is None else options.cache,
        cycle=old.cycle if options.cycle is None else options.cycle,
    )
    if options.restart is not None:
        last = start if options.restart == "start" else int(options.restart)
        changed = replace(changed, position=position, first=last)
    _check(changed, last)
    return changed


def _range_of(sql_type: SqlType, options: SequenceOptions) -> tuple[int, int]:
    if sql_type.kind not in INTEGER_RANGES:
        what = "identity column" if options.identity else "sequence"
        raise make_error("22023", f"{what} type must be smallint, integer, or bigint")
    if options.increment == 0:
        raise make_error("22023", "INCREMENT must not be zero")
    return INTEGER_RANGES[sql_type.kind]


def _check(found: SequenceDef, last: int) -> None:
    low, high = INTEGER_RANGES[found.type.kind]
    for word, value in (("MAXVALUE", found.maximum), ("MINVALUE", found.minimum)):
        if not low <= value <= high:
            raise make_error(
                "22023", f"{word} ({value}) is out of range for sequence data type {found.type.kind.value}"
            )
    if found.minimum >= found.maximum:
        raise make_error("22023", f"MINVALUE ({found.minimum}) must be less than MAXVALUE ({found.maximum})")
    for word, value in (("START", found.start), ("RESTART", last)):
        if value < found.minimum:
            raise make_error("22023", f"{word} value ({value}) cannot be less than MINVALUE ({found.minimum})")
        if value > found.maximum:
            raise make_error("22023", f"{word} value ({value}) cannot be greater than MAXVALUE ({found.maximum})")
    if found.cache <= 0:
        raise make_error("22023", f"CACHE ({found.cache}) must be greater than zero")
