"""What benchmarks share: a fresh database, the machine, a JSON line, percentiles, a busy thread.

`KEEP=FOLDER` keeps what a benchmark fills its databases with in that folder, and uses it again in later runs.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PREFIX = "switchboard-bench-"
DAY = 86_400  # seconds


def scratch() -> Path:
    """Make a folder that says whose it is, and remove those of processes that were killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if _is_left(left):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))


def _is_left(folder: Path) -> bool:
    """Return whether its process is gone; a folder that names none is left when it is a day old."""
    owner = folder.name.removeprefix(PREFIX).partition("-")[0]
    try:
        return not Path(f"/proc/{owner}").exists() if owner.isdecimal() else folder.stat().st_mtime < time.time() - DAY
    except FileNotFoundError:
        return False


def _stored_home() -> Path | None:
    """Return the folder of this benchmark's databases that stay; None where none is to."""
    if not (folder := os.environ.get("KEEP")):
        return None
    home = Path(folder).absolute() / Path(sys.argv[0]).stem / os.environ.get("ON", "sqlite")
    home.mkdir(parents=True, exist_ok=True)
    return home


KEPT = _stored_home()
HOME = KEPT or scratch()


def fill_once(what: str, store: Callable[[], None]) -> None:
    """Fill the database, unless a run before this one has filled it and it was kept: with `what`, its sizes."""
    note = HOME / "filled"
    if KEPT and note.exists():
        if note.read_text() != what:
            sys.exit(f"{KEPT} holds {note.read_text()}, not {what}: remove it, or keep this elsewhere")
        return
    store()
    note.write_text(what)


def set_up() -> None:
    """Start Django on a fresh database file of this process, or on the one that was kept."""
    os.environ["SWITCHBOARD_DATA_DIR"] = str(HOME)
    os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
    import django
    from django.core.management import call_command

    django.setup()
    sys.setswitchinterval(0.0001)
    call_command("migrate", verbosity=0)


def on_postgresql() -> bool:
    """Return whether this process is the one that measures on PostgreSQL (`ON=postgresql`): its server is started then.
    Before `set_up`."""
    if os.environ.get("ON") != "postgresql":
        return False
    from tests.support.services import PostgresServer

    server = PostgresServer("-c", "shared_buffers=256MB", "-c", "autovacuum=off", home=KEPT and KEPT / "postgresql")
    server.start()
    atexit.register(server.close)
    os.environ["SWITCHBOARD_DATABASE_URL"] = server.url
    os.environ["SWITCHBOARD_SECRET_KEY"] = "a secret of this benchmark's own, for as long as it runs"
    return True


def on_both(name: str, measure: Callable[[], None]) -> None:
    """Measure, and on SQLite once more in a process on PostgreSQL; end with its code."""
    from django.db import connection

    try:
        measure()
    finally:
        tear_down()
        connection.close()
    if connection.vendor == "sqlite":
        again = {**os.environ, "ON": "postgresql"}
        sys.exit(subprocess.run([sys.executable, "-m", f"tests.benchmarks.{name}"], env=again, check=False).returncode)


def tear_down() -> None:
    """Remove what this process stored, unless it is to be kept."""
    if not KEPT:
        shutil.rmtree(HOME, ignore_errors=True)


def machine() -> str:
    """Return where this was measured."""
    python, sqlite = platform.python_version(), sqlite3.sqlite_version
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {python}, SQLite {sqlite}"


def report(name: str, *, ratio: float, target: str, met: bool, **figures: Any) -> None:
    """Print one JSON line; `met` says whether the target was."""
    line = {"benchmark": name, "ratio": round(ratio, 3), "target": target, "met": met, **figures, "machine": machine()}
    print(json.dumps(line), flush=True)


def percentile(values: Sequence[float], q: float) -> float:
    """Return the q-quantile (0 to 1) of some values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * q))]


median = statistics.median


@contextmanager
def busy_thread() -> Iterator[None]:
    """Keep one Python thread busy with small calls, the worst neighbour there is."""
    done = threading.Event()

    def burn() -> None:
        while not done.is_set():
            sum(i * i for i in range(20_000))

    thread = threading.Thread(target=burn, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def share_of_a_core(wall: float = 0.5) -> float:
    """Measure what share of a core a busy process gets now, 1.0 on a machine with nothing else to do."""
    start, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - start < wall:
        sum(range(1000))
    return round((time.process_time() - used) / (time.perf_counter() - start), 2)


def as_a_server() -> None:
    """Collect what there is by now and set it aside, as `serve` does once it is ready: else a page in fifty pays 100 ms
    for looking at every module there is."""
    from dashboard.cli import COLLECT

    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT)


def cpu_clock() -> Callable[[], float]:
    """Return a clock of the CPU that a query takes, seconds: of this thread, and of the process that answers it."""
    from django.db import connection

    if connection.vendor == "sqlite":
        return time.thread_time
    connection.ensure_connection()
    backend: Any = connection.connection  # of psycopg
    stat = Path(f"/proc/{backend.info.backend_pid}/schedstat")
    return lambda: time.thread_time() + int(stat.read_text().split()[0]) / 1e9


def cpu_of(pid: int) -> float:
    """Return the CPU seconds a process has used, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
