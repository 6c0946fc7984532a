"""Regular expressions: both engines agree, ambiguous captures are refused, and the longest match is found."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from eddyline.errors import DatabaseError
from eddyline.expr.regex_analysis import captures_settled, is_deterministic, prefers_longest
from eddyline.expr.regex_match import compile_regex, match_column
from eddyline.expr.regex_syntax import Flags, parse_regex


def search(pattern: str, text: str) -> str | None:
    found = compile_regex(pattern, Flags()).search(text)
    return None if found is None else found[0]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (r"[0-9]+", True),
        (r"(\w+)@(\w+)", True),
        (r"a*b", True),
        (r"(a|b)*c", True),
        (r"a*a", False),
        (r"(a|ab)c", False),
        (r"(a*)*", False),
        (r"a{1,2}a", False),
        (r"(|a)b", False),
        (r"(a)\1", False),
    ],
)
def test_determinism_is_recognised(pattern: str, expected: bool) -> None:
    assert is_deterministic(parse_regex(pattern, Flags()).root) is expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [(r"a+", True), (r"a+?", False), (r"a+?b+", False), (r"a{2}b*?", False), (r"a*?|b", True), (r"ab", True)],
)
def test_the_first_quantifier_sets_the_preference(pattern: str, expected: bool) -> None:
    assert prefers_longest(parse_regex(pattern, Flags()).root) is expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"a|ab|abc", "xabcd", "abc"),
        (r"(a*)(ab)*", "aab", "aab"),
        (r"(a|ab)$", "ab", "ab"),
        (r"(?:a|ab)(?=c)", "abc", "ab"),
        (r".*?b|xb", "abab", "abab"),
        (r"a+?b*", "aabb", "a"),
    ],
)
def test_the_leftmost_longest_or_shortest_match_is_found(pattern: str, text: str, expected: str) -> None:
    assert search(pattern, text) == expected


@pytest.mark.parametrize("pattern", [r"(a|ab)(c|bcd)(d*)", r"(a*)(ab)*", r"(a*)*"])
def test_ambiguous_captures_are_refused_by_name(pattern: str) -> None:
    matcher = compile_regex(pattern, Flags())
    with pytest.raises(DatabaseError, match="capturing from an ambiguous regular expression") as caught:
        matcher.require_captures()
    assert caught.value.sqlstate == "0A000"


@pytest.mark.parametrize("pattern", [r"(.*)-(.*)", r"(foo|foobar)", r"^(\w+)\s*=\s*(\w+)$", r".*?([0-9]+)", r"^(.+),"])
def test_usual_captures_are_settled(pattern: str) -> None:
    assert captures_settled(parse_regex(pattern, Flags()).root)


@pytest.mark.parametrize("seed", range(30))
def test_both_engines_agree_on_whether_a_text_matches(seed: int) -> None:
    rng = random.Random(seed)
    atoms = ["a", "b", "[ab]", "[^a]", ".", "(a|b)", "(?:ab|c)", r"\d", r"\w", "日", r"\."]
    pattern = "".join(rng.choice(atoms) + rng.choice(["", "", "*", "+", "?", "{1,2}", "*?"]) for _ in range(4))
    pattern = rng.choice(["", "^", "(?i)"]) + pattern + rng.choice(["", "$", "|bb"])
    texts = ["".join(rng.choices("abcAB日1. \n", k=rng.randrange(8))) for _ in range(60)]
    matcher = compile_regex(pattern, Flags())
    assert matcher.linear is not None
    linear = match_column(pa.array(texts, pa.large_string()), matcher).array.to_pylist()
    assert linear == [matcher.first.search(t) is not None for t in texts]


def test_a_pattern_too_large_for_one_engine_goes_to_the_other() -> None:
    matcher = compile_regex("((a{200}){200}){200}|b", Flags())
    assert match_column(pa.array(["b", "a", None], pa.large_string()), matcher).array.to_pylist() == [True, False, None]


@pytest.mark.parametrize(
    ("pattern", "sqlstate"),
    [("(" * 150 + ")" * 150, "54001"), ("[[.hyphen.]]", "0A000"), (r"(?<=a*)b", "0A000"), ("(?b)a", "0A000")],
)
def test_what_is_not_there_says_so(pattern: str, sqlstate: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        compile_regex(pattern, Flags())
    assert caught.value.sqlstate == sqlstate
