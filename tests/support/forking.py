"""Processes forked from one that has imported the libraries: a start costs a sixth.

`Nursery` is the side of the tests. `python -m tests.support.forking FD` is the other: it imports what needs no
settings, then forks once per line it is sent. What runs in the fork is `manage.py` itself, from its first line.
Another module may stand in its place, one that imports more (`tests.support.nursery`). When a process of the test run
ends, however it does, the nursery kills what it still has of that one's; without any left it ends.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
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
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.support import preloading

BORN_S = 240.0  # seconds until a process is forked: the first one waits for the imports
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
        """Wait for its end; return its exit code. Raises TimeoutExpired."""
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
    """One process with the libraries imported, asked for forks. `module` is what runs in it: a `main` with a Forker.
    At `path`, a socket's, the other processes of a test run find the same one: the first of them starts it.
    """

    def __init__(
        self,
        folder: Path,
        module: str = "tests.support.forking",
        *words: str,
        env: Mapping[str, str] | None = None,
        path: Path | None = None,
    ) -> None:
        self._command, self._folder, self._env = [sys.executable, "-m", module], folder, env
        self._process: subprocess.Popen[bytes] | None = None
        self._is_shared = path is not None
        self._channel = self._start(*words) if path is None else self._join(path, *words)
        self._lock, self._last_job, self._forks = threading.Lock(), 0, dict[int, Forked]()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _join(self, path: Path, *words: str) -> socket.socket:
        """Connect to the nursery at this path, or start it there."""
        with locked(path):
            channel = socket.socket(socket.AF_UNIX)
            try:
                channel.connect(str(path))
            except OSError:  # none yet, or one that was killed
                channel.close()
                path.unlink(missing_ok=True)
                with socket.socket(socket.AF_UNIX) as door:
                    door.bind(str(path))
                    door.listen()
                    return self._start(*words, door=door)
            return channel

    def _start(self, *words: str, door: socket.socket | None = None) -> socket.socket:
        channel, theirs = socket.socketpair()
        doors = [] if door is None else [door.fileno()]
        command = [*self._command, ",".join(map(str, [theirs.fileno(), *doors])), *words]
        self._process = subprocess.Popen(
            command, cwd=self._folder, env=self._env, pass_fds=[theirs.fileno(), *doors], start_new_session=True
        )
        theirs.close()
        return channel

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
        assert forked.born.wait(BORN_S), "the nursery does not answer"
        return forked

    def close(self) -> None:
        """End it, and with it every process it still has; of a shared one, only what this process asked for."""
        self._channel.shutdown(socket.SHUT_WR)
        if self._process is not None and not self._is_shared:
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
    return Nursery(folder, "tests.support.forking", "product", path=_path_of("product"))


@cache
def bare_nursery(folder: Path) -> Nursery:
    """Return the nursery of this run's other programs, which begin with the libraries alone."""
    return Nursery(folder, path=_path_of("bare"))


def _path_of(name: str) -> Path | None:
    """Return where all processes of this run find a nursery; None where it is no run, or its folder's name is long."""
    path = Path(os.environ.get("SWITCHBOARD_TEST_SHARED", "/" * 108), f"nursery-{name}")
    return path if len(os.fsencode(path)) < 100 else None  # the system takes no socket with a longer one


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Have nobody else come to the nursery at this path, nor it leave, meanwhile."""
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Forker:
    """The other side: forks for each job, tells who sent it of the birth and the end. Its descriptors are those of its
    first channel and, where it is shared, of the socket at which others ask for one; separated by a comma.
    """

    def __init__(self, descriptors: str) -> None:
        channel, *doors = (socket.socket(fileno=int(number)) for number in descriptors.split(","))
        self._door = doors[0] if doors else None
        self._buffers, self._children = {channel: b""}, dict[int, tuple[socket.socket, int]]()
        self._woken, self._wake = socket.socketpair()
        self._events = selectors.DefaultSelector()
        for end in (channel, self._woken, *doors):
            self._events.register(end, selectors.EVENT_READ)
        for end in (self._woken, self._wake, *doors):
            end.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def job(self) -> Any:
        """Fork for each job; return it in the child, and None in the parent when all the tests are gone."""
        while self._buffers or self._is_asked_again():
            for key, _ in self._events.select():
                end = key.fileobj
                if end is self._woken:
                    self._woken.recv(4096)
                    self._reap()
                elif end is self._door:
                    self._let_in()
                elif isinstance(end, socket.socket) and (job := self._read(end)):
                    return job
        signal.set_wakeup_fd(-1)
        return None

    def _read(self, channel: socket.socket) -> Any:
        """Fork for what was sent; return the job in the child."""
        try:
            more = channel.recv(1 << 16)
        except ConnectionResetError:  # it was killed
            more = b""
        *lines, self._buffers[channel] = (self._buffers[channel] + more).split(b"\n")
        for line in lines:
            if self._fork(channel, job := json.loads(line)):
                return job
        if not more:
            self._let_go(channel)
        return None

    def _fork(self, channel: socket.socket, job: Any) -> bool:
        pid = os.fork()
        if pid:
            self._children[pid] = channel, job["id"]
            self._tell(channel, id=job["id"], pid=pid)
            return False
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started the tests with it ignored
        self._events.close()
        for end in filter(None, (*self._buffers, self._woken, self._wake, self._door)):
            end.close()
        return True

    def _reap(self) -> None:
        for pid in list(self._children):
            ended_pid, status = os.waitpid(pid, os.WNOHANG)
            if ended_pid:
                channel, number = self._children.pop(pid)
                self._tell(channel, id=number, code=os.waitstatus_to_exitcode(status))

    def _tell(self, channel: socket.socket, **what: int) -> None:
        if channel in self._buffers:
            with contextlib.suppress(OSError):  # it has gone, and that is about to be read
                channel.sendall(json.dumps(what).encode() + b"\n")

    def _let_in(self) -> bool:
        """Take a further process's channel, if one asks for it."""
        assert self._door is not None
        try:
            channel, _ = self._door.accept()
        except BlockingIOError:
            return False
        channel.setblocking(True)
        self._buffers[channel] = b""
        self._events.register(channel, selectors.EVENT_READ)
        return True

    def _let_go(self, channel: socket.socket) -> None:
        """Kill what a process that has gone left."""
        for pid, (owner, _) in self._children.items():
            if owner is channel:
                os.kill(pid, signal.SIGKILL)
        self._events.unregister(channel)
        del self._buffers[channel]
        channel.close()

    def _is_asked_again(self) -> bool:
        """Return whether somebody came while the last one went; if not, nobody finds this one any more."""
        if self._door is None:
            return False
        path = Path(self._door.getsockname())
        try:
            with locked(path):
                if self._let_in():
                    return True
                path.unlink(missing_ok=True)
        except FileNotFoundError:  # the run's folder has gone
            pass
        return False


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
    job = Forker(sys.argv[1]).job()
    if job is not None:
        be_to_the_end(job)


if __name__ == "__main__":
    main()
