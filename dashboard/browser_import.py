"""Files that a person sends from a browser: received in pieces, then read in a thread, first for a summary, then to
import it. Called by the page of imports; what it knows is of this process, and forgotten an hour later.

    job = jobs.receive("", by, "session.jsonl", size, offset=0, piece=…)   # and the further pieces, in order
    jobs.start(job, is_dry=True)                                           # `job.state` tells how far it is
"""

import re
import secrets
import shutil
import threading
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

from django.conf import settings
from django.db import DatabaseError

from conversations.access import permissions
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core import principals
from conversations.core.db_threads import DatabaseThreads, unavailable
from conversations.core.errors import Busy, Conflict, NotFound, SwitchboardError, TooLarge, Unavailable
from conversations.import_export.detect_format import format_of
from conversations.import_export.dry_run import DryRun
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.import_file import import_recordings
from conversations.import_export.import_lines import ImportedConversation
from conversations.import_export.import_report import ImportReport
from conversations.import_export.staged_import import StagedImport, existing

MAX_FILE = 256 << 20  # bytes
MAX_PIECE = 1 << 20  # bytes
MAX_JOBS = 20  # of everybody; the oldest that nothing is done with goes
SENT_WITHIN_S = 60  # seconds between two pieces, after which a file may go for another
POLL_EVERY_S = 0.5  # whether the person who imports may still do so (law H)
KEPT_S = 3600  # seconds without a request after which a file is removed
LEFT_S = 24 * 3600  # seconds after which nobody is using a file that this process did not receive
MAX_PROBLEMS = ImportReport.SHOWN + 1  # lines
State = Literal["receiving", "received", "reading", "checked", "imported", "failed"]


@dataclass(slots=True)
class ImportJob:
    """One file and what has become of it. Written by the thread that reads; pages read it."""

    id: str
    user: str  # the principal
    path: Path
    size: int  # bytes, as announced
    state: State = "receiving"  # before all that depends on it: `ImportJobs.look` copies in this order
    received: int = 0  # bytes
    is_dry: bool = True
    is_update: bool = False
    key: str = ""  # the id for its first conversation, in place of its own
    format: str = ""
    conversations: int = 0
    events: int = 0
    items: list[ImportedConversation] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    existing: dict[str, bool] = field(default_factory=dict)  # ids that exist; True: an import made them
    error: str = ""
    code: str = ""  # of that error
    used_at: float = field(default_factory=time.monotonic)
    allowed_at: float = field(default_factory=time.monotonic)  # when the right to it was looked at last

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def is_busy(self) -> bool:
        """Return whether it is being read."""
        return self.state == "reading"

    @property
    def is_idle(self) -> bool:
        """Return whether nobody waits for it: neither the thread that reads nor a browser that sends."""
        is_sent = self.state == "receiving" and self.used_at > time.monotonic() - SENT_WITHIN_S
        return not self.is_busy and not is_sent


class ImportJobs:
    """The files of one process."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, ImportJob] = OrderedDict()
        self._guard = threading.Lock()
        self._thread: DatabaseThreads | None = None  # one: imports wait for each other
        self._is_stopping = False

    def receive(self, id_: str, by: Who, name: str, size: int, *, offset: int, piece: bytes) -> ImportJob:
        """Take a piece; the first has no id. Raises Invalid, TooLarge, Busy, NotFound, and Conflict for one that does
        not follow what came."""
        permissions.require(by, "publish")
        if not 0 < size <= MAX_FILE:
            raise TooLarge(f"must be a file of 1 to {MAX_FILE:,} bytes; got {size:,}", field="file")
        if offset + len(piece) > size:
            raise TooLarge(f"must be {size:,} bytes, as announced", field="file")
        with self._guard:
            job = self._of(id_, by) if id_ else self._make(by, name, size)
            if job.state != "receiving" or (offset, size) != (job.received, job.size) or len(piece) > MAX_PIECE:
                raise Conflict(f"{job.received:,} bytes of this file have arrived: send the bytes that follow")
            with job.path.open("r+b") as file:  # in place of what a write that failed left
                file.seek(offset)
                file.write(piece)
                file.truncate()
            job.received, job.used_at = job.received + len(piece), time.monotonic()
            if job.received == job.size:
                job.state = "received"
        return job

    def of(self, id_: str, by: Who) -> ImportJob:
        """Return a person's file. Raises NotFound."""
        with self._guard:
            return self._of(id_, by)

    def look(self, id_: str, by: Who) -> ImportJob:
        """Return a person's file as it is now: a copy that no thread changes. Its state is read first and set last, so
        that all that belongs to a state is there. Raises NotFound."""
        return replace(self.of(id_, by))

    def start(self, job: ImportJob, by: Who, *, is_dry: bool, is_update: bool = False, key: str = "") -> None:
        """Begin to read it, or to import it. Raises Conflict while that is under way, or the file is not whole."""
        permissions.require(by, "publish")
        with self._guard:
            if job.state in ("receiving", "reading", "imported"):
                raise Conflict(_WHY_NOT[job.state])
            job.state, job.is_dry, job.is_update, job.key = "reading", is_dry, is_update, key
            job.conversations = job.events = job.problem_count = 0
            job.items, job.problems, job.error, job.code = [], [], "", ""
            self._thread = self._thread or DatabaseThreads("import")
        self._thread.submit(_run, job, by)

    def stop(self) -> None:
        """End what is being read: nothing of it is imported."""
        self._is_stopping = True

    def note_progress(self, job: ImportJob, conversations: int, events: int) -> None:
        """Note how far a file is. Raises Unavailable once the server stops."""
        job.conversations, job.events = conversations, events
        if self._is_stopping:
            raise Unavailable("the server stopped; nothing was imported")

    def _of(self, id_: str, by: Who) -> ImportJob:
        job = self._jobs.get(id_)
        if job is None or job.user != str(permissions.principal_of(by)):
            raise NotFound("This file is no longer available: upload it again.")
        self._jobs.move_to_end(id_)
        job.used_at = time.monotonic()
        return job

    def _make(self, by: Who, name: str, size: int) -> ImportJob:
        self._clear()
        id_ = secrets.token_hex(16)
        folder = _home() / id_
        folder.mkdir(mode=0o700, parents=True)
        job = ImportJob(id_, str(permissions.principal_of(by)), folder / _fit(name), size)
        job.path.touch(0o600)
        self._jobs[id_] = job
        return job

    def _clear(self) -> None:
        """Remove files that nobody needs anymore, and room for one more. Raises Busy."""
        border = time.monotonic() - KEPT_S
        for job in [job for job in self._jobs.values() if not job.is_busy and job.used_at < border]:
            self._drop(job)
        if len(self._jobs) >= MAX_JOBS:
            idle = next((job for job in self._jobs.values() if job.is_idle), None)
            if idle is None:
                raise Busy(f"{MAX_JOBS} files are already being imported: try again later", code="too_many")
            self._drop(idle)
        if not self._jobs:
            _remove_left_files()

    def _drop(self, job: ImportJob) -> None:
        del self._jobs[job.id]
        shutil.rmtree(job.path.parent, ignore_errors=True)


jobs = ImportJobs()

_WHY_NOT = {
    "receiving": "the file is not whole yet",
    "reading": "this file is being read already",
    "imported": "this file is imported already",
}


def _run(job: ImportJob, by: Who) -> None:
    """Read a file to its end. Whatever goes wrong is what the job tells."""
    try:
        job.items = _read(job, by)
        job.existing = existing(item.conversation_id for item in job.items) if job.is_dry else {}
    except SwitchboardError as error:
        job.error, job.code = error.full_message, error.code
    except DatabaseError as error:
        job.error = unavailable(error).full_message
    except OSError as error:
        job.error = f"{job.name} cannot be read: {error.strerror or error}"
    except BaseException:
        job.error = "the server failed while it read this file; its log says why"
        raise
    finally:
        job.used_at = time.monotonic()
        job.state = "failed" if job.error else "checked" if job.is_dry else "imported"


def _read(job: ImportJob, by: Who) -> list[ImportedConversation]:
    report = ImportReport(lambda line: job.problems.append(f"{job.name}, {line}"[:1000]))
    source = RecordingFile(job.path)
    chosen = format_of(source)
    job.format = chosen.NAME
    name = source.stem
    receiver = DryRun() if job.is_dry else StagedImport(
        principals.import_principal(name),
        lambda: permissions.require(by, "publish"),
        lambda: _add_audit_entry(job, by, name),
    )  # fmt: skip

    try:
        return import_recordings(
            chosen.read(source, report),
            receiver,
            report,
            key=job.key,
            is_update=job.is_update,
            progress=partial(_go_on, job, by),
        )
    finally:
        job.problem_count = report.count


def _go_on(job: ImportJob, by: Who, conversations: int, events: int) -> None:
    """Note how far it is. Raises NotAllowed for one who may no longer import, Unavailable once the server stops."""
    jobs.note_progress(job, conversations, events)
    if time.monotonic() - job.allowed_at >= POLL_EVERY_S:
        permissions.require(permissions.principal_of(by), "publish")  # as the database says now
        job.allowed_at = time.monotonic()


def _add_audit_entry(job: ImportJob, by: Who, name: str) -> None:
    correlation = {"file": job.name, "bytes": job.size, "format": job.format, "conversations": job.conversations}
    chain.add_entry(permissions.principal_of(by), "import_file", f"import:{name}", correlation=correlation)


def _remove_left_files() -> None:
    """Remove what ended processes left; another server of the same directory may still be using newer files."""
    border = time.time() - LEFT_S
    for folder in _home().glob("*"):
        with suppress(OSError):
            if max(path.stat().st_mtime for path in (folder, *folder.iterdir())) < border:
                shutil.rmtree(folder)


def _home() -> Path:
    return Path(settings.DATA_DIR) / "uploads"


def _fit(name: str) -> str:
    """Return a file's name as this disk takes it, its endings kept."""
    text = re.sub(r"[^A-Za-z0-9._-]+", "-", name.replace("\\", "/").rpartition("/")[2]).strip(".-")
    return text[-100:].strip(".-") or "recording"
