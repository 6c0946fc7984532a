"""SET, RESET, SHOW and ALTER SYSTEM: the database's settings, a session's and, between BEGIN and COMMIT, the
transaction's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from eddyline.adapter.cluster_changes import named_replica
from eddyline.adapter.cluster_definitions import define_clusters, tag_of
from eddyline.adapter.engine import Engine
from eddyline.adapter.notices import no_transaction_block
from eddyline.adapter.outcome import Outcome, ResultSet, literal_columns
from eddyline.adapter.session_role import ROLE_SETTINGS, SessionRole
from eddyline.adapter.setting_values import isolation_level, quoted_name, shown_name
from eddyline.adapter.settings import CLUSTER, Settings
from eddyline.adapter.system_settings import SystemSettings
from eddyline.adapter.transaction import Transaction
from eddyline.errors import make_error
from eddyline.expr.ir import LiteralValue
from eddyline.repr.types import TEXT, SqlType
from eddyline.sql import statements as st
from eddyline.sql.cluster_statements import ClusterStatement, ShowReplica

__all__ = ["REPLICA_COLUMNS", "literal_result", "same_kind", "set_transaction", "setting_statement"]

_OF_CLUSTERS = get_args(ClusterStatement)
#: of SHOW CLUSTER REPLICA; all are text
REPLICA_COLUMNS = ("name", "setting", "source")


def setting_statement(
    engine: Engine, settings: Settings, role: SessionRole, transaction: Transaction | None, statement: st.Statement
) -> Outcome | None:
    """What a statement about settings does; None for any other.  42501 and as the settings themselves."""
    match statement:
        case st.Set() | st.Reset() if statement.name in ROLE_SETTINGS:
            return role.become(statement, in_transaction=transaction is not None)
        case st.SetTransaction():
            return set_transaction(settings, transaction, statement)
        case st.Set():
            return _set_setting(settings, transaction, statement)
        case st.Reset():
            if statement.name is None:
                settings.reset(None)
            else:
                _set_setting(settings, transaction, st.Set(statement.name, None))
            return Outcome("RESET")
        case st.Show():
            return _show_setting(engine.system, settings, transaction, statement.name)
        case ShowReplica():
            cluster, replica = named_replica(engine.catalog.snapshot(), statement.name)
            return _show_replica(engine.cluster(cluster.id).replica(replica.id).shown())
        case st.AlterSystem():
            _check_alone(transaction, "ALTER SYSTEM")
            role.authorize(statement)
            return _alter_system(engine, settings, statement)
        case _ if isinstance(statement, _OF_CLUSTERS):
            _check_alone(transaction, tag_of(statement))
            if settings.in_force.read_only:
                raise make_error("25006", f"cannot execute {tag_of(statement)} in a read-only transaction")
            return define_clusters(engine, role.named(statement), role.search_path, role.acting)
        case _:
            return None


def _alter_system(engine: Engine, settings: Settings, statement: st.AlterSystem) -> Outcome:
    name, values = statement.name, statement.values
    if name is not None and name in settings and name not in engine.system:
        hint = "Use ALTER DATABASE postgres SET cluster." if name == CLUSTER else None
        raise make_error("55P02", f'parameter "{name}" cannot be changed', hint=hint)
    if name == "search_path" and values is not None:
        values = tuple(map(quoted_name, values))
    return Outcome("ALTER SYSTEM", notices=engine.alter_system(name, values))


def _check_alone(transaction: Transaction | None, what: str) -> None:
    if transaction is not None and not transaction.implicit:
        raise make_error("25001", f"{what} cannot run inside a transaction block")


def _set_setting(settings: Settings, transaction: Transaction | None, statement: st.Set) -> Outcome:
    """42704, 55P02, 22023 as ``Settings.set``; 25001 where a transaction has begun to read."""
    value = settings.checked(statement.name, statement.values)
    match statement.name:
        case "transaction_read_only":
            chosen = value if statement.values is not None else settings.get("default_transaction_read_only")
            return set_transaction(settings, transaction, st.SetTransaction(None, chosen == "on", session=False))
        case "transaction_isolation" if transaction is not None:
            level = value if statement.values is not None else settings.in_force.isolation
            return set_transaction(settings, transaction, st.SetTransaction(level, None, session=False))
    if statement.local and transaction is None:
        return Outcome("SET", notices=(no_transaction_block("SET LOCAL"),))
    settings.set(statement.name, statement.values, local=statement.local)
    return Outcome("SET")


def set_transaction(settings: Settings, transaction: Transaction | None, statement: st.SetTransaction) -> Outcome:
    """25001 where the transaction has begun to read."""
    if statement.session:
        if statement.isolation is not None:
            settings.set("transaction_isolation", (statement.isolation,), local=False)
        if statement.read_only is not None:
            settings.set("default_transaction_read_only", ("on" if statement.read_only else "off",), local=False)
        return Outcome("SET")
    if transaction is None:
        return Outcome("SET", notices=(no_transaction_block("SET TRANSACTION"),))
    late = transaction.newest is not None
    if late and (statement.isolation is not None or statement.read_only is False):
        raise make_error("25001", "SET TRANSACTION must be called before any query")
    if statement.isolation is not None:
        transaction.isolation = isolation_level(statement.isolation)
    if statement.read_only is not None:
        transaction.read_only = statement.read_only
    return Outcome("SET")


def same_kind(transaction: Transaction) -> st.Begin:
    """What AND CHAIN begins."""
    return st.Begin(isolation=transaction.isolation, read_only=transaction.read_only)


def _show_setting(system: SystemSettings, settings: Settings, transaction: Transaction | None, name: str) -> Outcome:
    """One setting's value, or all of them; 42704 for an unknown one."""
    if name == "all":
        names: tuple[str, ...] = ("name", "setting")
        rows: list[tuple[str, ...]] = [(setting.name, setting.value) for setting in settings.shown()]
    elif name in system and name not in settings:
        names, rows = (name,), [(system.show(name),)]
    else:
        names, rows = (shown_name(name),), [(_value(settings, transaction, name),)]
    return Outcome("SHOW", literal_result(names, (TEXT,) * len(names), rows))


def _show_replica(rows: Sequence[tuple[str, str, str]]) -> Outcome:
    """What holds for the replica."""
    return Outcome("SHOW", literal_result(REPLICA_COLUMNS, (TEXT,) * len(REPLICA_COLUMNS), rows))


def _value(settings: Settings, transaction: Transaction | None, name: str) -> str:
    value = settings.get(name)
    if transaction is None:
        return value
    match name.lower():
        case "transaction_isolation":
            return transaction.isolation
        case "transaction_read_only":
            return "on" if transaction.read_only else "off"
        case _:
            return value


def literal_result(names: Sequence[str], types: Sequence[SqlType], rows: Sequence[Sequence[LiteralValue]]) -> ResultSet:
    """A result of literal rows."""
    return ResultSet(tuple(names), tuple(types), literal_columns(rows, types), len(rows))
