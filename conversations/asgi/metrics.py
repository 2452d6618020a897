"""`GET /metrics` for Prometheus: this process's metrics, and the recorder's from its `Node` row.

The hot path maintains no counters for this: existing integers are collected at each scrape.
"""

import asyncio
import json
import time
from collections.abc import Iterable, Iterator
from typing import Any

from django.conf import settings
from django.http import parse_cookie
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from conversations.access import authentication, origin_check, permissions
from conversations.access.audit import refusal_counter
from conversations.asgi import route
from conversations.core import node_heartbeat
from conversations.core.errors import MethodNotAllowed, NotAllowed, NotSignedIn, SwitchboardError
from conversations.core.status import OK
from conversations.events.log.stored_totals import TOTALS
from conversations.realtime.server_runtime import ServerRuntime

METHODS = ("GET", "HEAD")
FRESH = 5.0  # seconds for which the nodes' rows are cached

# name of the metric, key of the recorder's facts, what it says
RECORDER = (
    ("switchboard_ingest_lag_seconds", "lag_s", "Age of the oldest entry read from Redis and not yet stored"),
    ("switchboard_recorder_streams", "streams", "Streams the recorder reads"),
    ("switchboard_recorder_hot_streams", "hot", "Streams it waits on"),
    ("switchboard_recorder_events_per_second", "events_per_s", "Events it stores"),
    ("switchboard_recorder_unsent_posts", "unsent_posts", "Posts that wait for the relay"),
)
RECORDER_TOTALS = (
    ("switchboard_recorder_events", "events", "Events it stored since its start"),
    ("switchboard_recorder_gaps", "gaps", "Losses it reported as record.gap events"),
    ("switchboard_recorder_quarantined", "quarantined", "Entries it put into quarantine"),
)


class MetricsEndpoint:
    """The route, bound to one server runtime. Requires the permission `metrics`, of a token or a session."""

    def __init__(self, runtime: ServerRuntime) -> None:
        self._figures = MetricsCollector(runtime)
        self._registry = CollectorRegistry()
        self._registry.register(self._figures)

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Return 200 with the text, or an error."""
        try:
            if scope["method"] not in METHODS:
                raise MethodNotAllowed(METHODS)
            await asyncio.to_thread(_require, scope)
            text = await asyncio.to_thread(self._scrape)
        except SwitchboardError as error:
            await route.refuse(send, error)
        else:
            await route.answer(send, 200, text, content_type=CONTENT_TYPE_LATEST.encode())

    def _scrape(self) -> bytes:
        self._figures.look()
        return bytes(generate_latest(self._registry))


class MetricsCollector(Collector):
    """Returns the metric families at each scrape."""

    def __init__(self, runtime: ServerRuntime) -> None:
        self._runtime = runtime
        self._looked_at = float("-inf")
        self._kinds: dict[str, int] = {}
        self._recorder: dict[str, Any] = {}  # as JSON holds it

    def look(self) -> None:
        """Read the rows of the other processes if the known ones are outdated. Sync."""
        if time.monotonic() - self._looked_at < FRESH:
            return
        alive = [node for node, is_alive in node_heartbeat.known_nodes() if is_alive]
        self._kinds = {kind: sum(node.kind == kind for node in alive) for kind in sorted({n.kind for n in alive})}
        recorders = [json.loads(node.facts) for node in alive if node.kind == "recorder"]
        self._recorder = next((recorder for recorder in recorders if recorder.get("active")), {})
        self._looked_at = time.monotonic()

    def collect(self) -> Iterable[Metric]:
        """Return every family."""
        yield from self._of_record()
        yield from self._of_readers()
        yield from self._of_broadcasts()
        yield from self._of_search()
        yield from self._of_others()

    def _of_record(self) -> Iterator[Metric]:
        writer = self._runtime.writer
        yield CounterMetricFamily("switchboard_events_stored", "Events this process stored", TOTALS.events)
        yield CounterMetricFamily("switchboard_stored_bytes", "Bytes of their bodies", TOTALS.body_bytes)
        yield CounterMetricFamily("switchboard_commits", "Transactions it stored them in", TOTALS.commits)
        yield GaugeMetricFamily("switchboard_queue_bytes", "Bytes that wait to be stored", writer.waiting_bytes)
        yield GaugeMetricFamily("switchboard_queue_jobs", "Callers that wait for it", writer.waiting_jobs)
        publishes = CounterMetricFamily("switchboard_publishes", "POST publish by status", labels=["outcome"])
        for status, count in sorted(self._runtime.publishes.items()):
            publishes.add_metric([str(status)], count)
        yield publishes
        responses = CounterMetricFamily("switchboard_responses", "Responses by how they came out", labels=["outcome"])
        for outcome, count in sorted(self._runtime.responses.items()):
            responses.add_metric([outcome], count)
        yield responses

    def _of_readers(self) -> Iterator[Metric]:
        runtime = self._runtime
        yield GaugeMetricFamily("switchboard_sockets", "Open sockets", len(runtime.socket_registry.sockets))
        words = "Requests and sockets of /v1/responses that are answered"
        yield GaugeMetricFamily("switchboard_response_readers", words, len(runtime.socket_registry.responses))
        yield GaugeMetricFamily("switchboard_feeds", "Conversations that are followed", len(runtime.hub.feeds))
        held = GaugeMetricFamily("switchboard_held_bytes", "Bytes of recent events kept for readers", labels=["for"])
        for name, budget in runtime.budgets.items():
            held.add_metric([name], budget.size)
        yield held
        yield CounterMetricFamily("switchboard_ring_drops", "Rings that had to let go", runtime.hub.rings.dropped)
        sent_bytes = runtime.socket_registry.send_gate.sent_bytes
        yield CounterMetricFamily("switchboard_sent_bytes", "Bytes sent to level readers", sent_bytes)
        drops = CounterMetricFamily("switchboard_socket_drops", "Sockets closed by us, by code", labels=["code"])
        for code, count in sorted(runtime.socket_registry.drops.items()):
            drops.add_metric([str(code)], count)
        yield drops

    def _of_broadcasts(self) -> Iterator[Metric]:
        listener = self._runtime.broadcast_listener
        if listener.age_s is not None:
            yield GaugeMetricFamily("switchboard_doorbell_age_seconds", "Since the last ring was heard", listener.age_s)
            yield GaugeMetricFamily("switchboard_layer_up", "1 while the channel layer works", listener.state == OK)

    def _of_search(self) -> Iterator[Metric]:
        indexer = self._runtime.indexer
        if indexer is not None:
            description = "Events recorded and not searchable yet"
            yield GaugeMetricFamily("switchboard_search_lag_events", description, indexer.lag.events)
            yield CounterMetricFamily("switchboard_search_indexed", "Events this process indexed", indexer.indexed)

    def _of_others(self) -> Iterator[Metric]:
        alive = GaugeMetricFamily("switchboard_nodes", "Processes of this deployment by kind", labels=["kind"])
        for kind, count in self._kinds.items():
            alive.add_metric([kind], count)
        yield alive
        for name, key, description in RECORDER:
            if _is_number(value := self._recorder.get(key)):
                yield GaugeMetricFamily(name, description, value)
        for name, key, description in RECORDER_TOTALS:
            if _is_number(value := self._recorder.get(key)):
                yield CounterMetricFamily(name, description, value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _require(scope: route.Scope) -> None:
    """Raise NotSignedIn or NotAllowed, counted as refusals; a cookie sent beside a token is ignored."""
    cookies = parse_cookie(origin_check.headers_of(scope).get("cookie", ""))
    caller = authentication.caller_of(route.bearer(scope), cookies.get(settings.SESSION_COOKIE_NAME, ""))
    if caller is None:
        refusal_counter.record_refusal(origin_check.address_of(scope), "metrics", "metrics", reason="not signed in")
        raise NotSignedIn("send Authorization: Bearer with a token that has permission to read metrics, or sign in")
    if not permissions.has_permission(caller.roles, "metrics"):
        refusal_counter.record_refusal(
            origin_check.address_of(scope), "metrics", str(caller.principal), reason="not allowed"
        )
        raise NotAllowed(f"{caller.principal} may not read metrics")
