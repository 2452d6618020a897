"""The responses of the OTLP endpoint, in the request's encoding: an export response, or a `google.rpc.Status`."""

import json
from typing import Literal

Encoding = Literal["protobuf", "json"]
CONTENT_TYPES: dict[Encoding, bytes] = {"protobuf": b"application/x-protobuf", "json": b"application/json"}
_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 413: 3, 429: 8, 503: 14}  # HTTP status → google.rpc.Code
_UNKNOWN = 2


def accepted(encoding: Encoding, rejected: int, message: str, *, field: str) -> bytes:
    """Return the export response; with a message, which says what was left out and need not be sent again."""
    if not rejected and not message:
        return b"{}" if encoding == "json" else b""
    if encoding == "json":
        partial = {field: str(rejected)} if rejected else {}
        return json.dumps({"partialSuccess": partial | {"errorMessage": message}}).encode()
    count = b"\x08" + _varint(rejected) if rejected else b""
    return _field(1, count + _field(2, message.encode("utf-8", "replace")))


def refused(encoding: Encoding, status: int, message: str) -> bytes:
    """Return why a request was refused."""
    code = _CODES.get(status, _UNKNOWN)
    if encoding == "json":
        return json.dumps({"code": code, "message": message}).encode()
    return b"\x08" + _varint(code) + _field(2, message.encode("utf-8", "replace"))


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])
