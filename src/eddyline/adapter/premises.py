"""What a plan was decided from: the questions that binding and planning asked of the catalog, with its answers.

What was decided is right wherever the answers are the same, so that plans outlive changes of the catalog that they have
nothing to do with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from eddyline.adapter.system_catalog import shown_by
from eddyline.sql.catalog_view import CatalogCluster, CatalogItem, CatalogView, ShownSetting

__all__ = ["AskedCatalog", "Premises"]

A = TypeVar("A")

#: a member of ``CatalogView``, and the arguments of a method
_Question: TypeAlias = tuple[str, tuple[str | None, ...]]

#: what differs from session to session, or from one moment to the next
_OF_SESSION: tuple[_Question, ...] = (("settings", ()), ("activity", ()), ("process", ()))


@dataclass(frozen=True, slots=True)
class Premises:
    answers: Mapping[_Question, object]

    def hold(self, catalog: CatalogView) -> bool:
        """Whether ``catalog`` answers the same.  O(questions).  What shows the catalog is never the same again."""
        return all(_same(_answer(catalog, question), answer) for question, answer in self.answers.items())

    @property
    def of_session(self) -> bool:
        """Whether it depends on settings or sessions: then it may not be right in the same version of the catalog."""
        return any(question in self.answers for question in _OF_SESSION)


def _answer(catalog: CatalogView, question: _Question) -> Any:
    member, about = question
    value = getattr(catalog, member)
    return value(*about) if callable(value) else value


def _same(one: object, other: object) -> bool:
    """Items by identity: versions of the catalog share those that did not change, and their bodies are long."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return one is other or (not isinstance(one, CatalogItem) and one == other)


class AskedCatalog:
    """A ``CatalogView`` that notes what it is asked.  For the thread that binds."""

    def __init__(self, catalog: CatalogView) -> None:
        self._catalog = catalog
        self._answers: dict[_Question, object] = {}

    def premises(self) -> Premises:
        """Of all that was asked so far."""
        return Premises(dict(self._answers))

    def _noted(self, answer: A, member: str, *about: str | None) -> A:
        self._answers[member, about] = answer
        return answer

    def _seen(self, item: CatalogItem | None) -> CatalogItem | None:
        """``item``; what shows the session's own is decided from that."""
        for member in () if item is None else shown_by(item):
            self._noted(getattr(self._catalog, member), member)
        return item

    @property
    def version(self) -> int:
        return self._noted(self._catalog.version, "version")

    @property
    def search_path(self) -> tuple[str, ...]:
        return self._noted(self._catalog.search_path, "search_path")

    @property
    def zone(self) -> str | None:
        return self._noted(self._catalog.zone, "zone")

    @property
    def users(self) -> tuple[str, str]:
        return self._noted(self._catalog.users, "users")

    @property
    def settings(self) -> tuple[ShownSetting, ...]:
        return self._noted(self._catalog.settings, "settings")

    @property
    def process(self) -> int:
        return self._noted(self._catalog.process, "process")

    @property
    def cluster(self) -> str:
        return self._noted(self._catalog.cluster, "cluster")

    @property
    def cluster_id(self) -> str | None:
        return self._noted(self._catalog.cluster_id, "cluster_id")

    def clusters(self) -> tuple[CatalogCluster, ...]:
        return self._noted(self._catalog.clusters(), "clusters")

    @property
    def creation_schema(self) -> str | None:
        return self._noted(self._catalog.creation_schema, "creation_schema")

    def has_schema(self, schema: str) -> bool:
        return self._noted(self._catalog.has_schema(schema), "has_schema", schema)

    def schema_names(self) -> tuple[str, ...]:
        return self._noted(self._catalog.schema_names(), "schema_names")

    def resolve(self, schema: str | None, name: str) -> CatalogItem | None:
        return self._noted(self._seen(self._catalog.resolve(schema, name)), "resolve", schema, name)

    def item(self, item_id: str) -> CatalogItem | None:
        return self._noted(self._seen(self._catalog.item(item_id)), "item", item_id)

    def items(self, schema: str | None = None) -> tuple[CatalogItem, ...]:
        return self._noted(self._catalog.items(schema), "items", schema)

    def indexes_on(self, item_id: str) -> tuple[CatalogItem, ...]:
        return self._noted(self._catalog.indexes_on(item_id), "indexes_on", item_id)

    def built(self, item_id: str) -> bool:
        return self._noted(self._catalog.built(item_id), "built", item_id)

    def dependents(self, item_id: str) -> tuple[CatalogItem, ...]:
        return self._noted(self._catalog.dependents(item_id), "dependents", item_id)
