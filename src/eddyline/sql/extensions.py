"""Statements that PostgreSQL's grammar doesn't have, cut out of the token stream.

    SUBSCRIBE [TO] name | (query) [AS OF expr] [UP TO expr] [WITH (SNAPSHOT [= bool], PROGRESS [= bool])]
    query AS OF expr                         at the end, or before ORDER BY, LIMIT, OFFSET, FETCH or FOR
    CREATE DEFAULT INDEX [name] [IN CLUSTER c] ON relation
    CREATE [UNIQUE] INDEX | [OR REPLACE] VIEW | MATERIALIZED VIEW … IN CLUSTER c …
    EXPLAIN [options] VIEW | MATERIALIZED VIEW | INDEX name, and EXPLAIN of the statements above
    CREATE | ALTER | DROP CLUSTER [REPLICA], SHOW CLUSTER REPLICA: see ``cluster_syntax``
    COPY (SUBSCRIBE …) TO STDOUT [WITH (options)]
    DECLARE name CURSOR FOR SUBSCRIBE …, and FETCH … WITH (TIMEOUT [=] 'duration')
    SHOW TABLES | VIEWS | MATERIALIZED VIEWS | INDEXES | OBJECTS | SCHEMAS | COLUMNS [FROM | IN | ON name]
    SHOW CLUSTERS | CLUSTER REPLICAS

The parts that PostgreSQL knows are parsed by PostgreSQL from a copy in which everything else is blanked, byte for
byte, so that all locations stay byte offsets into the statement as written.  Extensions are looked for only in what
PostgreSQL refuses: a column or an alias that happens to be called ``subscribe`` or ``of`` keeps its meaning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from google.protobuf.message import Message

from eddyline.errors import make_error
from eddyline.sql.cluster_syntax import ClusterSyntax, cluster_statement
from eddyline.sql.grammar import GrammarError
from eddyline.sql.words import Named, Words, blank, name_end, parse_single

__all__ = [
    "AsOfSyntax",
    "CopySubscribeSyntax",
    "DeclareSubscribeSyntax",
    "DefaultIndexSyntax",
    "ExplainObjectSyntax",
    "ExplainSyntax",
    "Extension",
    "FetchSyntax",
    "InClusterSyntax",
    "ShowCreateSyntax",
    "ShowObjectsSyntax",
    "SubscribeSyntax",
    "recognise",
]


@dataclass(frozen=True, slots=True)
class SubscribeSyntax:
    """``query`` is a SelectStmt (``TABLE name`` for a name); ``as_of`` and ``up_to`` are expression nodes."""

    query: Message
    as_of: Message | None = None
    up_to: Message | None = None
    snapshot: bool = True
    progress: bool = False


@dataclass(frozen=True, slots=True)
class AsOfSyntax:
    query: Message
    as_of: Message


@dataclass(frozen=True, slots=True)
class DefaultIndexSyntax:
    relation: Message
    name: str | None = None
    cluster: Named | None = None


@dataclass(frozen=True, slots=True)
class InClusterSyntax:
    """A statement of PostgreSQL's with IN CLUSTER in addition."""

    statement: Message
    cluster: Named


@dataclass(frozen=True, slots=True)
class ExplainObjectSyntax:
    """``kind``: view, materialized view or index; ``options`` as in ``ExplainSyntax``."""

    kind: str
    relation: Message
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplainSyntax:
    """EXPLAIN of another extension; ``options`` before it, in lower case, each with its value ("analyze off")."""

    statement: SubscribeSyntax | AsOfSyntax
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ShowObjectsSyntax:
    """``kind``: tables, views, materialized views, indexes, objects, schemas, columns, clusters, cluster replicas.

    ``relation``: the RangeVar after FROM (a schema's name stands in its ``relname``).
    """

    kind: str
    relation: Message | None = None


@dataclass(frozen=True, slots=True)
class ShowCreateSyntax:
    """SHOW CREATE; ``kind``: table, view, materialized view, index."""

    kind: str
    relation: Message


@dataclass(frozen=True, slots=True)
class CopySubscribeSyntax:
    """COPY (SUBSCRIBE …) TO …; ``copy``: the statement with a query in its place."""

    subscribe: SubscribeSyntax
    copy: Message


@dataclass(frozen=True, slots=True)
class DeclareSubscribeSyntax:
    """DECLARE … CURSOR FOR SUBSCRIBE …; ``declare``: the statement with a query in its place."""

    subscribe: SubscribeSyntax
    declare: Message


@dataclass(frozen=True, slots=True)
class FetchSyntax:
    """FETCH … WITH (TIMEOUT = '…')."""

    fetch: Message
    timeout_s: float


Extension: TypeAlias = (
    SubscribeSyntax
    | AsOfSyntax
    | DefaultIndexSyntax
    | ExplainObjectSyntax
    | ExplainSyntax
    | ShowObjectsSyntax
    | ShowCreateSyntax
    | ClusterSyntax
    | CopySubscribeSyntax
    | DeclareSubscribeSyntax
    | FetchSyntax
    | InClusterSyntax
)


def recognise(source: str) -> Extension | None:
    """The extension statement that ``source`` is, or None.

    Raises ``GrammarError`` for a statement that is an extension by its first words but malformed.
    """
    words = Words(source)
    head = words.text(0)
    of_clusters = cluster_statement(words)
    if of_clusters is not None:
        return of_clusters
    if head == "SUBSCRIBE":
        return _subscribe(words)
    if head == "COPY":
        return _copy_subscribe(words)
    if head == "DECLARE":
        return _declare_subscribe(words)
    if head == "FETCH":
        return _fetch(words)
    if head == "CREATE":
        return _create(words)
    if head == "EXPLAIN":
        return _explain(source, words)
    if head == "SHOW":
        return _show(words)
    return _as_of(words)


# ---------------------------------------------------------------------------------------------------------------
# pieces


def _select(data: bytes) -> Message:
    node = parse_single(data)
    if node.WhichOneof("node") != "select_stmt":
        raise GrammarError("only a query can stand here", "42601", 1)
    return node.select_stmt


def _expression(words: Words, first: int, last: int) -> Message:
    """The expression of tokens ``first:last``, parsed as ``SELECT(…)`` in place."""
    if first >= last:
        raise words.syntax_error(first)
    start, end = words.start(first), words.end_before(last)
    opening = b"SELECT("
    padded = opening + b" " * (start - len(opening)) + words.data[start:end] + b")"
    try:
        node = parse_single(padded)
    except GrammarError as error:
        if error.position >= len(padded.decode()):  # at the bracket that was added
            raise words.syntax_error(last) from error
        raise
    target: Message = node.select_stmt.target_list[0].res_target.val
    return target


def _relation(words: Words, first: int, last: int) -> Any:
    """The SelectStmt ``TABLE name`` for the possibly qualified name in tokens ``first:last``."""
    if first >= last:
        raise words.syntax_error(first)
    start, end = words.start(first), words.end_before(last)
    return _select(b"TABLE" + b" " * (start - len(b"TABLE")) + words.data[start:end])


def _range_var(words: Words, first: int, last: int) -> Message:
    node: Message = _relation(words, first, last).from_clause[0].range_var
    return node


# ---------------------------------------------------------------------------------------------------------------
# statements


def _subscribe(words: Words) -> SubscribeSyntax:
    at = 2 if words.text(1) == "TO" else 1
    if words.text(at) == "(":
        end = words.closing(at) + 1
        data = words.data[: words.end_before(end)]
        query: Message = _select(blank(data, 0, words.start(at)))
    else:
        end = min(name_end(words, at), len(words.items))
        query = _relation(words, at, end)
    options_at = _first_of(words, end, ("WITH", "("))
    up_to_at = _first_of(words, end, ("UP", "TO"), before=options_at)
    as_of_at = _first_of(words, end, ("AS", "OF"), before=up_to_at)
    if as_of_at != end:
        raise words.syntax_error(end)
    as_of = _expression(words, as_of_at + 2, up_to_at) if as_of_at < up_to_at else None
    up_to = _expression(words, up_to_at + 2, options_at) if up_to_at < options_at else None
    return _subscribe_options(words, options_at, SubscribeSyntax(query, as_of, up_to))


_PLACE: Final = b"SELECT 1"


def _inner_subscribe(words: Words, first: int, last: int) -> tuple[SubscribeSyntax, bytes]:
    """The SUBSCRIBE in tokens ``first:last``, and the text with a query in its place."""
    start, end = words.start(first), words.end_before(last)
    inner = _subscribe(Words(blank(words.data[:end], 0, start).decode()))
    return inner, words.data[:start] + _PLACE.ljust(end - start) + words.data[end:]


def _copy_subscribe(words: Words) -> CopySubscribeSyntax | None:
    if not words.match(1, "(", "SUBSCRIBE"):
        return None
    subscribe, rest = _inner_subscribe(words, 2, words.closing(1))
    return CopySubscribeSyntax(subscribe, parse_single(rest).copy_stmt)


def _declare_subscribe(words: Words) -> DeclareSubscribeSyntax | None:
    at = words.find("FOR", "SUBSCRIBE")
    if at < 0:
        return None
    subscribe, rest = _inner_subscribe(words, at + 1, len(words.items))
    return DeclareSubscribeSyntax(subscribe, parse_single(rest))


_DURATION: Final = re.compile(r"'\s*(\d+(?:\.\d+)?)\s*(ms|s|min|h)?\s*'", re.IGNORECASE)
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}


def _fetch(words: Words) -> FetchSyntax | None:
    at = words.find("WITH", "(")
    if at < 0:
        return None
    if words.text(at + 2) != "TIMEOUT":
        raise words.syntax_error(at + 2)
    value = at + 4 if words.text(at + 3) == "=" else at + 3
    match = _DURATION.fullmatch(words.text(value))
    if match is None:
        raise make_error(
            "22023", "TIMEOUT takes a duration", position=words.char_position(value), hint="An example is '500ms'."
        )
    if words.text(value + 1) != ")" or value + 2 < len(words.items):
        raise words.syntax_error(value + 1 if words.text(value + 1) != ")" else value + 2)
    seconds = float(match[1]) * _SECONDS[(match[2] or "s").lower()]
    return FetchSyntax(parse_single(words.data[: words.start(at)]), seconds)


def _first_of(words: Words, first: int, pair: tuple[str, str], before: int | None = None) -> int:
    """The position of ``pair`` outside brackets, ``before`` (or the end) without one."""
    found = words.find(*pair, first=first)
    stop = len(words.items) if before is None else before
    return found if 0 <= found < stop else stop


_TRUE: Final = ("TRUE", "ON", "1", "'true'", "'on'")
_FALSE: Final = ("FALSE", "OFF", "0", "'false'", "'off'")


def _subscribe_options(words: Words, at: int, syntax: SubscribeSyntax) -> SubscribeSyntax:
    if at >= len(words.items):
        return syntax
    end = words.closing(at + 1)
    if end + 1 < len(words.items):
        raise words.syntax_error(end + 1)
    at += 2
    while at < end:
        option = words.identifier(at)
        if option not in ("snapshot", "progress"):
            raise make_error("42601", f'unrecognized SUBSCRIBE option "{option}"', position=words.char_position(at))
        value, at = True, at + 1
        if words.text(at) == "=":
            at += 1
        if words.text(at) not in (",", ")"):
            if words.text(at) not in _TRUE + _FALSE:
                raise make_error("42601", f"{option} requires a Boolean value", position=words.char_position(at))
            value, at = words.text(at) in _TRUE, at + 1
        syntax = replace(syntax, **{option: value})
        if words.text(at) == "," and at + 1 < end:
            at += 1
        elif at != end:
            raise words.syntax_error(at)
    return syntax


_AFTER_AS_OF: Final = ("ORDER", "LIMIT", "OFFSET", "FETCH", "FOR")


def _as_of(words: Words) -> AsOfSyntax | None:
    """The last AS OF outside brackets that is followed by something; None without one."""
    if words.text(0) not in ("SELECT", "WITH", "VALUES", "TABLE", "("):
        return None
    for at in range(len(words.items) - 3, 0, -1):
        if words.items[at].depth == 0 and words.match(at, "AS", "OF"):
            break
    else:
        return None
    ends = [i for i in range(at + 2, len(words.items)) if words.items[i].depth == 0 and words.text(i) in _AFTER_AS_OF]
    end = ends[0] if ends else len(words.items)
    as_of = _expression(words, at + 2, end)
    query = _select(blank(words.data, words.start(at), words.end_before(end)))
    return AsOfSyntax(query, as_of)


def _create(words: Words) -> Extension | None:
    if words.match(1, "DEFAULT", "INDEX"):
        return _default_index(words)
    kinds = {"INDEX", "VIEW"}
    head = [words.text(i) for i in range(1, min(6, len(words.items)))]
    if not kinds & set(head):
        return None
    at = words.find("IN", "CLUSTER")
    body = words.find("AS")
    if at < 0 or 0 <= body < at:
        return None
    cluster = words.named(at + 2)
    return InClusterSyntax(parse_single(blank(words.data, words.start(at), words.end_before(at + 3))), cluster)


def _default_index(words: Words) -> DefaultIndexSyntax:
    at, name, cluster = 3, None, None
    if words.text(at) not in ("ON", "IN"):
        name, at = words.identifier(at), at + 1
    if words.match(at, "IN", "CLUSTER"):
        cluster = words.named(at + 2)
        at += 3
    if words.text(at) != "ON":
        raise words.syntax_error(at)
    end = name_end(words, at + 1)
    if end < len(words.items):
        raise words.syntax_error(end)
    return DefaultIndexSyntax(_range_var(words, at + 1, len(words.items)), name, cluster)


def _explain(source: str, words: Words) -> Extension | None:
    at, options = 1, []
    if words.text(at) == "(":
        end = words.closing(at)
        options = _option_texts([w.text.lower() for w in words.items[at + 1 : end]])
        at = end + 1
    while words.text(at) in ("ANALYZE", "ANALYSE", "VERBOSE"):
        options.append(words.text(at).lower())
        at += 1
    for kind in (("MATERIALIZED", "VIEW"), ("VIEW",), ("INDEX",)):
        if words.match(at, *kind):
            relation = _range_var(words, at + len(kind), len(words.items))
            return ExplainObjectSyntax(" ".join(kind).lower(), relation, tuple(options))
    if at >= len(words.items):
        return None
    rest = recognise(blank(words.data, 0, words.start(at)).decode())
    if isinstance(rest, SubscribeSyntax | AsOfSyntax):
        return ExplainSyntax(rest, tuple(options))
    return None


def _option_texts(words: list[str]) -> list[str]:
    """Each option of a list in parentheses as its words with a space between."""
    options: list[list[str]] = [[]]
    for word in words:
        if word == ",":
            options.append([])
        else:
            options[-1].append(word)
    return [" ".join(option) for option in options if option]


_SHOWN: Final = ("TABLES", "VIEWS", "INDEXES", "OBJECTS", "SCHEMAS", "COLUMNS", "CLUSTERS")


_CREATED: Final = (("TABLE",), ("VIEW",), ("MATERIALIZED", "VIEW"), ("INDEX",))


def _show_create(words: Words) -> ShowCreateSyntax:
    for kind in _CREATED:
        if words.match(2, *kind):
            relation = _range_var(words, 2 + len(kind), len(words.items))
            return ShowCreateSyntax(" ".join(kind).lower(), relation)
    raise words.syntax_error(2)


def _show(words: Words) -> ShowObjectsSyntax | ShowCreateSyntax | None:
    at = 1
    if words.text(1) == "CREATE":
        return _show_create(words)
    if words.match(1, "MATERIALIZED", "VIEWS"):
        kind, at = "materialized views", 3
    elif words.match(1, "CLUSTER", "REPLICAS"):
        kind, at = "cluster replicas", 3
    elif words.text(1) in _SHOWN:
        kind, at = words.text(1).lower(), 2
    else:
        return None
    if at == len(words.items):
        return ShowObjectsSyntax(kind)
    if words.text(at) not in ("FROM", "IN", "ON") or kind in ("clusters", "cluster replicas"):
        raise words.syntax_error(at)
    return ShowObjectsSyntax(kind, _range_var(words, at + 1, len(words.items)))
