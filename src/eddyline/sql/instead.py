"""What to do instead of what PostgreSQL has and we don't, for the hints of its refusals."""

from __future__ import annotations

from typing import Final

from eddyline.errors import NotSupportedError

__all__ = ["INSTEAD", "say_instead"]

_SUFFIX: Final = " is not supported"
_VIOLATIONS: Final = (
    "Make a view of the rows that break the rule, and CREATE INDEX on it: it is kept fresh, and can be subscribed to."
)
_SAME_EACH_TIME: Final = "Give the value as a parameter: what a statement computes is the same each time."
_REACT: Final = "SUBSCRIBE to a table or view tells a program of its changes."
_SERIALIZABLE: Final = "Leave it out: what a transaction has read is checked at its COMMIT; after 40001 try again."
_TEXT: Final = "Use text."
INSTEAD: Final = {
    "GENERATED … STORED": "Compute the column in a view over the table.",
    **dict.fromkeys(
        ("a CHECK constraint", "a UNIQUE constraint", "a FOREIGN KEY constraint", "an EXCLUDE constraint"), _VIOLATIONS
    ),
    "type jsonb": "Keep it as text, or its fields as columns.",
    **dict.fromkeys((f"type {name}" for name in ("xml", "inet", "cidr", "macaddr", "name")), _TEXT),
    "type money": "Use numeric.",
    "type oid": "Use bigint.",
    "type timetz": "Use timestamptz.",
    "LIKE in CREATE TABLE": "SHOW CREATE TABLE shows the columns, to be written here.",
    **dict.fromkeys(("PARTITION BY", "PARTITION OF"), "Leave it out: a table may be of any size."),
    "INHERITS": "Make a view with UNION ALL over the tables.",
    "a temporary relation": "Create an ordinary one, in a schema of its own, and drop that when you are done.",
    "an unlogged table": "Leave it out; SET synchronous_commit = off lets commits go ahead of the disk.",
    "SELECT INTO": "Use CREATE TABLE … AS SELECT ….",
    "a partial index": "Index a view that has the condition in its WHERE.",
    "ALTER … RENAME COLUMN": "Make a view with the new name, or another table, and INSERT … SELECT into it.",
    "CREATE FUNCTION": "Write the expression in a view.",
    "DO": "Send the statements one after the other.",
    "CREATE TRIGGER": _REACT,
    "CREATE RULE": _REACT,
    "LISTEN": _REACT,
    "NOTIFY": _REACT,
    "CREATE TYPE … AS ENUM": _TEXT,
    "CREATE DOMAIN": "Use the type itself.",
    **dict.fromkeys(("LOCK TABLE", "FOR UPDATE/SHARE"), _SERIALIZABLE),
    "MERGE": "Use INSERT … ON CONFLICT … DO UPDATE, and DELETE.",
    "CREATE DATABASE": "There is one database, whatever clients call it; use CREATE SCHEMA.",
    "DEFERRABLE": "Leave it out: a transaction that only reads is never refused at its COMMIT.",
    **dict.fromkeys(
        ("a recursive query in a view", "a recursive query in a subscription"),
        "Ask it where it is read: WITH RECURSIVE may stand in any SELECT, over views too, and in INSERT … SELECT.",
    ),
    "SEARCH": "Carry what to sort by in a column (an array of keys: path || id), and ORDER BY it.",
    "CYCLE": "Carry the keys in an array, and go on WHERE NOT id = ANY (path); or leave the path out and use UNION.",
    **dict.fromkeys(
        (f"function {name}" for name in ("random", "gen_random_uuid", "clock_timestamp", "timeofday")), _SAME_EACH_TIME
    ),
    "function to_char": "Format it in the program; there are extract, date_trunc, lpad and ||.",
    "function set_config": "Use SET.",
    "function pg_sleep": "Wait in the program.",
    **dict.fromkeys(
        (f"function {name}" for name in ("pg_cancel_backend", "pg_terminate_backend")),
        "They do something: call them as items of the outermost list of a SELECT, SELECT pg_cancel_backend(pid) FROM "
        "pg_stat_activity WHERE ….",
    ),
    **dict.fromkeys(
        (
            f"function {name}"
            for name in (
                "pg_advisory_lock",
                "pg_advisory_xact_lock",
                "pg_try_advisory_lock",
                "pg_try_advisory_xact_lock",
            )
        ),
        "Write to a row that all who take turns write to, and try again after 40001.",
    ),
}


def say_instead(refusal: NotSupportedError) -> None:
    """Gives it the hint of what it refuses, if it has none yet and there is one."""
    if refusal.hint is None:
        refusal.hint = INSTEAD.get(refusal.message.removesuffix(_SUFFIX))
