"""One trace of 32,843 spans, as somebody had it: all of it is stored once, within a bound of memory."""

import logging
from pathlib import Path

import pytest

from tests.benchmarks import common
from tests.support.doors import make_tokens
from tests.support.live import Server, on_postgresql
from tests.support.otlp import counts_of, export, span, traces
from tests.support.tiers import rounds

logger = logging.getLogger(__name__)
SPANS = 32_843
BATCH = 512


def bodies(count):
    """Make the requests: an agent's span last, each other one a call of a tool."""
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "W", "gen_ai.conversation.id": "large"}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "step", "gen_ai.conversation.id": "large"}
    arguments = {"gen_ai.tool.call.arguments": '{"n": 1}', "gen_ai.tool.call.result": "done"}
    spans = (span("step", tool | arguments, number=n, parent=1, start=n / 1000) for n in range(2, count + 1))
    batch = []
    for each in spans:
        batch.append(each)
        if len(batch) == BATCH:
            yield traces(*batch)
            batch = []
    yield traces(*batch, span("agent", agent, number=1, took=count / 1000))


def stored(server, count):
    """Send it twice; return what the record holds, and the CPU seconds and peak MiB it took."""
    caller = make_tokens(server)["admin"]
    before, peak_before = common.cpu_of(server.process.pid), peak(server)
    for body in bodies(count):
        assert export(caller, body).status == 200
    took, grown = common.cpu_of(server.process.pid) - before, peak(server) - peak_before
    for body in bodies(count):
        assert export(caller, body).status == 200
    return counts_of(server, "large"), took, grown


def peak(server):
    """Return the most memory that a server has had, in MiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


@pytest.mark.thorough
def test_a_trace_of_32_843_spans_is_stored_once_within_a_bound_of_memory(tmp_path):
    server = Server(tmp_path / "data").start()
    try:
        counts, took, grown = stored(server, SPANS)
    finally:
        server.terminate()

    logger.info("%s spans: %.1f s of CPU, %.0f µs a span, %.0f MiB at the peak", SPANS, took, took / SPANS * 1e6, grown)
    assert (counts.calls, counts.agents, counts.errors) == ({"step": SPANS - 1}, {"agent", "W"}, 0)
    assert grown < 200


@pytest.mark.thorough
def test_postgresql_holds_the_same(tmp_path, cluster):
    count = rounds(600, 3_000)
    server = Server(tmp_path / "data", **on_postgresql(cluster.create("telemetry"))).start()
    try:
        counts, *_ = stored(server, count)
    finally:
        server.terminate()

    assert (counts.calls, counts.errors) == ({"step": count - 1}, 0)
