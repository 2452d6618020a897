"""Who else keeps checkpoints: a file elsewhere, a command, a witness by its URL (tlog-witness), who stamps the time.

A file gets a line of JSON for each checkpoint, a command gets the note on its standard input. A witness at a URL is
given a proof that the tree only grew since it last signed, and answers with its signature. A time stamping authority
(RFC 3161) is given the checkpoint's SHA-256 and answers with a token.
"""

import base64
import json
import logging
import os
import shlex
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from asgiref.sync import async_to_sync
from django.db import DatabaseError

from conversations.core import http_post
from conversations.core.errors import Conflict, SwitchboardError
from conversations.core.http_post import Answer, PostFailed
from conversations.core.outbound_address import AddressRefused, AllowList
from conversations.core.write_transaction import write_transaction
from conversations.evidence import checkpoints, notes, timestamps, tree
from conversations.evidence.notes import SignedNote, TreeHead, VerifierKey
from conversations.evidence.witness_settings import Witness
from conversations.models import Checkpoint as CheckpointRow
from conversations.models import Witnessed

logger = logging.getLogger(__name__)

TIMEOUT_S = 15.0
MAX_END = 1 << 20  # bytes of a file that are read; a checkpoint has less than 10 KB
STAMP = "rfc3161 "  # before a token, where signatures are stored


class Refused(SwitchboardError):
    """A witness did not take a checkpoint; the words are for the admin."""

    status, code = 502, "witness"


def submit_all(witnesses: Sequence[Witness], keys: Sequence[VerifierKey], allowed: AllowList) -> None:
    """Show the newest checkpoint to those who have not seen it; note what each one said."""
    newest = checkpoints.newest()
    if newest is None:
        return
    for witness in witnesses:
        row = Witnessed.objects.filter(witness=witness.name).first() or Witnessed(witness=witness.name)
        if row.size == newest.size and not row.problem:
            continue
        try:
            signatures = _submit(witness, newest, row.size, keys, allowed)
            row = Witnessed(witness.name, newest.size, time.time_ns() // 1000, signatures)
        except (SwitchboardError, OSError, ValueError, subprocess.SubprocessError) as error:
            row.problem = str(error)[:500] or type(error).__name__
        except DatabaseError:
            raise
        except Exception as error:  # whatever it is, the others see the checkpoint
            if row.problem != (problem := f"internal error: {error}"[:500]):
                logger.exception("%s was not shown the checkpoint", witness.name)
            row.problem = problem
        with write_transaction():
            row.save()


def _submit(witness: Witness, newest: CheckpointRow, seen: int, keys: Sequence[VerifierKey], allowed: AllowList) -> str:
    if witness.kind == "file":
        _append(Path(witness.place), newest)
        return ""
    if witness.kind == "command":
        words = shlex.split(witness.place)
        subprocess.run(words, input=newest.note.encode(), timeout=TIMEOUT_S, check=True, capture_output=True)
        return ""
    if witness.kind == "timestamp":
        return _stamped(witness.place, newest, allowed)
    return _cosigned(witness.place.rstrip("/"), newest, seen, keys, allowed)


def _append(path: Path, newest: CheckpointRow) -> None:
    line = json.dumps({"at": newest.at, "note": notes.shortened(newest.note)}, ensure_ascii=False) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cosigned(prefix: str, newest: CheckpointRow, seen: int, keys: Sequence[VerifierKey], allowed: AllowList) -> str:
    answer = _post(prefix, newest, seen, allowed)
    if answer.status == 409 and answer.body.strip().isdigit():  # it has seen another size than we remember
        theirs = int(answer.body)
        if theirs > newest.size:
            raise Refused(
                f"it has seen a tree of {theirs:,} leaves, this one has {newest.size:,}: the record is older than that"
            )
        answer = _post(prefix, newest, theirs, allowed)
    if answer.status != 200:
        words = {404: "it does not know this log", 403: "it does not know our keys", 422: "it refused the proof"}
        what = words.get(answer.status, "it refused")
        raise Refused(f"{what} (HTTP {answer.status})")
    lines = notes.parse_signature_lines(answer.body.decode("utf-8", "replace"))
    note = SignedNote(notes.parse(newest.note).text, tuple(lines))
    good = {(key.name, key.key_id) for key in notes.verified(note, keys)}
    if not good:
        raise Refused("it signed with none of the keys in SWITCHBOARD_WITNESS_KEYS")
    return "".join(line.line for line in lines if (line.name, line.key_id) in good)


def _stamped(url: str, newest: CheckpointRow, allowed: AllowList) -> str:
    """Ask a time stamping authority; return its token after a word that tells it from signatures."""
    nonce, text = timestamps.new_nonce(), notes.parse(newest.note).text
    answer = _sent(url, "application/timestamp-query", timestamps.query(text, nonce), allowed)
    if answer.status != 200:
        raise Refused(f"it refused (HTTP {answer.status})")
    return STAMP + base64.b64encode(timestamps.token_of(answer.body, text, nonce)).decode() + "\n"


def stamp_of(signatures: str) -> bytes:
    """Return the token of a time stamp, as it is stored; empty where this is none."""
    try:
        return base64.b64decode(signatures.removeprefix(STAMP)) if signatures.startswith(STAMP) else b""
    except ValueError:
        return b""


def _post(prefix: str, newest: CheckpointRow, old: int, allowed: AllowList) -> Answer:
    proof = tree.consistency(old, newest.size)
    lines = [f"old {old}", *(base64.b64encode(hash_).decode() for hash_ in proof), "", newest.note]
    return _sent(f"{prefix}/add-checkpoint", "text/plain", "\n".join(lines).encode(), allowed)


def _sent(url: str, kind: str, body: bytes, allowed: AllowList) -> Answer:
    send = async_to_sync(http_post.post)
    try:
        return send(url, {"Content-Type": kind}, body, allowed=allowed, timeout_s=TIMEOUT_S, reads_body=True)
    except (PostFailed, AddressRefused) as error:
        raise Refused(str(error)) from None


def newest_in(path: Path) -> SignedNote:
    """Read the newest checkpoint in a file, from its end: a witness's file has a line for each. Raises `Invalid`,
    OSError and UnicodeError."""
    with path.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - MAX_END)
        file.seek(start)
        end = file.read()
    return newest_of_file((end.partition(b"\n")[2] if start else end).decode())


def newest_of_file(text: str) -> SignedNote:
    """Read a checkpoint from a file: a note, or the last whole line that a witness's file has. Raises `Invalid`."""
    for line in reversed(text.splitlines()):
        if not line.startswith('{"at"'):
            break
        try:
            return notes.parse(str(json.loads(line)["note"]))
        except (ValueError, KeyError):
            continue  # cut off while it was written
    return notes.parse(text)


def check_against_tree(checkpoint: TreeHead, size: int) -> str:
    """Return what is wrong with a checkpoint that was witnessed, against the tree there is; empty for nothing."""
    if checkpoint.size > size:
        return f"the tree has {size:,} leaves, and had {checkpoint.size:,} when it was witnessed: the end was cut off"
    try:
        is_same = tree.root(checkpoint.size) == checkpoint.root
    except Conflict as error:
        return error.message
    return "" if is_same else f"the first {checkpoint.size:,} leaves of the tree are not those that were witnessed"
