"""The server's log: one line a record, as text or as JSON, with the statement that it is about."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import TextIO

__all__ = ["configure_log"]

#: what records may say of themselves, in the order in which it is shown
_FIELDS = ("process", "user", "database", "address", "statement", "sqlstate", "reason")
#: what needs no quotes in a line of text; whatever else clients call themselves cannot look like another field
_PLAIN = re.compile(r"[\w.:@\[\]-]+")
_SHOWN_CHARS = 100


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
        told = "".join(f" {name}={_plain(value)}" for name, value in _told(record).items())
        text = f"{when} {record.levelname} {record.getMessage()}{told}"
        if record.exc_info:
            text += " | " + self.formatException(record.exc_info)
        return " | ".join(line.strip() for line in text.splitlines() if line.strip())


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **_told(record),
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False, default=str)


def _told(record: logging.LogRecord) -> dict[str, object]:
    told = record.__dict__.get("told")
    return {} if not isinstance(told, dict) else {name: told[name] for name in _FIELDS if name in told}


def _plain(value: object) -> str:
    text = str(value)[:_SHOWN_CHARS]
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def configure_log(stream: TextIO, *, json_lines: bool) -> None:
    """Sends what the process has to say to ``stream``."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Json() if json_lines else _Text())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
