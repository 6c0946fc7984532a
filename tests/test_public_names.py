"""What ``import eddyline`` offers, and the calls that connections have.  A change here is a change for users."""

from __future__ import annotations

import inspect
import types

import eddyline

NAMES = """
    AsyncConnection BINARY Binary Connection Cursor DATETIME DataError DatabaseError Date DateFromTicks Error
    IntegrityError InterfaceError InternalError Interval NUMBER NotSupportedError OperationalError ProgrammingError
    ROWID STRING Subscription SubscriptionChange Time TimeFromTicks Timestamp TimestampFromTicks Warning
    __version__ aconnect apilevel connect paramstyle threadsafety
"""
CONNECT = "path workers interactive memory_limit process_settings processes"


def public(owner: object) -> set[str]:
    return {name for name in dir(owner) if not name.startswith("_")}


def test_the_package_offers_these_names_and_no_others() -> None:
    assert sorted(eddyline.__all__) == sorted(NAMES.split())
    modules = {n for n in public(eddyline) if isinstance(getattr(eddyline, n), types.ModuleType)}
    assert public(eddyline) - modules == set(NAMES.split()) - {"__version__"}


def test_both_ways_to_connect_take_these_arguments() -> None:
    for call in (eddyline.connect, eddyline.aconnect):
        assert " ".join(inspect.signature(call).parameters) == CONNECT


def test_the_asyncio_face_has_no_call_of_its_own() -> None:
    assert public(eddyline.AsyncConnection) <= public(eddyline.Connection)
