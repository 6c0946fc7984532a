"""How settings of the whole database come to their values: as it opens, and by ALTER SYSTEM.

Invariants:
I1  what ALTER SYSTEM says is in the directory before it is in force, and comes back with it;
I2  a setting that the directory has and nobody can obey here and now stays in it, and is told of, not obeyed;
I3  what is the program's to set is set by nobody else.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping

from eddyline.adapter.catalog_documents import setting_changes, settings_of
from eddyline.adapter.durability import Durability
from eddyline.adapter.process_parameters import PROCESS_SETTINGS, THREAD_SWITCH_INTERVAL, host_refusal
from eddyline.adapter.system_settings import SystemSettings
from eddyline.errors import DatabaseError, make_error

__all__ = ["SystemAlterations", "host_defaults"]

_log = logging.getLogger("eddyline.engine")


def host_defaults(*, may_set: bool) -> dict[str, str]:
    """Process settings where the process is the program's: as it has them."""
    found = {} if may_set else {THREAD_SWITCH_INTERVAL: f"{round(sys.getswitchinterval() * 1e6)}us"}
    return {"gc_policy": "default", **found}


class SystemAlterations:
    """``system``: the settings in force.  ``hosted``: whether a replica has processes of its own.

    ``may_set``: whether settings of this process may be set at all.  Owner: whoever opens the database, then whoever
    has its commit lock.
    """

    def __init__(
        self, system: SystemSettings, durability: Durability | None, *, may_set: bool, hosted: Callable[[], bool]
    ) -> None:
        self._system = system
        self._durability = durability
        self._may_set = may_set
        self._hosted = hosted
        #: what the directory has
        self._stored: dict[str, str] = {} if durability is None else settings_of(durability.documents)

    def restore(self) -> None:
        """Those of the directory that mean anything here and now; the others stay in it."""
        for name, value in self._stored.items():
            try:
                self._check(name)
                self._system.set(name, (value,))
            except DatabaseError as problem:
                _log.warning("setting %s of the directory is not obeyed: %s", name, problem.message)

    def begin_with(self, process_settings: Mapping[str, str]) -> None:
        """What the program says of settings of the process.  42704, 22023 or 0A000 for what cannot be."""
        for name, value in process_settings.items():
            if name not in PROCESS_SETTINGS:
                known = f"Known: {', '.join(PROCESS_SETTINGS)}."
                raise make_error("42704", f'unrecognized process setting "{name}"', hint=known)
            self._check(name)
            self._system.set(name, (value,))

    def keep(self, name: str | None, values: tuple[str, ...] | None) -> None:
        """What ALTER SYSTEM says is in the directory from here on.  42704, 22023, 0A000 for what cannot be."""
        if name is not None and values is not None:
            self._check(name)
        after = self._system.after(self._stored, name, values)
        if self._durability is not None:
            put, removed = setting_changes(self._stored, after)
            self._durability.put_documents(put, removed)
            self._stored = after

    def _check(self, name: str) -> None:
        """0A000 for a setting of the process that is the program's."""
        if name not in PROCESS_SETTINGS or self._hosted():
            return
        refusal = host_refusal(name, may_set=self._may_set)
        if refusal is not None:
            raise refusal
