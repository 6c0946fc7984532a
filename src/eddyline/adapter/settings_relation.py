"""The rows of ``pg_settings``: what a session sees of its settings and of the database's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from eddyline.adapter.memory_size import bytes_of
from eddyline.adapter.setting_values import duration_s
from eddyline.adapter.system_relations import Row
from eddyline.sql.catalog_view import ShownSetting

__all__ = ["SETTINGS_NAME", "SETTINGS_SHAPE", "settings_rows"]

SETTINGS_NAME: Final = "pg_settings"
SETTINGS_SHAPE: Final = (
    "name setting unit category short_desc extra_desc context vartype source min_val max_val enumvals:T boot_val "
    "reset_val sourcefile sourceline:i pending_restart:b"
)
#: SHOW knows them, and lists of settings leave them out, as PostgreSQL's do
_UNLISTED: Final = frozenset(("is_superuser", "role", "session_authorization"))


def settings_rows(settings: Iterable[ShownSetting]) -> Iterator[Row]:
    """Amounts are numbers of their unit.  Nothing is said of categories, and of least and greatest values."""
    for s in settings:
        if s.name in _UNLISTED:
            continue
        value, boot, reset = (_in_units(text, s.unit) for text in (s.value, s.boot, s.reset))
        kind = "bool" if boot in ("on", "off") else "integer" if boot.isdigit() else "string"
        described = (None, None, None)
        bounds = (None, None, None)
        yield s.name, value, s.unit, *described, s.context, kind, s.source, *bounds, boot, reset, None, None, False


def _in_units(text: str, unit: str | None) -> str:
    match unit:
        case "ms":
            return str(round(1000 * (duration_s(text) or 0)))
        case "B":
            return str(bytes_of(text) or 0)
        case _:
            return text
