"""~ and its kin, substring(text from pattern), regexp_replace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.errors import make_error
from eddyline.expr.constants import per_constant
from eddyline.expr.regex_match import Matcher, compile_regex, match_column
from eddyline.expr.regex_syntax import Flags, with_options
from eddyline.expr.registry import Arguments, Evaluated, Function, Overload, declare, implements
from eddyline.expr.rowwise import map_rows
from eddyline.expr.text_output import padded
from eddyline.repr.types import BOOLEAN, TEXT, Kind, SqlType

__all__: list[str] = []

K = Kind
_TEXT: Final = pa.large_string()


def _matches(*, fold: bool, negate: bool) -> Function:
    def compute(pattern: str, others: Sequence[pa.Array]) -> Evaluated:
        found = match_column(others[0], compile_regex(pattern, Flags(ignore_case=fold)))
        return Evaluated(pc.invert(found.array), found.errors) if negate else found

    def by_row(text: str, pattern: str) -> bool:
        return (compile_regex(pattern, Flags(ignore_case=fold)).first.search(text) is not None) is not negate

    def apply(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
        operands = Arguments([padded(args[0], types[0]), args.operand(1)], rows)
        return per_constant(operands, 1, pa.bool_(), rows, compute, by_row=by_row)

    return apply


for _name, _fold, _negate in (
    ("regex_match", False, False),
    ("regex_not_match", False, True),
    ("regex_imatch", True, False),
    ("regex_not_imatch", True, True),
):
    implements(_name, fallible=True)(_matches(fold=_fold, negate=_negate))


@implements("regex_substring", fallible=True)
def _regex_substring(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """The first group of the first match, the whole match if there are no groups, NULL without a match."""

    def by_row(text: str, pattern: str) -> str | None:
        matcher = compile_regex(pattern, Flags())
        found = matcher.search(text)
        if found is None:
            return None
        if matcher.regex.groups:
            matcher.require_captures()
        return found[1 if matcher.regex.groups else 0]

    def compute(pattern: str, others: Sequence[pa.Array]) -> Evaluated:
        return map_rows([others[0]], lambda text: by_row(text, pattern), _TEXT)

    return per_constant(args, 1, _TEXT, rows, compute, by_row=by_row)


_REFERENCE: Final = re.compile(r"\\(?:([0-9&])|(\\)|)", re.DOTALL)


def _template(replacement: str) -> list[str | int]:
    """Literal pieces and group numbers (0: the whole match) of a replacement text."""
    pieces: list[str | int] = []
    last = 0
    for match in _REFERENCE.finditer(replacement):
        pieces.append(replacement[last : match.start()])
        if match[1] is not None:
            if match[1] == "0":
                pieces.append("\\0")
            else:
                pieces.append(0 if match[1] == "&" else int(match[1]))
        else:
            pieces.append("\\")
        last = match.end()
    pieces.append(replacement[last:])
    return pieces


def _replaced(text: str, matcher: Matcher, template: list[str | int], *, everywhere: bool) -> str:
    result: list[str] = []
    copied = position = 0
    capturing = any(isinstance(piece, int) and piece > 0 for piece in template)
    while position <= len(text):
        found = matcher.search(text, position)
        if found is None:
            break
        if capturing:
            matcher.require_captures()
        result.append(text[copied : found.start()])
        for piece in template:
            if isinstance(piece, str):
                result.append(piece)
            elif piece <= matcher.regex.groups:
                result.append(found[piece] or "")
        copied = found.end()
        if not everywhere:
            break
        position = copied + (found.end() == found.start())
    result.append(text[copied:])
    return "".join(result)


def _replace_options(letters: str) -> tuple[Flags, bool]:
    flags: Flags | None = Flags()
    if letters[:1].isdigit():
        raise make_error(
            "22023",
            f'invalid regular expression option: "{letters[0]}"',
            hint="If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer "
            "explicitly.",
        )
    for letter in letters:
        if letter != "g" and flags is not None:
            flags = with_options(flags, letter)
        if flags is None:
            raise make_error("22023", f'invalid regular expression option: "{letter}"')
    return flags or Flags(), "g" in letters


@implements("regexp_replace", fallible=True)
def _regexp_replace(args: Arguments, types: Sequence[SqlType], result: SqlType, rows: int) -> Evaluated:
    """The first match (all, with option g) exchanged for a text in which \\1 … \\9 and \\& stand for its parts."""
    options = args.operand(3) if len(args) > 3 else pa.scalar("", _TEXT)

    def with_letters(letters: str, others: Sequence[pa.Array]) -> Evaluated:
        flags, everywhere = _replace_options(letters)

        def compute(pattern: str, rest: Sequence[pa.Array]) -> Evaluated:
            matcher = compile_regex(pattern, flags)

            def replaced(text: str, replacement: str) -> str:
                return _replaced(text, matcher, _template(replacement), everywhere=everywhere)

            return map_rows([rest[0], rest[1]], replaced, _TEXT)

        return per_constant(Arguments(others, len(others[0])), 1, _TEXT, len(others[0]), compute)

    operands = Arguments([args.operand(0), args.operand(1), args.operand(2), options], rows)
    constant_pattern = args.constant(1)
    if isinstance(options, pa.Scalar) and constant_pattern is not None and options.is_valid:
        return _constant_replace(args, options.as_py(), constant_pattern, rows)
    return per_constant(operands, 3, _TEXT, rows, with_letters)


def _replaced_rows(column: pa.Array, matcher: Matcher, template: list[str | int], *, everywhere: bool) -> Evaluated:
    return map_rows([column], lambda text: _replaced(text, matcher, template, everywhere=everywhere), _TEXT)


def _constant_replace(args: Arguments, letters: str, pattern: pa.Scalar, rows: int) -> Evaluated:
    """The common case: pattern and options are constants, so that nothing is grouped by their values."""

    def compute(replacement: str, others: Sequence[pa.Array]) -> Evaluated:
        flags, everywhere = _replace_options(letters)
        matcher = compile_regex(pattern.as_py(), flags)
        template = _template(replacement)
        if matcher.replacing is not None and all(p == 0 or isinstance(p, str) for p in template):
            rewritten = "".join(p.replace("\\", "\\\\") if isinstance(p, str) else "\\0" for p in template)
            try:
                limit = None if everywhere else 1
                return Evaluated(
                    pc.replace_substring_regex(others[0], matcher.replacing, rewritten, max_replacements=limit)
                )
            except pa.ArrowInvalid:  # larger than Arrow's engine allows
                return _replaced_rows(others[0], matcher, template, everywhere=everywhere)
        return _replaced_rows(others[0], matcher, template, everywhere=everywhere)

    if not pattern.is_valid:
        return Evaluated(pa.nulls(rows, _TEXT))
    return per_constant(Arguments([args.operand(0), args.operand(2)], rows), 1, _TEXT, rows, compute)


declare(
    *(
        Overload(operator, (kind, K.TEXT), BOOLEAN, impl)
        for operator, impl in (
            ("~", "regex_match"),
            ("~*", "regex_imatch"),
            ("!~", "regex_not_match"),
            ("!~*", "regex_not_imatch"),
        )
        for kind in (K.TEXT, K.BPCHAR)
    ),
    Overload("substring", (K.TEXT, K.TEXT), TEXT, "regex_substring"),
    Overload("regexp_replace", (K.TEXT, K.TEXT, K.TEXT), TEXT, "regexp_replace"),
    Overload("regexp_replace", (K.TEXT, K.TEXT, K.TEXT, K.TEXT), TEXT, "regexp_replace"),
)
