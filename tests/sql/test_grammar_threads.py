"""However many threads parse, only so many of the process's thread-specific keys are taken."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable

import pytest

from eddyline.sql import grammar_threads
from eddyline.sql.grammar import GrammarError, parse_nodes, scan_tokens
from eddyline.sql.grammar_threads import MOST_CALLERS


def on_threads(count: int, body: Callable[[], object]) -> list[object]:
    """What ``body`` gives on threads that come one after the other."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(body())
        except GrammarError as error:
            found.append((error.sqlstate, error.position, error.message))

    for _ in range(count):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    return found


def free_keys() -> int:
    """How many thread-specific keys of the C library are left."""
    libc, keys = ctypes.CDLL(None), list[int]()
    key = ctypes.c_uint()
    while libc.pthread_key_create(ctypes.byref(key), None) == 0:
        keys.append(key.value)
    for taken in keys:
        libc.pthread_key_delete(taken)
    return len(keys)


@pytest.mark.skipif(sys.platform != "linux", reason="the keys of glibc are counted")
def test_threads_that_come_and_go_take_no_keys_with_them() -> None:
    parse_nodes("SELECT 1")
    before = free_keys()
    on_threads(MOST_CALLERS + 100, lambda: parse_nodes("SELECT 2"))
    assert before - free_keys() <= MOST_CALLERS + 2  # and the two that stay


@pytest.fixture
def nobody_may_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar_threads, "MOST_CALLERS", 0)


@pytest.mark.usefixtures("nobody_may_call")
def test_another_thread_gives_the_same_answers_and_errors() -> None:
    here = parse_nodes("SELECT 1; SELECT 'a'")
    assert on_threads(1, lambda: parse_nodes("SELECT 1; SELECT 'a'")) == [here]
    assert on_threads(1, lambda: [t.token for t in scan_tokens("a + 1")]) == [[t.token for t in scan_tokens("a + 1")]]
    deep = "SELECT " + " + ".join(["1"] * 300)
    assert on_threads(1, lambda: len(parse_nodes(deep))) == [1]
    with pytest.raises(GrammarError) as caught:
        parse_nodes("SELECT 1 FORM t")
    expected = (caught.value.sqlstate, caught.value.position, caught.value.message)
    assert on_threads(1, lambda: parse_nodes("SELECT 1 FORM t")) == [expected]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.usefixtures("nobody_may_call")
def test_a_forked_child_has_threads_of_its_own() -> None:
    assert on_threads(1, lambda: len(parse_nodes("SELECT 1"))) == [1]
    child = os.fork()
    if child == 0:
        os._exit(0 if on_threads(1, lambda: len(parse_nodes("SELECT 1; SELECT 2"))) == [2] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
