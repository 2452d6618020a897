"""`comparison`: Switchboard beside Arize Phoenix and two forms of LangGraph, by their public interfaces, as a user
would measure them. Prints one table in Markdown, for docs/how-to/compare.md.

`.venv/bin/python -m tests.benchmarks.comparison [NAME …]`. Each product gets an environment of its own in a temporary
folder (kept and used again with `VENVS=FOLDER`), runs on loopback on free ports, one after the other, and is ended.
At most ten minutes; what was not measured until then is printed as that. Needs a package index, so `make bench` leaves
it out.
"""

from __future__ import annotations

import http.client
import itertools
import os
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.benchmarks import common
from tests.benchmarks.comparison_product import MARKER, PLACES, Product
from tests.benchmarks.comparison_products import LangGraph, LangGraphDev, Phoenix, Switchboard
from tests.benchmarks.publisher import WORDS

LIMIT = 600.0  # seconds for everything, installing included
INSTALLING = 180.0  # seconds for the environments, all at once
SPANS = 1000
SINGLE_S, KILLED_AFTER_S = 5.0, 3.0  # seconds that the clients publish
LOOKS, DECISIONS = 30, 10
READ_WITHIN = 90.0  # seconds until what was acknowledged can be read
NOT_MEASURED = "not measured"

ROWS = {
    "start": "start on an empty folder, until it answers",
    "again": "start again",
    "memory": "memory at rest",
    "size": "installed environment",
    "spans_taken": f"{SPANS:,} spans by the OpenTelemetry SDK: taken",
    "spans_read": "the same until all can be read",
    "single_taken": "single events of 8 clients: acknowledged",
    "single_read": "the same until all can be read",
    "wait": "wait of one client for its acknowledgement, p50 / p99",
    "look": "from publish to visible by the read interface, p50 / max",
    "stream": "from publish to another client's stream, p50 / max",
    "decision": "from an approval to the waiting caller, p50 / max",
    "disk": "on disk per span or event (470 bytes of text)",
    "killed": "acknowledged events lost by `kill -9`",
}  # fmt: skip

_numbers = itertools.count(1)
Results = dict[str, str]


def event_text() -> tuple[str, str]:
    """Return a new marker, and a text with it."""
    marker = f"m-{next(_numbers):08}"
    return marker, f"{marker} {WORDS}"


class Speakers:
    """A client for each place, which publishes one event after the other until `finish` or an error."""

    def __init__(self, product: Product) -> None:
        self._product, self._done = product, threading.Event()
        self.acknowledged: set[str] = set()
        self.waits: list[float] = []
        self._threads = [threading.Thread(target=self._speak, args=(place,)) for place in range(PLACES)]
        self.began = time.monotonic()
        for thread in self._threads:
            thread.start()

    def _speak(self, place: int) -> None:
        client = self._product.http()
        while not self._done.is_set():
            marker, text = event_text()
            start = time.monotonic()
            try:
                self._product.publish(client, place, text)
            except (OSError, http.client.HTTPException, AssertionError):
                return
            self.waits.append(time.monotonic() - start)
            self.acknowledged.add(marker)

    def finish(self) -> float:
        """Stop; return the seconds since the beginning."""
        self._done.set()
        for thread in self._threads:
            thread.join()
        return time.monotonic() - self.began


def missing(product: Product, markers: set[str], within: float) -> tuple[int, float]:
    """Wait until all of these can be read, or until the deadline; return how many cannot, and when the last could."""
    deadline = time.monotonic() + within
    while True:
        start = time.monotonic()
        left = markers - set(MARKER.findall(product.everything()))
        if not left or start > deadline:
            return len(left), start
        time.sleep(0.5)  # reading everything costs the product some of its time


def spans(product: Product) -> Results:
    """Export spans and read them back."""
    if not product.has_spans:
        return dict.fromkeys(("spans_taken", "spans_read"), "takes none")
    from tests.benchmarks.comparison_spans import export

    pairs = [event_text() for _ in range(SPANS)]
    start = time.monotonic()
    url = f"http://127.0.0.1:{product.port}{product.spans_path}"  # type: ignore[attr-defined]
    taken_s = export(url, product.headers, [text for _, text in pairs], PLACES)
    reader, last = product.http(), pairs[-1][0]
    with suppress(AssertionError):
        _await(lambda: last in product.newest(reader, (SPANS - 1) % PLACES), within=READ_WITHIN, pause=0.1)
    left, at = missing(product, {marker for marker, _ in pairs}, READ_WITHIN)
    read = f"{SPANS / (at - start):,.0f}/s" if not left else f"{left:,} not within {READ_WITHIN:.0f} s"
    return {"spans_taken": f"{SPANS / taken_s:,.0f}/s", "spans_read": read}


def single(product: Product) -> tuple[Results, int]:
    """Publish single events and read them back; return the figures, and the number of events."""
    speakers = Speakers(product)
    time.sleep(SINGLE_S)
    seconds = speakers.finish()
    count = len(speakers.acknowledged)
    assert count, "nothing was acknowledged"
    left, at = missing(product, speakers.acknowledged, READ_WITHIN)
    read = f"{count / (at - speakers.began):,.0f}/s" if not left else f"{left:,} not within {READ_WITHIN:.0f} s"
    return {
        "single_taken": f"{count / seconds:,.0f}/s",
        "single_read": read,
        "wait": _spread(speakers.waits, "p99", common.percentile(speakers.waits, 0.99)),
    }, count


def visible(product: Product) -> Results:
    """Publish now and then; watch by the read interface and on a stream."""
    reader, looks, streamed = product.http(), list[float](), list[float]()
    follower = product.follow() if product.has_stream else None
    if follower is not None:
        follower.start()
    for _ in range(LOOKS):
        marker, text = event_text()
        start = time.monotonic()
        publishing = threading.Thread(target=product.publish, args=(product.http(), 0, text))
        publishing.start()
        _await(lambda marker=marker: marker in product.newest(reader, 0))  # type: ignore[misc]
        looks.append(time.monotonic() - start)
        if follower is not None:
            _await(lambda marker=marker: marker in follower.seen)  # type: ignore[misc]
            streamed.append(follower.seen[marker] - start)
        publishing.join()
    return {"look": _spread(looks), "stream": _spread(streamed) if streamed else NOT_MEASURED}


def approvals(product: Product) -> Results:
    """Have a call decided again and again."""
    if not product.has_approvals:
        return {"decision": NOT_MEASURED}
    waits, client, other = list[float](), product.http(), product.http()
    for number in range(DECISIONS):
        ended = list[float]()

        def wait(number: int = number, ended: list[float] = ended) -> None:
            product.request(other, number)
            ended.append(time.monotonic())

        caller = threading.Thread(target=wait)
        caller.start()
        seen = product.decide(client, number)
        caller.join(30)
        assert ended, "the caller was not answered within 30 s"
        waits.append(ended[0] - seen)
    return {"decision": _spread(waits)}


def killed(product: Product) -> tuple[Results, int]:
    """Kill it while it acknowledges events, start it again, and count what is left; return that as well."""
    speakers = Speakers(product)
    time.sleep(KILLED_AFTER_S)
    product.stop(signal.SIGKILL)
    speakers.finish()
    product.start()
    left, _ = missing(product, speakers.acknowledged, 5.0)
    count = len(speakers.acknowledged)
    return {"killed": f"{left:,} of {count:,}"}, count - left


def _await(condition: Callable[[], bool], *, within: float = 30.0, pause: float = 0.005) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"an event was not visible within {within:.0f} s"
        time.sleep(pause)


def _spread(seconds: list[float], name: str = "max", high: float | None = None) -> str:
    return f"{statistics.median(seconds) * 1000:,.0f} / {(high or max(seconds)) * 1000:,.0f} ms"


class Sheet:
    """The results of one product; a part that fails leaves the others."""

    def __init__(self, product: Product) -> None:
        self.product, self.results, self.notes = product, Results(), list[str]()

    @contextmanager
    def part(self, what: str) -> Iterator[None]:
        """Note why a part could not be measured, and go on."""
        try:
            yield
        except (
            AssertionError,
            OSError,
            http.client.HTTPException,
            subprocess.SubprocessError,
            ValueError,
            KeyError,
        ) as error:
            self.notes.append(f"{self.product.name}, {what}: {str(error)[:300]}")

    def fill(self) -> None:
        """Measure everything."""
        with self.part("start"):
            self.results["start"] = f"{self.product.start():.1f} s"
            time.sleep(5)
            self.results["memory"] = f"{self.product.memory_mb():,.0f} MB"
            self.product.stop()
            empty = self.product.disk_bytes()
            self.results["again"] = f"{self.product.start():.1f} s"
            events = self._use()
            with self.part("kill -9"):
                figures, count = killed(self.product)
                self.results |= figures
                self.product.stop()
                self.results["disk"] = f"{(self.product.disk_bytes() - empty) / (events + count) / 1000:,.1f} kB"

    def _use(self) -> int:
        """Publish, read and decide; return the number of events."""
        events = 0
        with self.part("visible"):
            self.results |= visible(self.product)
            events += LOOKS
        with self.part("approvals"):
            self.results |= approvals(self.product)
        with self.part("spans"):
            self.results |= spans(self.product)
            events += SPANS * self.product.has_spans
        with self.part("single events"):
            figures, count = single(self.product)
            self.results |= figures
            events += count
        return events


class TimeUp(BaseException):
    """The time for everything is over. Nothing that waits for a product to answer may take it for an answer."""


def _time_up(*_: Any) -> None:
    raise TimeUp(f"not within {LIMIT:.0f} s")


def _terminated(*_: Any) -> None:
    raise SystemExit(1)  # what was started is ended on the way


def install(sheets: list[Sheet]) -> None:
    """Make the environments at the same time; those that cannot be made are noted."""

    def make(sheet: Sheet) -> None:
        product = sheet.product
        try:
            if not (product.venv / "installed").exists():
                product.install(INSTALLING)
                (product.venv / "installed").touch()
            size = sum(path.lstat().st_size for path in product.venv.rglob("*") if path.is_file())
            sheet.results["size"] = f"{size / 1e6:,.0f} MB"
            sheet.notes.append(f"{product.name}: {product.version()}")
        except (subprocess.SubprocessError, OSError) as error:
            output = getattr(error, "stderr", None) or b""
            sheet.notes.append(f"{product.name} could not be installed: {error} {output[-500:]!r}")

    threads = [threading.Thread(target=make, args=(sheet,)) for sheet in sheets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def table(sheets: list[Sheet]) -> str:
    """Write the results."""
    lines = [["", *(sheet.product.name for sheet in sheets)], ["---"] * (len(sheets) + 1)]
    lines += [[label, *(sheet.results.get(row, NOT_MEASURED) for sheet in sheets)] for row, label in ROWS.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Measure each product, or those that are named; print the table."""
    kinds = {kind.__name__.lower(): kind for kind in (Switchboard, Phoenix, LangGraph, LangGraphDev)}
    home = common.scratch()
    sheets = [Sheet(kinds[name](home)) for name in sys.argv[1:] or kinds]
    if folder := os.environ.get("VENVS"):
        for sheet in sheets:
            sheet.product.venv = Path(folder).absolute() / sheet.product.home.name
    signal.signal(signal.SIGALRM, _time_up)
    signal.signal(signal.SIGTERM, _terminated)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    sheet = sheets[0]
    try:
        install(sheets)
        for sheet in sheets:
            if "size" in sheet.results:
                print(f"{sheet.product.name} …", file=sys.stderr, flush=True)
                sheet.fill()
                sheet.product.stop(signal.SIGKILL)
    except TimeUp as error:
        sheet.notes.append(f"{sheet.product.name} and those after it: {error}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for each in sheets:
            each.product.stop(signal.SIGKILL)
        shutil.rmtree(home, ignore_errors=True)
        common.tear_down()
    print(table(sheets), *(note for sheet in sheets for note in sheet.notes), sep="\n")
    print(
        f"{common.machine()}; a busy process gets {common.share_of_a_core()} of a core; load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
