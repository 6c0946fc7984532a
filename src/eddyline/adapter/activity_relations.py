"""``pg_stat_activity``: a row for each session.  What they ask is theirs and that of roles who have their rights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eddyline.adapter.pg_objects import DATABASE_OID, PG_CATALOG
from eddyline.adapter.rights_relations import enabled_roles
from eddyline.adapter.system_relations import Contents, Row, Viewer, seen_table
from eddyline.sql.system_functions import DATABASE

__all__ = ["ACTIVITY_TABLES"]

_SHAPE: Final = (
    "datid:o datname pid:i leader_pid:i usesysid:o usename application_name client_addr client_hostname client_port:i "
    "backend_start:z xact_start:z query_start:z state_change:z wait_event_type wait_event state backend_xid:o "
    "backend_xmin:o query_id:o query backend_type"
)
_REFUSED: Final = "<insufficient privilege>"


def _activity(contents: Contents, viewer: Viewer) -> Iterator[Row]:
    rules = contents.access
    enabled = enabled_roles(rules, viewer)
    for seen in viewer.activity:
        role = rules.roles.get(seen.user)
        who = (
            DATABASE_OID, DATABASE, seen.process, None, None if role is None else role.id,
            None if role is None else role.name, seen.application,
        )  # fmt: skip
        if role is None or role.id not in enabled:
            yield (*who, *[None] * 13, _REFUSED, None)
            continue
        yield (
            *who, seen.address, None, seen.port, seen.started_us, seen.transaction_us, seen.query_us,
            seen.state_change_us, *(("Client", "ClientRead") if seen.state != "active" else (None, None)), seen.state,
            None, None, None, seen.query, "client backend",
        )  # fmt: skip


ACTIVITY_TABLES: Final = (seen_table(PG_CATALOG, "pg_stat_activity", _SHAPE, _activity, "activity"),)
