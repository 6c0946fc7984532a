"""Which SELECTs a session has been asked before, and those among them that a quick lookup answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from eddyline.adapter.clusters import Cluster
from eddyline.adapter.engine import Engine
from eddyline.adapter.named_statements import NamedStatement
from eddyline.adapter.outcome import Outcome
from eddyline.adapter.point_plan import AS_THEY_ARE
from eddyline.adapter.prepare import Prepared
from eddyline.adapter.quick_lookup import QuickLookup, quick_lookup
from eddyline.adapter.running import Running
from eddyline.adapter.setting_values import STRICT_SERIALIZABLE
from eddyline.adapter.settings import InForce
from eddyline.errors import DatabaseError
from eddyline.expr.ir import Literal, LiteralValue
from eddyline.sql.statements import Select

__all__ = ["AskedLookups", "KnownLookup", "Rows"]

#: how many a session knows, and how long they may be
_MOST: Final = 256
_CHARS: Final = 20_000
_PLAIN: Final = (tuple, list, type(None))


class _Asked(NamedTuple):
    """A SELECT that was run at that catalog version and with those settings; ``lookup``: what answers it from then on.

    ``prepared``: what was run then.  ``tried``: whether a lookup has been looked for.
    """

    version: int
    settings: InForce
    prepared: Prepared
    lookup: QuickLookup | None
    tried: bool


class KnownLookup(NamedTuple):
    """What answers a statement at a catalog version and with those settings; for ``AskedLookups.rows`` alone."""

    version: int
    settings: InForce
    lookup: QuickLookup


Rows: TypeAlias = list[tuple[Any, ...]]


class AskedLookups:
    """Of one session, outside of transaction blocks.  State of its running statement."""

    def __init__(self, engine: Engine, running: Running) -> None:
        self._engine = engine
        self._running = running
        self._asked: dict[tuple[str, bool], _Asked] = {}  # by text, and whether it had no parameters

    def answer(self, text: str, parameters: Sequence[Any] | None, settings: InForce) -> Outcome | None:
        """The answer of a lookup that was asked before, if it is as plain as then.  Nothing has happened if not."""
        asked = self._asked.get((text, parameters is None)) if type(text) is str else None
        if asked is None or asked.lookup is None or type(parameters) not in _PLAIN:
            return None
        engine, lookup = self._engine, asked.lookup
        if not self._holds(asked, settings):
            return None
        began = time.perf_counter_ns()
        waited_ns = 0
        result = lookup.answer(engine, parameters or (), settings.read_bounds)
        if result is None and self._waited(lookup, settings):
            waited_ns = time.perf_counter_ns() - began
            result = lookup.answer(engine, parameters or (), settings.read_bounds)
        if result is None:
            return None
        took_ns = time.perf_counter_ns() - began - waited_ns
        engine.metrics.looked_up(lookup.reader, took_ns, waited_ns)
        return Outcome(f"SELECT {result.rows}", result)

    def _waited(self, lookup: QuickLookup, settings: InForce) -> bool:
        """Whether it only had to wait for maintenance, and has.  57014: a statement waits, which can be cancelled."""
        with self._running.statement(settings.statement_timeout_s) as interrupt:
            waited = lookup.wait_sealed(self._engine, interrupt.expired)
            try:
                interrupt.check()
            except DatabaseError as problem:
                self._engine.metrics.statement(problem)
                raise
            return waited

    def remember(
        self, text: str, parameters: Sequence[Any] | None, version: int, settings: InForce, prepared: Prepared
    ) -> None:
        """A SELECT was run: if it is asked for a second time, and is a lookup, the next ones will be quick."""
        if prepared.guessed or len(text) > _CHARS:
            return
        key, asked = (text, parameters is None), self._asked.get((text, parameters is None))
        if asked is None or asked.prepared is not prepared or asked.settings is not settings:
            if len(self._asked) >= _MOST:
                self._asked.clear()
            self._asked[key] = _Asked(version, settings, prepared, None, tried=False)
        elif asked.tried:
            self._asked[key] = asked._replace(version=version)
        else:
            strict = settings.isolation == STRICT_SERIALIZABLE
            lookup = quick_lookup(self._engine, self._cluster(settings), prepared) if strict else None
            self._asked[key] = _Asked(version, settings, prepared, lookup, tried=True)

    def _cluster(self, settings: InForce) -> Cluster | None:
        """Of the session, in the newest catalog: should that not be the statement's, what is found never holds."""
        found = self._engine.catalog.snapshot().cluster_named(settings.cluster)
        return None if found is None else self._engine.clusters.get(found.id)

    def answer_bound(
        self, statement: NamedStatement, arguments: Sequence[Literal], settings: InForce
    ) -> Outcome | None:
        """As ``answer``, with literals."""
        if statement.prepared.plan is None or any(a.type.kind not in AS_THEY_ARE for a in arguments):
            return None
        return self.answer(statement.asked_as, [a.value for a in arguments], settings)

    def known(self, text: str, settings: InForce) -> KnownLookup | None:
        """The quick lookup of what is ``asked_as`` that, if it is known, for ``rows``."""
        asked = self._asked.get((text, False))
        if asked is None or asked.lookup is None or not self._holds(asked, settings):
            return None
        return KnownLookup(asked.version, asked.settings, asked.lookup)

    def rows(self, known: KnownLookup, literals: Sequence[LiteralValue], settings: InForce) -> Rows | None:
        """The answer's rows as Python values; None: nothing has happened, perhaps since it no longer holds."""
        if not self._holds(known, settings):
            return None
        engine, lookup = self._engine, known.lookup
        began = time.perf_counter_ns()
        rows = lookup.rows(engine, literals, settings.read_bounds)
        if rows is not None:
            engine.metrics.looked_up(lookup.reader, time.perf_counter_ns() - began)
        return rows

    def _holds(self, known: KnownLookup | _Asked, settings: InForce) -> bool:
        return known.settings is settings and known.version == self._engine.catalog.snapshot().version

    def remember_bound(self, statement: NamedStatement, settings: InForce) -> None:
        """As ``remember``."""
        if isinstance(statement.prepared.statement, Select):
            self.remember(statement.asked_as, (), statement.meaning[0], settings, statement.prepared)

    def clear(self) -> None:
        self._asked.clear()
