"""What a server tells of itself: /healthz, /readyz, /metrics, its node row, and the id of each request."""

import http.client
import json
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from prometheus_client.parser import text_string_to_metric_families

from conversations.asgi.metrics import MetricsCollector
from conversations.models import Conversation
from conversations.realtime import node_facts
from conversations.realtime.server_runtime import ServerRuntime
from tests.support.doors import Caller
from tests.support.live import Server, until


def get(server, path, **headers):
    """Return status, headers and text."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def figures(server, token):
    status, headers, text = get(server, "/metrics", Authorization=f"Bearer {token}")
    assert (status, headers.get_content_type()) == (200, "text/plain")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture(scope="module")
def server(redis_server):
    live = Server(SWITCHBOARD_REDIS_URL=redis_server.url, SWITCHBOARD_LOG="json").start()
    live.secret = live.token()
    yield live
    live.kill()


def ready(server):
    status, _, text = get(server, "/readyz")
    return status, json.loads(text)


@pytest.mark.slow
def test_each_part_is_told(server):
    until(lambda: not ready(server)[1]["degraded"], what="the layer to be heard and the agents to be there")

    status, body = ready(server)

    assert (status, body["ok"], body["not_ready"], body["degraded"]) == (200, True, [], [])
    parts = {"server", "database", "migrations", "writer", "layer", "search", "alerts", "retention", "signing"}
    assert parts <= body["parts"].keys()
    assert get(server, "/healthz")[0] == 200


def test_metrics_are_for_those_with_the_right(server):
    viewer = server.token("looker", "viewer")

    assert get(server, "/metrics")[0] == 401
    assert get(server, "/metrics", Authorization="Bearer wrong")[0] == 401
    assert get(server, "/metrics", Authorization=f"Bearer {viewer}")[0] == 403
    assert get(server, "/metrics", Authorization=f"Bearer {server.secret}")[0] == 200


def test_metrics_name_the_methods_that_they_have(server):
    answer = Caller(server, server.secret).ask("POST", "/metrics", b"{}")

    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert answer.body["error"] == {"code": "method_not_allowed", "message": "method must be GET, HEAD"}


def test_metrics_count_what_happened(server):
    before = figures(server, server.secret)
    for n in range(3):
        server.publish(server.secret, "stream:counted", {"event": "log", "n": n})
    server.publish(server.secret, "wrong", {"event": "log"})

    after = figures(server, server.secret)

    def more(*name):
        return after[name] - before.get(name, 0)

    assert more("switchboard_events_stored_total") == 3
    assert more("switchboard_stored_bytes_total") > 3 * len('{"event":"log","n":0}') - 1
    assert 1 <= more("switchboard_commits_total") <= 3
    assert (more("switchboard_publishes_total", "201"), more("switchboard_publishes_total", "400")) == (3, 1)
    assert after[("switchboard_queue_bytes",)] == 0
    assert (after[("switchboard_held_bytes", "rings")], after[("switchboard_held_bytes", "followers")]) == (0, 0)
    assert (after[("switchboard_sockets",)], after[("switchboard_response_readers",)]) == (0, 0)
    assert after[("switchboard_ring_drops_total",)] == 0
    assert after[("switchboard_doorbell_age_seconds",)] < 4
    assert after[("switchboard_layer_up",)] == 1


def test_metrics_count_what_actions_imports_and_forks_store(server):
    def counted():
        metrics = figures(server, server.secret)
        with server.database() as database:
            (events,) = database.execute("SELECT count(*) FROM conversations_event").fetchone()
        return events, metrics["switchboard_events_stored_total",], metrics["switchboard_commits_total",]

    server.publish(server.secret, "stream:acted", {"event": "log"}, "first")
    before = counted()
    lines = b'{"conversation": "in"}\n{"payload": {"event": "log", "conversation_id": "in"}}\n{"end": 1}\n'
    for path, body in (
        ("publish", b'{"topic": "stream:acted", "payload": {"event": "log"}, "id": "first"}'),  # stored already
        ("conversations/acted/control", b'{"action": "pause"}'),
        ("import", lines),
        ("conversations/acted/forks", b'{"at": 1}'),  # a copy, and its own first event
    ):
        assert server.request("POST", f"/api/v1/{path}", body, server.secret)[0] < 300

    more = [now - then for now, then in zip(counted(), before, strict=True)]
    assert more == [4, 4, 4]


def test_the_server_has_a_row_of_its_own(server):
    def row():
        with server.database() as database:
            row = database.execute("SELECT facts FROM conversations_node WHERE kind='web'").fetchone()
        return json.loads(row[0]) if row else None

    facts = until(row, what="the first beat")

    wanted = {"sockets", "queue_bytes", "commits", "rows", "events_per_s", "doorbell_age_s", "layer", "warnings"}
    wanted |= {"rings_bytes", "rings_limit", "followers_bytes", "followers_limit", "response_readers"}
    assert wanted <= facts.keys()
    assert facts["warnings"] == []
    assert {"python", "django", "sqlite", "redis"} <= facts["versions"].keys()


def test_a_request_keeps_the_id_it_brought(server):
    assert get(server, "/healthz", **{"X-Request-ID": "proxy-1.a:b"})[1].get_all("X-Request-ID") == ["proxy-1.a:b"]
    assert get(server, "/sign-in/", **{"X-Request-ID": "proxy-2"})[1].get_all("X-Request-ID") == ["proxy-2"]


@pytest.mark.parametrize("unfit", ["a b", "x" * 65, "<script>", ""])
def test_an_unfit_id_is_not_taken(server, unfit):
    (number,) = get(server, "/healthz", **{"X-Request-ID": unfit})[1].get_all("X-Request-ID")

    assert re.fullmatch("[0-9a-f]{12}", number)


def test_the_error_page_names_the_id(server):
    _, _, text = get(server, "/nowhere/", **{"X-Request-ID": "seek-me", "Authorization": f"Bearer {server.secret}"})

    assert "seek-me" in text


@pytest.mark.django_db
def test_a_missing_index_is_found_out():
    assert node_facts.missing_indexes() == []
    index = Conversation._meta.indexes[0]

    with connection.cursor() as cursor:
        cursor.execute(f"DROP INDEX {index.name}")

    (warning,) = node_facts.missing_indexes()
    assert index.name in warning


def test_metrics_are_collected_in_a_thread_while_feeds_come_and_go():
    runtime, is_read = ServerRuntime(), threading.Event()
    subscribers = [threading.Event() for _ in range(300)]  # anything: nothing is sent to them
    for n, subscriber in enumerate(subscribers):
        runtime.hub.follow(f"c{n}", "data", subscriber)
    collector = MetricsCollector(runtime)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(lambda: [len(list(collector.collect())) for _ in range(200)])
            reading.add_done_callback(lambda _: is_read.set())
            while not is_read.is_set():
                runtime.hub.leave(runtime.hub.follow("new", "data", subscribers[0]), subscribers[0])
        counts = reading.result()
    finally:
        sys.setswitchinterval(before)

    assert len(counts) == 200
