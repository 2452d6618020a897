"""Time stamps of checkpoints (RFC 3161): what is asked, and whether the answer is about it. Called by `witnesses`.

Who signed a stamp is not checked here: that takes the authority's certificates, and `openssl ts -verify` does it.
"""

import secrets
from hashlib import sha256
from typing import NamedTuple

from conversations.core.errors import Invalid

SHA256 = bytes.fromhex("300d06096086480165030402010500")  # its AlgorithmIdentifier
SHA256_ID = bytes.fromhex("0609608648016503040201")
SIGNED_DATA = bytes.fromhex("06092a864886f70d010702")
TIME_STAMP = bytes.fromhex("060b2a864886f70d0109100104")
INTEGER, OCTETS, SEQUENCE, TIME = 0x02, 0x04, 0x30, 0x18
GRANTED = (0, 1)


class TimeStamp(NamedTuple):
    """What a stamp says beside its time: of which SHA-256, for which request."""

    digest: bytes
    nonce: int | None


class Element(NamedTuple):
    """One element of DER: its tag, its content, and all of its bytes."""

    tag: int
    content: bytes
    whole: bytes


def new_nonce() -> int:
    """Return a number that ties an answer to its request."""
    return secrets.randbits(63) | 1 << 62


def query(text: str, nonce: int) -> bytes:
    """Return the request for a stamp of a text, the certificate of whoever stamps included."""
    imprint = _der(SEQUENCE, SHA256 + _der(OCTETS, sha256(text.encode()).digest()))
    number = nonce.to_bytes(8, "big")
    return _der(SEQUENCE, b"\x02\x01\x01" + imprint + _der(INTEGER, number) + b"\x01\x01\xff")


def token_of(answer: bytes, text: str, nonce: int) -> bytes:
    """Return the token of an answer. Raises `Invalid` where it was refused, or is not of this text and request."""
    whole = _only(answer, SEQUENCE).content
    status = _only(whole, SEQUENCE)
    if int.from_bytes(_only(status.content, INTEGER).content, "big") not in GRANTED:
        raise Invalid("the time stamp was refused")
    token = whole[len(status.whole) :]
    stamp = read(token)
    if stamp.nonce != nonce:
        raise Invalid("the time stamp belongs to another request")
    if stamp.digest != sha256(text.encode()).digest():
        raise Invalid("the time stamp is for different data")
    return token


def read(token: bytes) -> TimeStamp:
    """Read what a token says. Raises `Invalid`."""
    kind, signed = elements(_only(token, SEQUENCE).content)[:2]
    if kind.whole != SIGNED_DATA:
        raise Invalid("must be a time stamp token: CMS signed data")
    parts = elements(_only(signed.content, SEQUENCE).content)
    kind, stamped = elements(parts[min(2, len(parts) - 1)].content)[:2]
    if kind.whole != TIME_STAMP:
        raise Invalid("must be a time stamp token: it contains something else")
    facts = elements(_only(_only(stamped.content, OCTETS).content, SEQUENCE).content)
    if len(facts) < 5 or facts[4].tag != TIME:
        raise Invalid("must be a time stamp token: its contents are missing")
    algorithm, digest = elements(facts[2].content)[:2]
    if not algorithm.content.startswith(SHA256_ID):
        raise Invalid("must be a time stamp of a SHA-256")
    nonces = [int.from_bytes(fact.content, "big") for fact in facts[5:] if fact.tag == INTEGER]
    return TimeStamp(digest.content, nonces[0] if nonces else None)


def elements(data: bytes) -> list[Element]:
    """Read elements of DER one after the other. Raises `Invalid` for fewer than two."""
    read_so_far, at = [], 0
    while at < len(data):
        element = _element(data, at)
        read_so_far.append(element)
        at += len(element.whole)
    if len(read_so_far) < 2:
        raise Invalid("must be DER with several elements")
    return read_so_far


def _element(data: bytes, at: int) -> Element:
    try:
        tag, size, start = data[at], data[at + 1], at + 2
        if size & 0x80:
            start += size & 0x7F
            size = int.from_bytes(data[at + 2 : start], "big")
    except IndexError:
        raise Invalid("must be DER; it is cut off") from None
    if start + size > len(data):
        raise Invalid("must be DER; it is cut off")
    return Element(tag, data[start : start + size], data[at : start + size])


def _only(data: bytes, tag: int) -> Element:
    element = _element(data, 0)
    if element.tag != tag:
        raise Invalid(f"must be DER with the tag {tag:#x}; got {element.tag:#x}")
    return element


def _der(tag: int, content: bytes) -> bytes:
    """Write an element of less than 128 bytes."""
    return bytes([tag, len(content)]) + content
