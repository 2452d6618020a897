"""Signed notes and checkpoints as C2SP writes them (signed-note, tlog-checkpoint, tlog-cosignature). No database."""

import base64
import binascii
import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey

from conversations.core.errors import Invalid

MAX_NOTE = 256 << 10  # characters
MAX_SIGNATURES = 64
_DASH = "\N{EM DASH} "

Algorithm = Literal[1, 4, 6]  # types of signatures
ED25519: Literal[1] = 1
ED25519_WITNESS: Literal[4] = 4
MLDSA44: Literal[6] = 6


class Signature(NamedTuple):
    """One line below a note: whose, by which key, and what it is."""

    name: str
    key_id: bytes
    signature: bytes

    @property
    def line(self) -> str:
        """The line as it stands in a note."""
        return f"{_DASH}{self.name} {base64.b64encode(self.key_id + self.signature).decode()}\n"


class SignedNote(NamedTuple):
    """A text, which ends with a newline, and its signatures, which nobody has checked yet."""

    text: str
    signatures: tuple[Signature, ...]

    def __str__(self) -> str:
        return f"{self.text}\n{''.join(signature.line for signature in self.signatures)}"


class TreeHead(NamedTuple):
    """A tree's head: whose tree, how many leaves, the root over them."""

    origin: str
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """What is signed."""
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode()}\n"


@dataclass(frozen=True)
class VerifierKey:
    """A public key under a name, for one type of signatures."""

    name: str
    algorithm: Algorithm
    public: bytes

    @property
    def key_id(self) -> bytes:
        """The four bytes by which a signature names its key: of the SHA-256 over name, newline, type and public key."""
        return sha256(self.name.encode() + b"\n" + bytes([self.algorithm]) + self.public).digest()[:4]

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{base64.b64encode(bytes([self.algorithm]) + self.public).decode()}"

    def verify(self, text: str, signature: bytes) -> bool:
        """Return whether a signature under this key is of this note's text."""
        try:
            if self.algorithm == ED25519:
                Ed25519PublicKey.from_public_bytes(self.public).verify(signature, text.encode())
            elif self.algorithm == ED25519_WITNESS:
                (at,) = struct.unpack(">Q", signature[:8])
                message = f"cosignature/v1\ntime {at}\n{text}".encode()
                Ed25519PublicKey.from_public_bytes(self.public).verify(signature[8:], message)
            else:
                (at,) = struct.unpack(">Q", signature[:8])
                message = subtree_message(self.name, at, parse_checkpoint(text))
                MLDSA44PublicKey.from_public_bytes(self.public).verify(signature[8:], message)
        except (InvalidSignature, Invalid, ValueError, struct.error):
            return False
        return True


def subtree_message(name: str, at: int, checkpoint: TreeHead) -> bytes:
    """Return what ML-DSA-44 signs of a checkpoint: `cosigned_message` of tlog-cosignature."""
    signer, origin = name.encode(), checkpoint.origin.encode()
    return b"".join((
        b"subtree/v1\n\0", bytes([len(signer)]), signer, struct.pack(">Q", at), bytes([len(origin)]), origin,
        struct.pack(">QQ", 0, checkpoint.size), checkpoint.root,
    ))  # fmt: skip


def parse_key(text: str) -> VerifierKey:
    """Read `name+id+base64`. Raises `Invalid`."""
    name, plus, rest = text.strip().partition("+")
    stated, _, encoded = rest.partition("+")
    try:
        material = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        material = b""
    lengths = {ED25519: 32, ED25519_WITNESS: 32, MLDSA44: 1312}
    if not (plus and _is_name(name) and material and len(material) == 1 + lengths.get(material[0], -1)):
        raise Invalid("must be a verifier key: NAME+ID+KEY, of Ed25519 (1, 4) or ML-DSA-44 (6)")
    key = VerifierKey(name, material[0], material[1:])  # type: ignore[arg-type]  # its length says that it is one
    if stated.lower() != key.key_id.hex():
        raise Invalid(f"must be a verifier key whose id matches its key, {key.key_id.hex()}; got {stated[:20]!r}")
    return key


def parse(text: str) -> SignedNote:
    """Read a note. Raises `Invalid`; says nothing about who signed it."""
    body, blank, below = text.rpartition("\n\n")
    if len(text) > MAX_NOTE or not blank or not below.endswith("\n") or any(c < " " and c != "\n" for c in text):
        raise Invalid("must be a signed note: text, an empty line, and signature lines")
    lines = below.removesuffix("\n").split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise Invalid(f"must have at most {MAX_SIGNATURES} signatures; got {len(lines)}")
    return SignedNote(body + "\n", tuple(map(_signature, lines)))


def parse_checkpoint(text: str) -> TreeHead:
    """Read the text of a checkpoint. Raises `Invalid`."""
    lines = text.removesuffix("\n").split("\n")
    try:
        origin, size, root = lines[:3]
        checkpoint = TreeHead(origin, int(size), base64.b64decode(root, validate=True))
    except (ValueError, binascii.Error):
        checkpoint = TreeHead("", 0, b"")
    is_whole = bool(checkpoint.origin) and len(checkpoint.root) == 32 and checkpoint.size >= 0
    if not (is_whole and text.startswith(checkpoint.text) and all(lines)):
        raise Invalid("must be a checkpoint: the origin, the size and the root of a tree, each on its own line")
    return checkpoint


def verified(note: SignedNote, keys: Iterable[VerifierKey]) -> list[VerifierKey]:
    """Return the keys that signed a note. Raises `Invalid` where a signature by one of them is wrong; signatures of
    others count nothing."""
    by_id = {(key.name, key.key_id): key for key in keys}
    good = []
    for signature in note.signatures:
        if key := by_id.get((signature.name, signature.key_id)):
            if not key.verify(note.text, signature.signature):
                raise Invalid(f"the signature of {signature.name} is invalid: the text was changed, or it is forged")
            good.append(key)
    return good


def now_s() -> int:
    """Return the time as signatures have it."""
    return int(time.time())


def join(text: str, signatures: Sequence[Signature]) -> str:
    """Write a note."""
    return str(SignedNote(text, tuple(signatures)))


def shortened(note: str) -> str:
    """Return a checkpoint's note with its first signature alone, that of Ed25519: the other one is 3 kB."""
    whole = parse(note)
    return join(whole.text, whole.signatures[:1])


def parse_signature_lines(text: str) -> list[Signature]:
    """Read lines of signatures, as a witness answers them. Raises `Invalid`."""
    lines = [line for line in text.split("\n") if line]
    if not lines or len(lines) > MAX_SIGNATURES:
        raise Invalid("must be signature lines")
    return [_signature(line) for line in lines]


def _signature(line: str) -> Signature:
    name, _, encoded = line.removeprefix(_DASH).partition(" ")
    try:
        value = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        value = b""
    if not line.startswith(_DASH) or not _is_name(name) or len(value) < 5:
        raise Invalid("must be a signature line: — NAME BASE64")
    return Signature(name, value[:4], value[4:])


def _is_name(name: str) -> bool:
    return bool(name) and "+" not in name and not any(c.isspace() for c in name) and len(name.encode()) < 256
