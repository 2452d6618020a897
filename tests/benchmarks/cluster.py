"""`cluster`: 1, 2 and 4 web nodes on one PostgreSQL and one Redis, with 2,000 sockets that follow 500 conversations.

The four sockets of a conversation are spread over the nodes; its events are published over HTTP at one of them. For
each number of nodes: a steady rate of single events, as many batches of ten as are acknowledged, and events of
conversations that nobody follows, for the cost of the notifications at the other nodes. Fails unless every socket got
every acknowledged event once and in order. At most four minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks import common
from tests.support.deployment import Deployment
from tests.support.live import Server

NODES = (1, 2, 4)
SOCKETS, CONVERSATIONS, UNFOLLOWED = 2000, 500, 50
TOKENS = 4  # whose sockets are counted apart: a principal may have 1,000 of a process
LANES = 16  # connections that publish, over all nodes together
RATE = float(os.environ.get("RATE", "100"))  # events/s of the steady phase
SECONDS = float(os.environ.get("RUN_SECONDS", "5"))  # of each phase
BATCH = 10  # events of a request of the full phase
LIMIT = 240.0  # seconds for all
LEVEL = 20.0  # seconds that the sockets have after a phase, until all are at the head
LOAD_MB = 300  # of memory, each process of the load

Line = dict[str, Any]


class Load:
    """One process of the load: a line in, a line out."""

    def __init__(self, kind: str) -> None:
        self.peak_mb = 0
        command = [sys.executable, "-m", "tests.benchmarks.cluster_load", kind]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **line: Any) -> Line:
        """Have something done; return its figures. Raises AssertionError if the process ends instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the load's process ended with {self._process.wait()}: its error is above"
        figures: Line = json.loads(answer)
        self.peak_mb = figures.pop("peak_mb")
        return figures

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


class Cluster(Deployment):
    """PostgreSQL, Redis, and web nodes that are added with `grow`."""

    def start(self) -> Cluster:
        """Start the databases, and make the tables."""
        self.nodes: list[Server] = []
        self.redis.start()
        self.postgres.start()
        self.environment = {
            "SWITCHBOARD_DATABASE_URL": self.postgres.create("switchboard"),
            "SWITCHBOARD_REDIS_URL": self.redis.url,
            "SWITCHBOARD_SECRET_KEY": "one secret for all processes of a deployment",
        }
        Server(self.home, **self.environment).command("migrate", "--verbosity", "0")
        self.tokens = [self.make_token(f"robot-{n}", "admin") for n in range(TOKENS)]
        return self

    def grow(self, count: int) -> list[int]:
        """Have so many web nodes ready; return their ports."""
        while len(self.nodes) < count:
            self.nodes.append(Server(self.home, "--web-only", **self.environment))
            self.nodes[-1].launch()
        self.are_ready(*self.nodes)
        return [node.port for node in self.nodes]

    def heads(self, prefix: str) -> dict[str, int]:
        """Return the heads of the conversations whose id begins so."""
        return dict(self.rows(f"SELECT key,head_seq FROM conversations_conversation WHERE starts_with(key,'{prefix}')"))

    def cpu(self) -> dict[str, float]:
        """Return the CPU seconds used so far: of each node by its number, of PostgreSQL and of Redis."""
        assert self.redis.process is not None
        assert self.postgres.process is not None
        nodes = {f"node-{i}": common.cpu_of(node.process.pid) for i, node in enumerate(self.nodes) if node.process}
        return nodes | {
            "postgresql": _cpu_of_all(self.postgres.process.pid),
            "redis": common.cpu_of(self.redis.process.pid),
        }

    def close(self) -> None:
        """End everything that was started here."""
        for node in self.nodes:
            node.kill()
            node.log.unlink(missing_ok=True)
        self.redis.close()
        self.postgres.close()
        shutil.rmtree(self.home, ignore_errors=True)


def _cpu_of_all(pid: int) -> float:
    """Return the CPU seconds of a process and its children, those that have ended included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ended = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return common.cpu_of(pid) + ended + sum(_cpu_of_child(int(child)) for child in children)


def _cpu_of_child(pid: int) -> float:
    try:
        return common.cpu_of(pid)
    except FileNotFoundError:  # it has just ended
        return 0.0


class Use:
    """The CPU that a cluster uses from here on, less what it uses when nothing is published."""

    def __init__(self, cluster: Cluster, idle: dict[str, float] | None = None) -> None:
        self._cluster, self._idle = cluster, idle or {}
        self._before, self._start = cluster.cpu(), time.monotonic()

    def rates(self) -> dict[str, float]:
        """Return the use so far of each process, as a share of a core."""
        seconds = time.monotonic() - self._start
        return {name: (cpu - self._before[name]) / seconds for name, cpu in self._cluster.cpu().items()}

    def per_event(self, events: int) -> dict[str, float]:
        """Return microseconds per event of each process."""
        seconds = time.monotonic() - self._start
        return {
            name: (rate - self._idle.get(name, 0.0)) * seconds / events * 1e6 for name, rate in self.rates().items()
        }


def by_kind(use: dict[str, float], digits: int | None = None) -> Line:
    """Add the web nodes up."""
    web = sum(value for name, value in use.items() if name.startswith("node-"))
    return {"web": round(web, digits), **{name: round(use[name], digits) for name in ("postgresql", "redis")}}


class Bench:
    """One number of nodes."""

    def __init__(self, cluster: Cluster, sockets: Load, publishers: Load, count: int) -> None:
        self.cluster, self.sockets, self.publishers, self.count = cluster, sockets, publishers, count
        self.ports = cluster.grow(count)
        self.bad = 0  # events that were lost, doubled, in the wrong place or never came

    def idle(self, seconds: float = 2.0) -> dict[str, float]:
        """Return what each process uses while nothing is published, as a share of a core."""
        use = Use(self.cluster)
        time.sleep(seconds)
        return use.rates()

    def notify(self, idle: dict[str, float], *, batch: int, rate: float) -> Line:
        """Publish at the first node what nobody follows; return the CPU per event there and at each other node."""
        keys = {f"n{self.count}-b{batch}-{i}": 0 for i in range(UNFOLLOWED)}
        use = Use(self.cluster, idle)
        done = self._publish(self.ports[:1], keys, batch=batch, rate=rate, seconds=SECONDS)
        us = use.per_event(done["events"])
        others = [us[f"node-{i}"] for i in range(1, self.count)]
        return {
            "events_per_s": round(done["events"] / done["seconds"]), "publishing_node_us": round(us["node-0"]),
            "other_node_us": round(sum(others) / len(others), 1) if others else None, "redis_us": round(us["redis"], 1),
        }  # fmt: skip

    def connect(self) -> Line:
        """Connect all sockets, to conversations that do not exist yet, and create these; return what it took."""
        self.keys = [f"n{self.count}-c{i}" for i in range(CONVERSATIONS)]
        each, use, start = SOCKETS // CONVERSATIONS, Use(self.cluster), time.monotonic()
        line = {"ports": self.ports, "tokens": self.cluster.tokens, "keys": self.keys, "each": each}
        done = self.sockets.ask(connect=line)
        assert done["connected"] == SOCKETS, f"{done['connected']} of {SOCKETS} sockets have caught up"
        took = {
            "seconds": round(time.monotonic() - start, 1),
            "slowest_handshake_s": round(done["slowest_s"], 2),
            "cpu_us_per_socket": by_kind(use.per_event(SOCKETS)),
        }
        self._publish(self.ports, dict.fromkeys(self.keys, 0), batch=1, rate=0, seconds=0)
        self._collect()
        return took

    def deliver(self, idle: dict[str, float], *, batch: int, rate: float) -> Line:
        """Publish to the followed conversations; return the figures once every socket is at the head."""
        heads = self.cluster.heads(f"n{self.count}-c")
        use = Use(self.cluster, idle)
        done = self._publish(
            self.ports, {key: heads[key] for key in self.keys}, batch=batch, rate=rate, seconds=SECONDS
        )
        ended = time.monotonic()
        got = self._collect()
        us = use.per_event(done["events"])
        took = got["last"] - done["began"]
        return {
            "stored_per_s": round(done["events"] / done["seconds"]), "delivered_per_s": round(got["events"] / took),
            "frames_per_s": round(got["frames"] / took), "cpu_us_per_event": by_kind(us), "same_node": got["near"],
            "other_node": got["far"], "level_after_s": round(max(0.0, got["last"] - ended), 2),
        }  # fmt: skip

    def _publish(self, ports: list[int], heads: dict[str, int], *, batch: int, rate: float, seconds: float) -> Line:
        """Publish after these heads; check that what was acknowledged is stored."""
        line = {"ports": ports, "tokens": self.cluster.tokens, "heads": heads, "lanes": LANES, "batch": batch}
        done = self.publishers.ask(**line, rate=rate, seconds=seconds)
        stored = sum(self.cluster.heads(next(iter(heads)).rstrip("0123456789")).values()) - sum(heads.values())
        assert not done["failed"], f"{done['failed']} requests to publish were refused"
        assert stored == done["events"], f"{done['events']} events were acknowledged and {stored} stored"
        return done

    def _collect(self) -> Line:
        got = self.sockets.ask(collect={"heads": self.cluster.heads(f"n{self.count}-c"), "within": LEVEL})
        wrong = {name: got[name] for name in ("behind", "closed", "lost", "doubled", "foreign") if got[name]}
        if wrong:
            print(f"{self.count} nodes: {wrong}", file=sys.stderr)
        self.bad += sum(got[name] for name in ("behind", "lost", "doubled", "foreign")) + sum(got["closed"].values())
        return got


def measure(bench: Bench) -> Line:
    """Go through the phases; return the figures."""
    quiet = bench.idle()
    notified = {
        "steady": bench.notify(quiet, batch=1, rate=RATE), "full": bench.notify(quiet, batch=BATCH, rate=0)
    }  # fmt: skip
    connected = bench.connect()
    idle = bench.idle()
    return {
        "steady": bench.deliver(idle, batch=1, rate=RATE),
        "full": bench.deliver(idle, batch=BATCH, rate=0),
        "notified": notified,
        "idle_cores": by_kind(idle, 3),
        "connected": connected,
    }


def _end(number: int, _: Any) -> None:
    """End with what was started; an OSError would be taken for one of a node's that does not answer yet."""
    raise SystemExit(f"cluster: not done within {LIMIT:.0f} s" if number == signal.SIGALRM else 1)


def main() -> int:
    """Measure each number of nodes in turn; return how many events went wrong."""
    for number in (signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, _end)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    cluster, loads, bad = Cluster(), [Load("sockets"), Load("publishers")], 0
    try:
        cluster.start()
        for count in NODES:
            bench = Bench(cluster, *loads, count)
            figures = measure(bench)
            peaks = [load.peak_mb for load in loads]
            assert max(peaks) < LOAD_MB, f"the load's processes took {peaks} MB, of at most {LOAD_MB}"
            bad += bench.bad
            common.report(
                f"cluster-{count}", ratio=float(bench.bad), target="0 lost, doubled, out of order or missing",
                met=bench.bad == 0, sockets=SOCKETS, conversations=CONVERSATIONS, **figures, load_peak_mb=peaks,
                share_of_a_core=common.share_of_a_core(),
            )  # fmt: skip
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for load in loads:
            load.close()
        cluster.close()
        common.tear_down()
    return bad


if __name__ == "__main__":
    sys.exit(bool(main()))
