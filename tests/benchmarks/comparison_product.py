"""A product of `comparison`: installed from the package index, started by its command, spoken to over its public HTTP
interface. An event has a marker; what a read interface answers is searched for these, so that all are counted alike.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any

from tests.support.live import free_port, until

MARKER = re.compile(r"m-\d{8}")
STARTING = 240.0  # seconds a product may take to start, on a machine that does other things, too
PLACES = 8  # conversations or threads, one for each client


class Http:
    """One kept connection to a product. Not for several threads."""

    def __init__(self, port: int, headers: dict[str, str]) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._headers = headers

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> str:
        """Make one request; return the body of its answer. Raises OSError, HTTPException, and AssertionError for a
        status that is not 2xx."""
        payload = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} | self._headers | headers
        try:
            self._connection.request(method, path, payload, headers)
            answer = self._connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        assert answer.status < 300, f"{method} {path} was answered with {answer.status}: {text[:300]}"
        return text

    def get(self, path: str, **query: Any) -> Any:
        """Read one page of JSON."""
        query = {name: value for name, value in query.items() if value is not None}
        return json.loads(self.ask("GET", f"{path}?{urllib.parse.urlencode(query)}"))


class Follower(threading.Thread):
    """Reads a stream of server-sent events; `seen` has the monotonic time at which each marker came."""

    def __init__(self, port: int, path: str, headers: dict[str, str]) -> None:
        super().__init__(daemon=True)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._connection.request("GET", path, headers=headers | {"Accept": "text/event-stream"})
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200, f"GET {path} was answered with {self._answer.status}"
        self.seen: dict[str, float] = {}

    def run(self) -> None:
        """Read until the stream ends."""
        try:
            for line in iter(self._answer.readline, b""):
                now = time.monotonic()
                for marker in MARKER.findall(line.decode()):
                    self.seen.setdefault(marker, now)
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            return


class Product:
    """One product. Subclasses say how it is installed, started and spoken to."""

    name = ""
    packages: tuple[str, ...] = ()
    has_spans = has_stream = has_approvals = False

    def __init__(self, home: Path) -> None:
        self.home = home / type(self).__name__.lower()
        self.venv, self.data = self.home / "venv", self.home / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        self.port = 0
        self.headers: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def install(self, within: float) -> None:
        """Make its environment, with uv where this one has it. Raises TimeoutExpired and CalledProcessError."""
        uv = Path(sys.prefix) / "bin" / "uv"
        python = str(self.venv / "bin" / "python")
        subprocess.run([sys.executable, "-m", "venv", str(self.venv)], check=True, timeout=within)
        command = [python, "-m", "pip", "install", "-q"]
        if uv.exists():
            command = [str(uv), "pip", "install", "-q", "--compile-bytecode", "--python", python]
        subprocess.run([*command, *self.packages], check=True, timeout=within, capture_output=True)

    def version(self) -> str:
        """Return the versions of its packages."""
        code = "import sys, importlib.metadata as m; print(', '.join(f'{p} {m.version(p)}' for p in sys.argv[1:]))"
        names = [re.split(r"[\[=<>]", package)[0] for package in self.packages]
        command = [str(self.venv / "bin" / "python"), "-c", code, *names]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def start(self) -> float:
        """Start it on its data; return the seconds until its read interface answers."""
        self.port = free_port()
        command, own = self.command()
        mine = ("SWITCHBOARD_", "DJANGO_", "PHOENIX_", "LANG", "PYTHON", "VIRTUAL_ENV")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(mine)}
        begun = time.monotonic()
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.data, env=environment | own, stdout=log, stderr=log, start_new_session=True
            )
        until(self._is_ready, within=STARTING, what=f"{self.name} to answer")
        took = time.monotonic() - begun
        self.prepare()
        return took

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.home / "log").read_text()[-2000:]
        try:
            self.http().ask("GET", self.ready_path())
        except (OSError, http.client.HTTPException, AssertionError):
            return False
        return True

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it, with all its processes: they are a session of their own."""
        if self._process is not None:
            os.killpg(self._process.pid, number)
            self._process.wait(60)
            self._process = None

    def memory_mb(self) -> float:
        """Return the memory of its processes together, shared pages divided between those that share them."""
        assert self._process is not None
        total = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                session = stat.read_text().rpartition(")")[2].split()[3]
                if int(session) == self._process.pid:
                    rollup = (stat.parent / "smaps_rollup").read_text()
                    total += int(re.search(r"^Pss:\s+(\d+)", rollup, re.M)[1])  # type: ignore[index]
            except (OSError, TypeError):
                continue
        return total / 1024

    def disk_bytes(self) -> int:
        """Return the size of its data."""
        return sum(path.stat().st_size for path in self.data.rglob("*") if path.is_file())

    def http(self) -> Http:
        """Return a connection of its own."""
        return Http(self.port, self.headers)

    def command(self) -> tuple[list[str], dict[str, str]]:
        """Return the command that starts it, and its environment."""
        raise NotImplementedError

    def ready_path(self) -> str:
        """Return the path of the read interface that answers once it is ready."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Do what a client has to before the first event."""

    def publish(self, client: Http, place: int, text: str) -> None:
        """Publish one event and wait for its acknowledgement."""
        raise NotImplementedError

    def newest(self, client: Http, place: int) -> str:
        """Return the newest events of a place, as the read interface gives them."""
        raise NotImplementedError

    def everything(self) -> str:
        """Return all events of all places."""
        raise NotImplementedError

    def follow(self) -> Follower:
        """Follow the first place."""
        raise NotImplementedError

    def request(self, client: Http, number: int) -> None:
        """Have a call wait for its decision; return once it has been decided and the caller knows."""
        raise NotImplementedError

    def decide(self, client: Http, number: int) -> float:
        """Wait until the request can be seen, and approve it; return the monotonic time at which it was seen."""
        raise NotImplementedError
