"""Processes forked from one that has imported the libraries: a start costs a sixth.

`Nursery` is the side of the tests. `python -m tests.support.forking FD` is the other: it imports what needs no
settings, then forks once per line it is sent. What runs in the fork is `manage.py` itself, from its first line.
Another module may stand in its place, one that imports more (`tests.support.nursery`). When the test run ends, however
it does, the nursery kills what it still has and ends.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.support import preloading

LIBRARIES = (
    *("asyncio", "channels.consumer", "concurrent.futures.thread", "django.core.handlers.asgi", "django.forms"),
    *("django.core.management.base", "django.core.serializers.json", "django.db.backends.sqlite3.base"),
    *("django.db.backends.postgresql.base", "psycopg_pool"),
    *("django.db.migrations.executor", "django.db.models", "django.template.loader", "django.urls", "django.views"),
    *("jinja2.sandbox", "markdown_it", "msgspec", "nh3", "pydantic.types", "pygments.lexers"),
    *("jsonschema", "prometheus_client", "uvicorn.protocols.websockets.websockets_sansio_impl", "axes"),
    *("agents", "openai.types.responses"),  # `serve` imports them a second after its start
    *("h11", "httpcore2", "jsonschema_rs", "smtplib", "truststore", "uvicorn.lifespan.on", "uvicorn.loops.auto"),
    *("redis.asyncio", "servestatic", "sqlite3", "uvicorn.protocols.http.httptools_impl", "uvloop"),
)


class Forked:
    """A process of the nursery; reads as `subprocess.Popen` does."""

    def __init__(self) -> None:
        self.pid = 0
        self.returncode: int | None = None
        self.born, self.ended = threading.Event(), threading.Event()

    def poll(self) -> int | None:
        """Return its exit code, None while it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; answer its exit code. Raises TimeoutExpired."""
        if not self.ended.wait(timeout):
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal; one that has ended takes none."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended, and that is about to be told
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


class Nursery:
    """One process with the libraries imported, asked for forks. `module` is what runs in it: a `main` with a Forker."""

    def __init__(
        self, folder: Path, module: str = "tests.support.forking", *words: str, env: Mapping[str, str] | None = None
    ) -> None:
        self._channel, theirs = socket.socketpair()
        command = [sys.executable, "-m", module, str(theirs.fileno()), *words]
        self._process = subprocess.Popen(
            command, cwd=folder, env=env, pass_fds=[theirs.fileno()], start_new_session=True
        )
        theirs.close()
        self._lock, self._last_job, self._forks = threading.Lock(), 0, dict[int, Forked]()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def fork(
        self, arguments: Sequence[str], *, env: Mapping[str, str], stdout: Path, stderr: Path, stdin: str = os.devnull
    ) -> Forked:
        """Run `manage.py` with these arguments, or the code or module that is named by `-c` or `-m` as the first (in a
        bare nursery); what it prints is added to the files."""
        files = [stdin, str(stdout), str(stderr)]
        return self.ask({"arguments": list(arguments), "env": dict(env), "files": files})

    def ask(self, job: Mapping[str, Any]) -> Forked:
        """Have a process do this job."""
        forked = Forked()
        with self._lock:
            self._last_job += 1
            self._forks[self._last_job] = forked
            self._channel.sendall(json.dumps({**job, "id": self._last_job}).encode() + b"\n")
        assert forked.born.wait(60), "the nursery does not answer"
        return forked

    def close(self) -> None:
        """End it, and with it every process it still has."""
        self._channel.shutdown(socket.SHUT_WR)
        self._process.wait(60)
        self._listener.join(60)
        self._channel.close()

    def _listen(self) -> None:
        with self._channel.makefile() as lines:
            for message in map(json.loads, lines):
                forked = self._forks[message["id"]]
                if "pid" in message:
                    forked.pid = message["pid"]
                    forked.born.set()
                else:
                    forked.returncode = message["code"]
                    forked.ended.set()


@cache
def nursery(folder: Path) -> Nursery:
    """Return the nursery of this run's servers and commands: `manage.py`, with the product imported."""
    return Nursery(folder, "tests.support.forking", "product")


@cache
def bare_nursery(folder: Path) -> Nursery:
    """Return the nursery of this run's other programs, which begin with the libraries alone."""
    return Nursery(folder)


class Forker:
    """The other side: forks for each job, tells of each birth and each end."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel, self._buffer, self._children = channel, b"", dict[int, int]()
        self._woken, wake = socket.socketpair()
        self._woken.setblocking(False)
        wake.setblocking(False)
        self._wake = wake
        signal.set_wakeup_fd(wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def job(self) -> Any:
        """Fork for each job; answer it in the child, and None in the parent when the tests are gone."""
        with selectors.DefaultSelector() as events:
            events.register(self._channel, selectors.EVENT_READ)
            events.register(self._woken, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in events.select()}
                if self._woken in ready:
                    self._woken.recv(4096)
                    self._reap()
                if self._channel in ready and not self._read():
                    return self._leave()
                while b"\n" in self._buffer:
                    line, _, self._buffer = self._buffer.partition(b"\n")
                    if self._fork(job := json.loads(line)):
                        return job

    def _read(self) -> bool:
        more = self._channel.recv(1 << 16)
        self._buffer += more
        return bool(more)

    def _fork(self, job: Any) -> bool:
        pid = os.fork()
        if pid:
            self._children[pid] = job["id"]
            self._tell(id=job["id"], pid=pid)
            return False
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started the tests with it ignored
        for end in (self._channel, self._woken, self._wake):
            end.close()
        return True

    def _reap(self) -> None:
        for pid in list(self._children):
            ended_pid, status = os.waitpid(pid, os.WNOHANG)
            if ended_pid:
                self._tell(id=self._children.pop(pid), code=os.waitstatus_to_exitcode(status))

    def _tell(self, **what: int) -> None:
        self._channel.sendall(json.dumps(what).encode() + b"\n")

    def _leave(self) -> None:
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)


def become(job: Any) -> None:
    """Be `manage.py`, or what `-c` or `-m` names, as a shell would have started it: environment, files, arguments."""
    os.environ.clear()
    os.environ.update(job["env"])
    for number, path in enumerate(job["files"]):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND | os.O_CREAT
        descriptor = os.open(path, flags, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, write_through=True)  # type: ignore[attr-defined, union-attr]
    match job["arguments"]:
        case ["-c", code, *rest]:
            sys.argv = ["-c", *rest]
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        case ["-m", name, *rest]:
            sys.argv = [name, *rest]
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        case arguments:
            preloading.settle()
            sys.argv = ["manage.py", *arguments]
            runpy.run_path("manage.py", run_name="__main__")


def be_to_the_end(job: Any) -> None:
    """Be what a job names, and leave as an interpreter does: threads are waited for, exit handlers run, what was
    printed is out. But take nothing apart of what was imported: that is four fifths of what a short command costs.
    """
    code = 0
    try:
        become(job)
    except SystemExit as request:
        if not isinstance(request.code, int | None):
            raise
        code = request.code or 0
    threading._shutdown()  # type: ignore[attr-defined]  # as at the end of an interpreter
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def main() -> None:
    """Import the libraries, for `manage.py` the product too, then fork as asked."""
    for name in LIBRARIES:
        importlib.import_module(name)
    if "product" in sys.argv:
        preloading.preload()
    gc.freeze()
    job = Forker(socket.socket(fileno=int(sys.argv[1]))).job()
    if job is not None:
        be_to_the_end(job)


if __name__ == "__main__":
    main()
