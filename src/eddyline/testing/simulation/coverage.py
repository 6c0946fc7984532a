"""How often the situations occurred that a run is for."""

from __future__ import annotations

from collections import Counter

__all__ = [
    "COMPANION_SITUATIONS",
    "NEIGHBOUR_SITUATIONS",
    "PAIR_SITUATIONS",
    "PROCESS_SITUATIONS",
    "SITUATIONS",
    "Coverage",
]

Coverage = Counter[str]

#: of any layout
SITUATIONS = (
    "answer",
    "answer: an error",
    "answer: strict",
    "answer: at a past time",
    "answer: waited for a later write",
    "answer: one-shot over indexes",
    "answer: one-shot over storage",
    "answer: on the caller's thread",
    "answer: past its memory",
    "cancel: canceled",
    "cancel: answered before",
    "drop: under a read",
    "reconnect",
    "reconnect: with reads open",
    "crash",
    "crash: with reads open",
    "schedule: rendered before it",
    "schedule: read before it",
    "schedule: written before it",
    "schedule: dropped before it",
    "schedule: kept back over a reconnect",
    "writes: not yet allowed",
    "writes: allowed late",
)
#: of a replica of two runtimes
PAIR_SITUATIONS = (
    "placeholder: peek answered",
    "placeholder: one-shot read answered",
    "cancel: before publication",
    "cancel: after publication",
    "compaction: owner ahead",
    "compaction: reader ahead",
    "reconnect: maintenance first",
    "reconnect: interactive first",
    "recreation",
    "recreation: equal as_of",
    "crash: maintenance",
    "crash: interactive",
    "crash: lane",
)
#: where there is a second replica
COMPANION_SITUATIONS = (
    "replicas: answered by the second",
    "replicas: the second lost",
    "replicas: the second lost: with reads open",
)
#: where there is a second cluster
NEIGHBOUR_SITUATIONS = (
    "clusters: a view of the second over one of the first",
    "clusters: a view of the second is read",
    "clusters: the second lost",
)
#: of replicas of several processes
PROCESS_SITUATIONS = (
    "processes: two",
    "processes: answer",
    "process lost",
    "process lost: with reads open",
    "process: ended by another's end",
    "connection lost",
    "connection lost: with reads open",
    "mirror: resumed",
    "mirror: given up",
    "view: written",
    "frontier: waited for storage",
    "hello: passed on before it was said",
    "exchange: rows between processes",
)
