"""``quote_ident``, ``format`` and their kin, as expressions that are bound in the place of their calls."""

from __future__ import annotations

import re
from typing import Final

from eddyline.errors import make_error, unsupported
from eddyline.sql.keywords import quoted_keywords

__all__ = ["format_template", "parse_ident_template", "quote_ident_template"]

_SPECIFIER: Final = re.compile(r"%(?:(?P<kind>[sIL%])|(?P<other>.?))", re.DOTALL)


def quote_ident_template(argument: str) -> str:
    """Quoted where it would not be read as this name without; NULL of NULL."""
    text = f"CAST({argument} AS text)"
    reserved = ", ".join(f"'{word}'" for word in quoted_keywords())
    plain = f"{text} ~ '^[a-z_][a-z0-9_]*$' AND {text} NOT IN ({reserved})"
    return f"""CASE WHEN {plain} THEN {text} ELSE '"' || replace({text}, '"', '""') || '"' END"""


def parse_ident_template(argument: str) -> str:
    """The parts of a name with dots; one without quotes is folded, of others the quotes are taken off."""
    text = f"CAST({argument} AS text)"
    bare = f"replace({text}, '\"', '')"
    return f"string_to_array(CASE WHEN strpos({text}, '\"') > 0 THEN {bare} ELSE lower({text}) END, '.')"


def format_template(pattern: str, arguments: int) -> str:
    """``pattern``: a constant; its arguments are ``$2`` and on.  22023 for too few of them or an unknown specifier.

    Widths and positions are 0A000.
    """
    parts: list[str] = []
    given, end = 1, 0
    for found in _SPECIFIER.finditer(pattern):
        parts.append(_quoted(pattern[end : found.start()]))
        end = found.end()
        kind = found["kind"]
        if kind == "%":
            parts.append("'%'")
            continue
        if kind is None:
            raise _refused(found["other"])
        given += 1
        if given > arguments:
            raise make_error("22023", "too few arguments for format()")
        parts.append(_shown(kind, f"${given}"))
    parts.append(_quoted(pattern[end:]))
    return " || ".join(part for part in parts if part != "''") or "''"


def _shown(kind: str, argument: str) -> str:
    match kind:
        case "I":
            return f"({quote_ident_template(argument)})"
        case "L":
            return f"coalesce(quote_literal({argument}), 'NULL')"
        case _:
            return f"coalesce(CAST({argument} AS text), '')"


def _refused(character: str) -> Exception:
    if not character:
        return make_error("22023", "unterminated format() type specifier", hint='For a single "%" use "%%".')
    if character in "-*" or character.isdigit():
        return unsupported("a width or a position in format()", hint="Write the arguments in order, and use lpad.")
    return make_error("22023", f'unrecognized format() type specifier "{character}"', hint='For a single "%" use "%%".')


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
