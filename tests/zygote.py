"""A process that has everything imported and forks servers from itself: a start costs 0.3 s instead of 2.5 s of CPU.

For proofs that kill one server after the other. A forked server is a process like any other: it makes its own threads,
connections and locks, and dies alone. `Forked` stands where `tests.live.Server` has its `Popen`.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.live import Server

HEAVY = (
    "dashboard.management.commands.serve",
    "dashboard.demo",
    "dashboard.handler",
    "dashboard.urls",
    "conversations.consumers",
    "conversations.doors.health",
    "conversations.doors.imports",
    "conversations.doors.key",
    "conversations.doors.publish",
    "conversations.engine",
    "conversations.epoch",
    "servestatic",
    "uvicorn.lifespan.on",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.httptools_impl",
    "psycopg_pool",
)


class QuickServer(Server):
    """A `Server` whose starts are forks, and its commands while it is down. Its settings stay those of its first start;
    the failpoint may change.

    `close` ends the process they come from.
    """

    zygote: subprocess.Popen[str] | None = None

    def launch(self) -> None:
        """Fork a server, whatever becomes of it."""
        self.process = self._fork(self.log, "serve", "--port", str(self.port), *self.arguments)  # type: ignore[assignment]

    def command(self, *arguments: str, stdin: str | None = None) -> str:
        """Fork a command; answer what it printed."""
        if stdin is not None or (self.process is not None and self.process.poll() is None):
            return super().command(*arguments, stdin=stdin)
        output = self.log.with_suffix(".command")
        output.unlink(missing_ok=True)
        if self._fork(output, *arguments).wait(120):
            raise AssertionError(f"{arguments} failed:\n{output.read_text()}")
        return output.read_text()

    def _fork(self, log: Path, *arguments: str) -> Forked:
        if self.zygote is None:
            command = [sys.executable, "-m", "tests.zygote"]
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            self.zygote = subprocess.Popen(command, cwd=self.folder, env=self.env(), text=True, bufsize=1, **pipes)
        failpoint = self.environment.get("SWITCHBOARD_FAILPOINT", "")
        order = {"arguments": ["manage.py", *arguments], "failpoint": failpoint, "log": str(log)}
        return Forked(self.zygote, order)

    def close(self) -> None:
        """End the server and where it comes from."""
        if self.process is not None and self.process.poll() is None:
            self.kill()
        if self.zygote is not None:
            self.zygote.stdin.close()  # type: ignore[union-attr]
            self.zygote.wait(10)
            self.zygote.stdout.close()  # type: ignore[union-attr]
            self.zygote = None


class Forked:
    """One forked process, as much of `Popen` as tests use."""

    def __init__(self, zygote: subprocess.Popen[str], order: dict[str, Any]) -> None:
        self._pipes = zygote
        self.returncode: int | None = None
        zygote.stdin.write(json.dumps(order) + "\n")  # type: ignore[union-attr]
        self.pid = self._number()

    def poll(self) -> int | None:
        """Answer the exit code, negative for a signal; None while it lives."""
        if self.returncode is None and select.select([self._pipes.stdout], [], [], 0)[0]:
            self.returncode = self._number()
        return self.returncode

    def _number(self) -> int:
        """Read one line, and no byte of the next: `select` must see it."""
        text = b""
        while not text.endswith(b"\n"):
            text += os.read(self._pipes.stdout.fileno(), 1)  # type: ignore[union-attr]
        return int(text)

    def wait(self, timeout: float = 60.0) -> int:
        """Wait for its end; answer the exit code."""
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"process {self.pid} did not end within {timeout} s")
            select.select([self._pipes.stdout], [], [], 0.1)
        return self.returncode or 0

    def send_signal(self, number: int) -> None:
        """Send a signal; only while it lives: the id may be another's afterwards."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def main() -> None:
    """Import everything, then fork a command for each line, one after the other: its id, later its exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    import django

    django.setup(set_prefix=False)
    for name in HEAVY:  # not `dashboard.asgi`: what it makes belongs to one process
        importlib.import_module(name)
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if not pid:
            _be(order)
        print(pid, flush=True)  # noqa: T201
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)  # noqa: T201


def _be(order: dict[str, Any]) -> None:
    """Be the command: never returns."""
    from django.core.management import execute_from_command_line

    from conversations import failpoints

    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    failpoints._NAME, _, failpoints._ARGUMENT = order["failpoint"].partition(":")
    code = 0
    try:
        execute_from_command_line(order["arguments"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    main()
