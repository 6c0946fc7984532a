"""SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side, without channel binding.

What is kept of a password is a verifier, in the form in which PostgreSQL keeps it too:
``SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey``, salt and keys in base64.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import stringprep
import unicodedata
from dataclasses import dataclass
from typing import Final

from eddyline.errors import make_error

__all__ = ["MECHANISM", "ScramExchange", "Verifier"]

MECHANISM: Final = "SCRAM-SHA-256"
_ITERATIONS: Final = 4096
_SALT_BYTES: Final = 16
_KEPT: Final = re.compile(r"SCRAM-SHA-256\$(\d+):([^$]+)\$([^:]+):(.+)")
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
        except binascii.Error:
            return None
        return Verifier(int(match[1]), salt, stored, server)

    @staticmethod
    def of_nobody(user: str, secret: bytes) -> Verifier:
        """For a user that there is not: the same salt each time, so that nobody can tell; no password fits."""
        salt = _hmac(secret, user.encode())[:_SALT_BYTES]
        return Verifier(_ITERATIONS, salt, os.urandom(32), os.urandom(32))

    def __str__(self) -> str:
        salt, stored, server = (
            base64.b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"

    def __repr__(self) -> str:
        return "Verifier(…)"  # a secret: it lets its holder pose as the server


class ScramExchange:
    """One attempt: ``first`` answers the client's first message, ``final`` its second.

    08P01 for messages that are none of SCRAM's, 28P01 where the password is wrong.
    """

    def __init__(self, user: str, verifier: Verifier) -> None:
        self._user = user
        self._verifier = verifier
        self._nonce = ""
        self._bare = ""
        self._server_first = ""
        self._header = b""

    def first(self, data: bytes) -> bytes:
        text = _ascii(data)
        match = re.fullmatch(r"(n|y|p=[^,]*),(a=[^,]*)?,((?:m=[^,]*,)?n=[^,]*,r=([!-+\--~]+)(?:,.*)?)", text)
        if match is None:
            raise _malformed()
        if match[1].startswith("p="):
            raise make_error("08P01", "malformed SCRAM message", detail="Channel binding was not offered.")
        if match[3].startswith("m="):
            raise make_error("0A000", "client requires an unsupported SCRAM extension")
        self._header = f"{match[1]},{match[2] or ''},".encode()
        self._bare = match[3]
        self._nonce = match[4] + base64.b64encode(os.urandom(18)).decode()
        salt = base64.b64encode(self._verifier.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        return self._server_first.encode()

    def final(self, data: bytes) -> bytes:
        text = _ascii(data)
        match = re.fullmatch(r"(c=([^,]*),r=([^,]*)(?:,.*)?),p=([^,]*)", text)
        if match is None:
            raise _malformed()
        try:
            binding, proof = base64.b64decode(match[2], validate=True), base64.b64decode(match[4], validate=True)
        except binascii.Error as problem:
            raise _malformed() from problem
        if binding != self._header or not hmac.compare_digest(match[3], self._nonce) or len(proof) != 32:
            raise _malformed()
        signed = f"{self._bare},{self._server_first},{match[1]}".encode()
        signature = _hmac(self._verifier.stored_key, signed)
        key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(key).digest(), self._verifier.stored_key):
            raise make_error("28P01", f'password authentication failed for user "{self._user}"')
        return b"v=" + base64.b64encode(_hmac(self._verifier.server_key, signed))


def _ascii(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise _malformed() from problem


def _malformed() -> Exception:
    return make_error("08P01", "malformed SCRAM message")
