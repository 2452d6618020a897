"""The socket of a real server: who gets in, who is put out, who is too slow."""

import json
import resource
import socket
import threading
import time
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from conversations.realtime.socket_writer import SLOW_AFTER
from tests.support.live import Server, until
from tests.support.stuck import StuckReader
from tests.support.tiers import variants

SECRET = "a long enough password"


@pytest.fixture(scope="module")
def server():
    live = Server().start()
    live.secret = live.token()
    live.cookie = sign_in(live, "walter")
    yield live
    live.kill()


def open_socket(server, *, cookie="", origin="", token="", **more):
    headers = {}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if cookie:
        headers["Cookie"] = f"switchboard_session={cookie}"
    url = f"ws://127.0.0.1:{server.port}/ws/"
    return connect(url, additional_headers=headers, origin=origin or None, compression=None, **more)


def receive(ws, kind, within=10.0):
    """Return the next frame of this kind."""
    deadline = time.monotonic() + within
    while True:
        frame = json.loads(ws.recv(timeout=max(0.01, deadline - time.monotonic())))
        if frame["t"] == kind:
            return frame


def subscribe(ws, topic, **more):
    ws.send(json.dumps({"op": "subscribe", "topic": topic, **more}))


def sign_in(server, name, role="viewer"):
    """Make a person and a session for them; return its key."""
    code = (
        "from conversations.models import User;"
        "from conversations.access.accounts import people;"
        "from conversations.core.principals import SYSTEM;"
        "from django.contrib.sessions.backends.db import SessionStore;"
        f"u=User.objects.filter(username='{name}').first() or people.create_person(SYSTEM, '{name}', []);"
        f"u.set_password('{SECRET}'); u.save(); people.set_roles(SYSTEM, '{name}', ['{role}']);"
        "s=SessionStore(); s['_auth_user_id']=str(u.pk);"
        "s['_auth_user_backend']='django.contrib.auth.backends.ModelBackend';"
        "s['_auth_user_hash']=u.get_session_auth_hash(); s.save(); print(s.session_key)"
    )
    return server.command("shell", "--no-imports", "-c", code).strip().splitlines()[-1]


def run(server, code):
    server.command("shell", "--no-imports", "-c", f"from conversations.models import User, Role\n{code}")


@pytest.mark.slow
def test_events_reach_a_subscriber_in_order_and_once(server):
    with open_socket(server, token=server.secret) as ws:
        subscribe(ws, "stream:order", after=0)
        receive(ws, "caught_up")

        for i in range(20):
            assert server.publish(server.secret, "stream:order", {"event": "log", "n": i})[0] == 201

        seen = []
        while len(seen) < 20:
            seen += [(e["seq"], e["body"]["n"]) for e in receive(ws, "events")["events"]]
    assert seen == [(i + 1, i) for i in range(20)]


@pytest.mark.slow
def test_resume_after_a_seq_sends_what_came_after_it(server):
    for i in range(5):
        server.publish(server.secret, "stream:resume", {"event": "log", "n": i})

    with open_socket(server, token=server.secret) as ws:
        subscribe(ws, "stream:resume", after=3)

        assert [e["seq"] for e in receive(ws, "events")["events"]] == [4, 5]
        assert receive(ws, "caught_up")["seq"] == 5


@pytest.mark.parametrize("after", [10, 10**12])
def test_whoever_is_no_admin_and_claims_to_have_seen_more_moves_nobody_else(server, after):
    server.publish(server.secret, f"stream:claimed-{after}", {"event": "log"})

    with open_socket(server, token=server.token(f"claims-{after}", "viewer")) as ws:
        subscribe(ws, f"stream:claimed-{after}")
        epoch = receive(ws, "caught_up")["epoch"]
        subscribe(ws, f"stream:claimed-{after}", after=after, epoch=epoch)

        assert receive(ws, "reset")["epoch"] == epoch
        assert [e["seq"] for e in receive(ws, "events")["events"]] == [1]


def test_a_client_that_has_seen_more_than_there_is_starts_a_new_epoch(server):
    server.publish(server.secret, "stream:restored", {"event": "log"})

    with open_socket(server, token=server.secret) as ws:
        subscribe(ws, "stream:restored")
        epoch = receive(ws, "caught_up")["epoch"]
        subscribe(ws, "stream:restored", after=10, epoch=epoch)

        assert receive(ws, "reset")["epoch"] != epoch
        assert [e["seq"] for e in receive(ws, "events")["events"]] == [1]


def test_wrong_frames_are_answered_with_what_was_expected(server):
    with open_socket(server, token=server.secret) as ws:
        for wrong in [
            "{",
            "[]",
            '{"op":"publish"}',
            '{"op":"subscribe","topic":"secret:x"}',
            '{"op":"subscribe","topic":"stream:\\ud800"}',
            '{"op":"subscribe","topic":"stream:x","after":-1}',
        ]:
            ws.send(wrong)

            assert receive(ws, "error")["message"]


def test_a_frame_over_64_kb_closes_1009(server):
    with open_socket(server, token=server.secret) as ws:
        ws.send("x" * (64 * 1024 + 1))

        with pytest.raises(ConnectionClosed) as closed:
            ws.recv(timeout=60)
    assert closed.value.rcvd.code == 1009


@pytest.mark.parametrize(
    "origin",
    [
        "http://127.0.0.1:1",
        "https://127.0.0.1:{port}",
        "null",
        "http://evil.example:{port}",
        "http://localhost:{port}",
        "",
    ],
)
def test_foreign_origins_are_refused(server, origin):
    with pytest.raises(InvalidStatus) as refused:
        open_socket(server, cookie=server.cookie, origin=origin.format(port=server.port))

    assert refused.value.response.status_code == 403


def test_a_rebound_host_is_refused_even_when_its_origin_agrees(server):
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(
            f"GET /ws/ HTTP/1.1\r\nHost: evil.example:{server.port}\r\nOrigin: http://evil.example:{server.port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            f"Sec-WebSocket-Version: 13\r\nCookie: switchboard_session={server.cookie}\r\n\r\n".encode()
        )

        assert b" 403 " in raw.recv(4096).splitlines()[0]


@pytest.mark.parametrize("cookie", ["", "nonsense"])
def test_without_a_session_it_closes_4401(server, cookie):
    with open_socket(server, cookie=cookie, origin=server.url) as ws, pytest.raises(ConnectionClosed) as closed:
        ws.recv(timeout=60)

    assert closed.value.rcvd.code == 4401


ENDS = {
    "sign-out": (
        "from django.contrib.sessions.models import Session; Session.objects.exclude(session_key=None).delete()",
        4401,
    ),
    "password": ("u=User.objects.get(username='vera'); u.set_password('another long one'); u.save()", 4401),
    "deactivation": ("User.objects.filter(username='vera').update(is_active=False)", 4401),
    "role": ("Role.objects.filter(user__username='vera').delete()", 4403),
}


@pytest.mark.parametrize("how", variants(ENDS))
def test_revocation_closes_an_open_socket_within_a_second_without_a_notification(server, how):
    code, expected = ENDS[how]
    run(server, "User.objects.filter(username='vera').update(is_active=True)")
    cookie = sign_in(server, "vera")
    ended = []
    with open_socket(server, cookie=cookie, origin=server.url) as ws:
        subscribe(ws, "stream:secret", after=0)
        receive(ws, "caught_up")
        revoked_at = []
        # Another process revokes: the server is not notified. The moment of the commit is taken inside it.
        thread = threading.Thread(target=lambda: revoked_at.append(committed(server, code)))
        thread.start()
        with pytest.raises(ConnectionClosed) as closed:
            drain(ws)
        ended.append(time.time())
        thread.join()

    assert closed.value.rcvd.code == expected
    assert ended[0] - revoked_at[0] <= 1.0


SET_ROLES = """
from conversations.access.accounts import people
from conversations.core.principals import SYSTEM
people.set_roles(SYSTEM, "walda", ['{}'])
"""


@pytest.mark.slow
def test_who_loses_the_right_to_the_audit_log_is_told_of_no_further_entry(server):
    cookie = sign_in(server, "walda", "auditor")
    run(server, SET_ROLES.format("auditor', 'viewer"))
    with open_socket(server, cookie=cookie, origin=server.url) as ws:
        subscribe(ws, "audit")
        receive(ws, "rows")
        run(server, SET_ROLES.format("viewer"))
        with pytest.raises(ConnectionClosed) as closed:
            drain(ws)

    assert closed.value.rcvd.code == 1012
    with open_socket(server, cookie=cookie, origin=server.url) as ws:
        subscribe(ws, "audit")
        assert receive(ws, "error")["message"] == "user:walda may not view this topic"


def drain(ws):
    """Read until the connection closes."""
    while True:
        ws.recv(timeout=60)


def committed(server, code):
    """Run code in another process; return when it was done there."""
    text = f"from conversations.models import User, Role\n{code}\nimport time; print(time.time())"
    return float(server.command("shell", "--no-imports", "-c", text).strip().splitlines()[-1])


@pytest.mark.thorough
def test_readers_that_stop_reading_are_hung_up_on_and_resume_without_a_hole(server):
    stuck = [StuckReader(server.port, server.secret, "stream:stuck") for _ in range(50)]
    memory = rss(server)

    for _ in range(120):  # 24 MB for each reader: more than any buffer on the way
        server.publish(server.secret, "stream:stuck", {"event": "log", "filler": "x" * 200_000})
    grown, published = rss(server) - memory, time.monotonic()
    until(lambda: time.monotonic() > published + SLOW_AFTER + 2, within=60, what="the time a reader has")

    assert grown < 80 << 20
    for reader in stuck:
        seqs, code = reader.read_to_the_end()
        assert code == 4408
        assert seqs == list(range(1, len(seqs) + 1))
        assert len(seqs) < 120
    with open_socket(server, token=server.secret, max_size=None) as ws:
        subscribe(ws, "stream:stuck", after=seqs[-1])
        rest = []
        while not rest or rest[-1] < 120:
            rest += [e["seq"] for e in receive(ws, "events")["events"]]
    assert rest == list(range(seqs[-1] + 1, 121))


def rss(server):
    """The server's resident memory in bytes."""
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()
