"""SCRAM-SHA-256 (RFC 5802, RFC 7677), the server's side, without channel binding."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re

from eddyline.errors import make_error
from eddyline.sql.password_verifier import Verifier

__all__ = ["ScramExchange"]


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
        except ValueError as problem:  # of a text that is not ASCII, too
            raise _malformed() from problem
        if binding != self._header or not hmac.compare_digest(match[3], self._nonce) or len(proof) != 32:
            raise _malformed()
        signed = f"{self._bare},{self._server_first},{match[1]}".encode()
        signature = hmac.digest(self._verifier.stored_key, signed, "sha256")
        key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(key).digest(), self._verifier.stored_key):
            raise make_error("28P01", f'password authentication failed for user "{self._user}"')
        return b"v=" + base64.b64encode(hmac.digest(self._verifier.server_key, signed, "sha256"))


def _ascii(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise _malformed() from problem


def _malformed() -> Exception:
    return make_error("08P01", "malformed SCRAM message")
