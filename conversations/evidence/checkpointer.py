"""The thread that signs the record each minute, where something moved, and shows it to the witnesses. One in each
serving process; on PostgreSQL the one that has the keys does it."""

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from django.db import DatabaseError, connections

from conversations.core.db_threads import release_connection
from conversations.core.errors import SwitchboardError
from conversations.core.outbound_address import AllowList
from conversations.core.status import OK
from conversations.evidence import checkpoints, tree, witnesses
from conversations.evidence.checkpoints import Signer
from conversations.evidence.notes import VerifierKey
from conversations.evidence.state import age
from conversations.evidence.witness_settings import Witness

logger = logging.getLogger(__name__)

EVERY = 60.0  # seconds
STALLED = 5 * EVERY  # seconds without a checkpoint, although something moved, that are worth telling
CLOSE_S = 5.0  # that a stop waits: a witness may be slow, and what is not signed now is signed at the next start


class Checkpointer(threading.Thread):
    """Started by the server, ended by `close`, which signs once more."""

    def __init__(
        self, path: Path, origin: str, whom: Sequence[Witness], keys: Sequence[VerifierKey], allowed: AllowList
    ) -> None:
        super().__init__(name="checkpoints", daemon=True)
        self._signer = Signer(path, origin)
        self._witnesses, self._keys, self._allowed = whom, keys, allowed
        self._ends = threading.Event()
        self._is_new = not path.exists()
        self._problem = ""
        self._all_signed_at = time.monotonic()  # when nothing waited to be signed for long
        self._newest_at: float | None = None  # of the newest checkpoint, seconds UTC

    @property
    def state(self) -> str:
        """`ok`, or how old the newest checkpoint is, whoever signs: for `/readyz`."""
        waited = time.monotonic() - self._all_signed_at
        if waited < STALLED:
            return OK
        if self._newest_at is None:
            return f"nothing has been signed for {age(int(waited))}: see the log"
        seconds = max(0, int(time.time() - self._newest_at))
        return f"the newest checkpoint is {age(seconds)} old, and what was written since is not signed: see the log"

    def run(self) -> None:
        """Sign now and each minute until the end."""
        while True:
            self._round()
            release_connection()
            if self._ends.wait(EVERY):
                break
        self._round(is_last=True)
        connections.close_all()

    def close(self) -> None:
        """Sign what moved since, and end. Witnesses see it after the next start."""
        self._ends.set()
        self.join(CLOSE_S)

    def _round(self, *, is_last: bool = False) -> None:
        try:
            checkpoints.make(self._signer)
            if not is_last:
                witnesses.submit_all(self._witnesses, self._keys, self._allowed)
            self._tell_of_key()
            self._problem = ""
        except Exception as error:  # whatever it is, the thread must live
            if str(error) != self._problem:  # it is said once
                is_expected = isinstance(error, SwitchboardError | DatabaseError | OSError)
                logger.error("the record is not signed: %s", error, exc_info=None if is_expected else error)
            self._problem = str(error)
        with contextlib.suppress(DatabaseError, SwitchboardError):  # the database is a part of its own
            self._note_age()

    def _note_age(self) -> None:
        """Note whether something has waited long: the newest checkpoint of an idle server may be old."""
        row = checkpoints.newest()
        self._newest_at = row.at / 1e6 if row else None
        is_recent = self._newest_at is not None and abs(time.time() - self._newest_at) < STALLED
        if is_recent or not tree.moved(1):
            self._all_signed_at = time.monotonic()

    def _tell_of_key(self) -> None:
        if self._is_new and self._signer.path.exists():
            words = "the keys that sign the record are in %s: keep a copy elsewhere, apart from database and backups"
            logger.info(words, self._signer.path)
            self._is_new = False
