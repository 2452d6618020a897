"""The keys that sign checkpoints: one file, outside the database and of its backups. Made at the first start."""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PrivateKey

from conversations.core import private_file
from conversations.core.errors import Unavailable
from conversations.evidence import notes
from conversations.evidence.notes import ED25519, MLDSA44, Signature, TreeHead, VerifierKey


@dataclass(frozen=True)
class SigningKey:
    """An origin, which is the name of the log, and the seeds of its two keys."""

    origin: str
    ed25519: bytes
    mldsa44: bytes

    @property
    def verifier_keys(self) -> list[VerifierKey]:
        """The public keys, to be handed to whoever shall check."""
        public = self._ed25519.public_key().public_bytes_raw()
        return [
            VerifierKey(self.origin, ED25519, public),
            VerifierKey(self.origin, MLDSA44, self._mldsa44.public_key().public_bytes_raw()),
        ]

    def sign(self, checkpoint: TreeHead) -> list[Signature]:
        """Sign a checkpoint with both keys, Ed25519 first."""
        at, (first, second) = notes.now_s(), self.verifier_keys
        message = notes.subtree_message(self.origin, at, checkpoint)
        return [
            Signature(self.origin, first.key_id, self._ed25519.sign(checkpoint.text.encode())),
            Signature(self.origin, second.key_id, at.to_bytes(8, "big") + self._mldsa44.sign(message)),
        ]

    def sign_text(self, text: str) -> bytes:
        """Sign another note than a checkpoint with Ed25519: its first line is not the origin."""
        if text.startswith(f"{self.origin}\n"):
            raise ValueError("a checkpoint is signed by `sign`")
        return self._ed25519.sign(text.encode())

    @property
    def _ed25519(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.ed25519)

    @property
    def _mldsa44(self) -> MLDSA44PrivateKey:
        return MLDSA44PrivateKey.from_seed_bytes(self.mldsa44)


def load(path: Path) -> SigningKey | None:
    """Read the keys; None where there are none. Raises `Unavailable` for a file that holds none."""
    try:
        fields = json.loads(path.read_text())
        return SigningKey(fields["origin"], bytes.fromhex(fields["ed25519"]), bytes.fromhex(fields["ml-dsa-44"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unavailable(f"{path} must contain the keys that sign checkpoints: {error}", code="signing_key") from None


def make(path: Path, origin: str = "") -> SigningKey:
    """Make the keys, for the owner's eyes alone. Where somebody else made them meanwhile, theirs count."""
    fields = {
        "origin": origin or f"switchboard/{secrets.token_hex(8)}",
        "ed25519": secrets.token_hex(32),
        "ml-dsa-44": secrets.token_hex(32),
    }
    private_file.create(path, json.dumps(fields, indent=1).encode())
    key = load(path)
    if key is None:
        raise Unavailable(f"{path} was removed while it was being created", code="signing_key")
    return key
