"""Golden scripts: SQL with what each statement answers, in comments below it.

A script is valid SQL.  A statement ends with ``;`` at the end of a line; its answer follows in lines that begin with
``-->``: the column names and the rows, or ``ERROR sqlstate: message``.  Rows are sorted as text where the statement
does not order them.  Any other comment is for the reader, except directives:

* ``--@ session NAME``: the next statements run in that session (the first is called ``main``);
* ``--@ remember NAME``: ``:NAME`` stands, from here on, for the time of the last statement;
* ``--@ subscription NAME``: the next SUBSCRIBE is called so;
* ``--@ changes NAME``: shows what came: up to the last commit for a subscription WITH (PROGRESS), to the end for one
  with UP TO; ``--@ changes NAME n``: the next n batches.  Times are numbered t1, t2, … as they first appear.

``replay`` gives the script with the answers as they are now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack

from eddyline.errors import Error, InterfaceError
from eddyline.frontends.connection import Connection, connect
from eddyline.frontends.cursor import Cursor
from eddyline.frontends.subscription import Subscription
from eddyline.testing.cells import result_of, text_rows

__all__ = ["replay"]

_ANSWER = "-->"
_DIRECTIVE = re.compile(r"--@ (session|remember|subscription|changes) (\w+)(?: (\d+))?$")
_ORDERED = re.compile(r"\bORDER BY\b|^\s*(EXPLAIN|SHOW)\b", re.IGNORECASE)
_SUBSCRIBE = re.compile(r"\s*SUBSCRIBE\b", re.IGNORECASE)
_WAIT_S = 30.0


def replay(script: str) -> str:
    """The script, played on an empty database, with every answer replaced by the one given now."""
    with ExitStack() as stack:
        player = _Player(stack.enter_context(connect()), stack)
        return "\n".join(_played(player, script.splitlines())) + "\n"


def _played(player: _Player, lines: list[str]) -> Iterator[str]:
    statement: list[str] = []
    for line in lines:
        if line.startswith(_ANSWER):
            continue
        yield line
        if not statement and (not line.strip() or line.startswith("--")):
            directive = _DIRECTIVE.match(line)
            if directive is not None:
                yield from player.directive(directive[1], directive[2], directive[3])
            elif line.startswith("--@"):
                raise InterfaceError(f"not a directive: {line}")
            continue
        statement.append(line)
        if line.endswith(";"):
            yield from player.statement("\n".join(statement))
            statement = []
    if statement:
        raise InterfaceError(f"a statement without its semicolon: {statement[0]}")


class _Player:
    """One script's sessions and subscriptions."""

    def __init__(self, main: Connection, stack: ExitStack) -> None:
        self._stack = stack
        self._sessions = {"main": main}
        self._session = main
        self._times: dict[str, int] = {}
        self._last_time = 0
        self._committed = 0
        self._next_subscription = "main"
        self._subscriptions: dict[str, tuple[Subscription, Cursor]] = {}
        self._shown_times: dict[int, str] = {}

    # -- statements

    def statement(self, text: str) -> Iterator[str]:
        source = re.sub(r"(?<!:):([a-z]\w*)", lambda m: str(self._times[m[1]]), text)
        try:
            cursor = self._session.execute(source.rstrip().rstrip(";"))
        except Error as error:
            yield f"{_ANSWER} ERROR {error.sqlstate}: {self._named(error.message)}"
            return
        if cursor.time is not None:
            self._last_time = cursor.time
            self._committed = max(self._committed, cursor.time)
        if _SUBSCRIBE.match(text):
            self._subscribe(cursor)
        elif cursor.description is not None:
            yield from _table(cursor, ordered=_orders(text))

    def _named(self, text: str) -> str:
        """Remembered times by their names."""
        for name, time in self._times.items():
            text = text.replace(str(time), f":{name}")
        return text

    def _subscribe(self, cursor: Cursor) -> None:
        outcome = cursor._outcome
        if outcome is None or outcome.feed is None:
            raise InterfaceError("SUBSCRIBE gave no feed")
        subscription = Subscription(outcome.feed, None)
        self._stack.callback(subscription.close)
        self._subscriptions[self._next_subscription] = (subscription, cursor)

    # -- directives

    def directive(self, verb: str, name: str, count: str | None) -> Iterator[str]:
        match verb:
            case "session":
                if name not in self._sessions:
                    self._sessions[name] = self._stack.enter_context(self._sessions["main"].session())
                self._session = self._sessions[name]
            case "remember":
                self._times[name] = self._last_time
            case "subscription":
                self._next_subscription = name
            case "changes":
                yield from self._changes(name, None if count is None else int(count))

    def _changes(self, name: str, count: int | None) -> Iterator[str]:
        subscription, cursor = self._subscriptions[name]
        outcome = cursor._outcome
        assert outcome is not None and outcome.feed is not None
        yield f"{_ANSWER} " + " | ".join(("time", "diff", *outcome.feed.names))
        batches = 0
        while count is None or batches < count:
            change = subscription.next(_WAIT_S)
            if change is None:
                if subscription.ended:
                    yield f"{_ANSWER} end"
                    return
                raise InterfaceError(f"subscription {name} fell silent")
            if change.updates.column("mz_progressed")[0].as_py():
                if count is None and change.time > self._committed:
                    return
                continue
            batches += 1
            label = self._shown_times.setdefault(change.time, f"t{len(self._shown_times) + 1}")
            diffs = change.updates.column("mz_diff").to_pylist()
            columns = [change.updates.column(i + 3) for i in range(len(outcome.feed.names))]
            texts = [[None if v is None else str(v) for v in column.to_pylist()] for column in columns]
            rows = [(label, f"{diff:+d}", *(t[i] for t in texts)) for i, diff in enumerate(diffs)]
            yield from (_line(row) for row in sorted(rows, key=repr))


def _orders(text: str) -> bool:
    """Whether the statement says in which order its rows come; an ORDER BY in parentheses orders something else."""
    outside, inside = text, ""
    while outside != inside:
        outside, inside = re.sub(r"\([^()]*\)", "", outside), outside
    return _ORDERED.search(outside) is not None


def _table(cursor: Cursor, *, ordered: bool) -> Iterator[str]:
    result = result_of(cursor)
    yield f"{_ANSWER} " + " | ".join(result.names)
    rows = text_rows(cursor)
    yield from (_line(row) for row in (rows if ordered else sorted(rows, key=repr)))


def _line(row: tuple[str | None, ...]) -> str:
    return f"{_ANSWER} " + " | ".join("NULL" if cell is None else cell for cell in row)
