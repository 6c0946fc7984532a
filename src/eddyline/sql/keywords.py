"""PostgreSQL's keywords, as its scanner tells them."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from postgast import pg_query_pb2 as pb

from eddyline.sql.grammar import scan_tokens

__all__ = ["Keyword", "keywords", "quoted_keywords"]

#: by the scanner's kind: PostgreSQL's code and description
_CATEGORIES: Final = {
    pb.UNRESERVED_KEYWORD: ("U", "unreserved"),
    pb.COL_NAME_KEYWORD: ("C", "unreserved (cannot be function or type name)"),
    pb.TYPE_FUNC_NAME_KEYWORD: ("T", "reserved (can be function or type name)"),
    pb.RESERVED_KEYWORD: ("R", "reserved"),
}


class Keyword(NamedTuple):
    word: str
    category: str
    description: str


@cache
def keywords() -> tuple[Keyword, ...]:
    """All of them, by word."""
    words = sorted({name.removesuffix("_P").lower() for name in pb.Token.keys()})  # noqa: SIM118 - an enum's, no mapping
    found = []
    for token, word in zip(scan_tokens(" ".join(words)), words, strict=True):
        category = _CATEGORIES.get(token.keyword_kind)
        if category is not None:
            found.append(Keyword(word, *category))
    return tuple(found)


@cache
def quoted_keywords() -> tuple[str, ...]:
    """Those that are no names unless they stand in quotes."""
    return tuple(keyword.word for keyword in keywords() if keyword.category != "U")
