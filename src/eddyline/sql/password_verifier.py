"""What is kept of a password: a verifier of SCRAM-SHA-256 (RFC 5803), in the form in which PostgreSQL keeps it too.

``SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey``, salt and keys in base64.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import stringprep
import unicodedata
from dataclasses import dataclass
from typing import Final

__all__ = ["MECHANISM", "Verifier"]

MECHANISM: Final = "SCRAM-SHA-256"
_ITERATIONS: Final = 4096
_SALT_BYTES: Final = 16
_KEY_BYTES: Final = 32
_KEPT: Final = re.compile(r"SCRAM-SHA-256\$(\d{1,9}):([^$]+)\$([^:]+):(.+)", re.ASCII)
#: tables of characters that a password may not hold (RFC 4013); one that does is used as it is
_PROHIBITED: Final = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def _hmac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _normalized(password: str) -> str:
    """SASLprep; a password that it refuses stays as it is, as clients do."""
    mapped = "".join(" " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c))
    prepared = unicodedata.normalize("NFKC", mapped)
    if not prepared or any(table(c) for c in prepared for table in _PROHIBITED):
        return password
    rtl = any(map(stringprep.in_table_d1, prepared))
    if rtl and any(map(stringprep.in_table_d2, prepared)):
        return password
    if rtl and not (stringprep.in_table_d1(prepared[0]) and stringprep.in_table_d1(prepared[-1])):
        return password
    return prepared


@dataclass(frozen=True, slots=True)
class Verifier:
    """What tells whether somebody knows a password."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    @staticmethod
    def of_password(password: str, *, salt: bytes | None = None, iterations: int = _ITERATIONS) -> Verifier:
        salt = os.urandom(_SALT_BYTES) if salt is None else salt
        salted = hashlib.pbkdf2_hmac("sha256", _normalized(password).encode(), salt, iterations)
        stored = hashlib.sha256(_hmac(salted, b"Client Key")).digest()
        return Verifier(iterations, salt, stored, _hmac(salted, b"Server Key"))

    @staticmethod
    def of_text(text: str) -> Verifier | None:
        """The verifier that ``text`` writes out, None if it is not one."""
        match = _KEPT.fullmatch(text)
        if match is None:
            return None
        try:
            salt, stored, server = (base64.b64decode(part, validate=True) for part in match.groups()[1:])
        except ValueError:
            return None
        if int(match[1]) < 1 or len(stored) != _KEY_BYTES or len(server) != _KEY_BYTES:
            return None
        return Verifier(int(match[1]), salt, stored, server)

    @staticmethod
    def of_nobody(user: str, secret: bytes) -> Verifier:
        """For a user that there is not: the same salt each time, so that nobody can tell; no password fits."""
        salt = _hmac(secret, user.encode())[:_SALT_BYTES]
        return Verifier(_ITERATIONS, salt, os.urandom(_KEY_BYTES), os.urandom(_KEY_BYTES))

    def __str__(self) -> str:
        salt, stored, server = (
            base64.b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"

    def __repr__(self) -> str:
        return "Verifier(…)"  # a secret: it lets its holder pose as the server
