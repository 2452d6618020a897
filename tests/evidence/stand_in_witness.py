"""A witness that follows tlog-witness: it signs a checkpoint whose proof shows that the log only grew. Over HTTP."""

import base64
from contextlib import contextmanager

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from conversations.evidence import merkle, notes
from conversations.evidence.notes import ED25519_WITNESS, Signature, VerifierKey
from tests.support import merkle_proofs
from tests.support.answering import Answer, answering

NAME = "witness.example/w1"


class StandInWitness:
    """Its key, and the newest checkpoint it signed of one log."""

    def __init__(self, log_keys):
        self.log_keys = log_keys
        self._private = Ed25519PrivateKey.generate()
        self.key = VerifierKey(NAME, ED25519_WITNESS, self._private.public_key().public_bytes_raw())
        self.size, self.root, self.answers = 0, merkle.EMPTY, []

    def answer(self, body):
        """Return the status and the words for a request's body."""
        head, _, text = body.decode().partition("\n\n")
        first, *lines = head.split("\n")
        old, proof = int(first.removeprefix("old ")), [base64.b64decode(line, validate=True) for line in lines]
        note = notes.parse(text)
        checkpoint = notes.parse_checkpoint(note.text)
        if checkpoint.origin != self.log_keys[0].name:
            return 404, ""
        if not notes.verified(note, self.log_keys):
            return 403, ""
        if old > checkpoint.size:
            return 400, ""
        if old != self.size or (old == checkpoint.size and checkpoint.root != self.root):
            return 409, f"{self.size}\n"
        if not merkle_proofs.is_consistent(old, self.root, checkpoint.size, checkpoint.root, proof):
            return 422, ""
        self.size, self.root = checkpoint.size, checkpoint.root
        at = notes.now_s()
        signature = self._private.sign(f"cosignature/v1\ntime {at}\n{note.text}".encode())
        return 200, Signature(NAME, self.key.key_id, at.to_bytes(8, "big") + signature).line


@contextmanager
def serving(witness):
    """Serve it on the loopback; yield its URL."""

    def answer(request):
        status, words = witness.answer(request.body) if request.path == "/add-checkpoint" else (404, "")
        witness.answers.append(status)
        return Answer(status, words.encode())

    with answering(answer) as address:
        yield address
