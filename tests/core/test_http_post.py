"""One POST: to an address that was checked, within its time, and of the answer only the status."""

import asyncio
import socket
import ssl
from contextlib import ExitStack, contextmanager

import pytest

from conversations.core import http_post
from conversations.core.http_post import Answer, PostFailed
from conversations.core.outbound_address import NONE, AddressRefused, AllowList
from tests.support.alerting import receiving
from tests.support.live import until

LOOPBACK = AllowList.of(["127.0.0.1"])


def post(url, *, allowed=LOOPBACK, timeout_s=10.0, resolver=http_post.resolve, body=b"{}", **headers):
    return asyncio.run(http_post.post(url, headers, body, allowed=allowed, timeout_s=timeout_s, resolver=resolver))


def answering(*rounds):
    """A resolver that gives other addresses each time it is asked."""
    left = list(rounds)

    async def resolve(host, port):
        return left.pop(0)

    return resolve


@pytest.fixture
def receiver():
    with receiving() as receiver:
        yield receiver


def serve(respond):
    """Run a raw server for one request; return what `during(port)` gives."""

    async def main(during):
        ended = asyncio.Event()

        async def handle(reader, writer):
            try:
                await reader.readuntil(b"\r\n\r\n")
                await respond(writer)
                await writer.drain()
            except ConnectionError:  # the sender has left
                pass
            finally:
                writer.close()
                ended.set()

        async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
            try:
                return await during(server.sockets[0].getsockname()[1])
            finally:
                await ended.wait()

    return main


def post_raw(respond, timeout_s=10.0):
    async def during(port):
        url = f"http://127.0.0.1:{port}/"
        return await http_post.post(url, {}, b"{}", allowed=LOOPBACK, timeout_s=timeout_s)

    return asyncio.run(serve(respond)(during))


def test_a_request_arrives_as_it_is_meant(receiver):
    answer = post(receiver.url + "?a=b", body=b'{"x":1}', **{"webhook-id": "msg_1"})

    assert answer == Answer(200)
    (request,) = receiver.posts
    assert (request.path, request.body, request.id) == ("/hook?a=b", b'{"x":1}', "msg_1")
    assert request.headers["host"] == f"127.0.0.1:{receiver.server_address[1]}"
    assert request.headers["content-type"] == "application/json"


def test_loopback_is_refused_unless_it_is_allowed(receiver):
    with pytest.raises(AddressRefused):
        post(receiver.url, allowed=NONE)

    assert receiver.requests == 0


def test_a_name_that_resolves_to_loopback_is_refused_and_is_not_connected_to(receiver):
    port = receiver.server_address[1]
    for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0"):
        with pytest.raises(AddressRefused):
            post(f"https://rebind.example:{port}/", allowed=NONE, resolver=answering([address]))

    assert receiver.requests == 0


def test_the_name_is_resolved_once_and_the_checked_address_is_what_is_connected_to(monkeypatch):
    """A DNS answer that changes after the check: nobody asks again."""
    connected = []

    async def connect(host, port, **more):
        connected.append((host, port, more["server_hostname"]))
        raise OSError("not today")

    monkeypatch.setattr(asyncio, "open_connection", connect)
    resolver = answering(["93.184.216.34"], ["127.0.0.1"])

    with pytest.raises(PostFailed, match="not today"):
        post("https://rebind.example/", allowed=NONE, resolver=resolver)
    with pytest.raises(AddressRefused):
        post("https://rebind.example/", allowed=NONE, resolver=resolver)

    assert connected == [("93.184.216.34", 443, "rebind.example")]


def test_every_address_is_tried_in_its_order(receiver):
    port = receiver.server_address[1]
    allowed = AllowList.of(["127.0.0.0/8"])

    answer = post(f"http://several.example:{port}/", allowed=allowed, resolver=answering(["127.9.9.9", "127.0.0.1"]))

    assert answer.status == 200


@contextmanager
def silent(address, port):
    """Listen at an address where no further connection is accepted or refused, as behind a firewall that drops."""
    with socket.create_server((address, port), backlog=0) as listener, ExitStack() as clients:
        for _ in range(3):
            client = clients.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield


@pytest.mark.parametrize("dead", [["127.0.0.2"], ["127.0.0.2", "127.0.0.3", "127.0.0.4"]])
def test_an_address_that_does_not_answer_leaves_time_for_the_next(receiver, dead):
    """As an IPv6 address whose packets are dropped, before an IPv4 address that works."""
    port = receiver.server_address[1]
    with ExitStack() as silence:
        for address in dead:
            silence.enter_context(silent(address, port))

        answer = post(
            f"http://hooks.example:{port}/", timeout_s=2.0, resolver=answering([*dead, "127.0.0.1"]),
            allowed=AllowList.of(["127.0.0.0/8"]),
        )  # fmt: skip

    assert (answer.status, receiver.requests) == (200, 1)


def test_addresses_that_do_not_answer_cost_the_time_and_no_more(receiver):
    port = receiver.server_address[1]
    dead = ["127.0.0.2", "127.0.0.3"]
    with silent(dead[0], port), silent(dead[1], port), pytest.raises(PostFailed, match=r"no answer within 0\.5 s"):
        post(
            f"http://hooks.example:{port}/", timeout_s=0.5, resolver=answering(dead),
            allowed=AllowList.of(["127.0.0.0/8"]),
        )  # fmt: skip


def test_a_redirect_is_an_answer_and_is_not_followed(receiver):
    receiver.answers += [302]
    receiver.headers["Location"] = receiver.url

    assert post(receiver.url).status == 302
    assert receiver.requests == 1


def test_retry_after_is_read_in_seconds_only(receiver):
    receiver.answers += [503, 503]
    receiver.headers["Retry-After"] = "120"
    assert post(receiver.url) == Answer(503, 120)
    receiver.headers["Retry-After"] = "Wed, 21 Oct 2026 07:28:00 GMT"
    assert post(receiver.url) == Answer(503)


def test_a_receiver_that_stalls_costs_its_time_and_no_more(receiver):
    receiver.answers += ["stall"]

    with pytest.raises(PostFailed, match=r"no answer within 0\.3 s"):
        post(receiver.url, timeout_s=0.3)


def test_a_receiver_that_drips_costs_its_time_and_no_more():
    async def drip(writer):
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X: y\r\n")
            await writer.drain()
            await asyncio.sleep(0.02)

    with pytest.raises(PostFailed, match="no answer within"):
        post_raw(drip, timeout_s=0.5)


def test_an_answer_without_end_is_read_up_to_a_bound():
    sent = []

    async def flood(writer):
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"X: " + b"y" * 1000 + b"\r\n")
            sent.append(1)
            await writer.drain()

    with pytest.raises(PostFailed, match="not HTTP"):
        post_raw(flood)


def test_a_large_body_is_not_waited_for():
    async def endless(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        while True:  # until the sender has left
            writer.write(b"x" * 1000)
            await writer.drain()

    assert post_raw(endless).status == 200


UPGRADE = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"


@pytest.mark.parametrize("words", [b"SSH-2.0-OpenSSH_9.9\r\n", b"\x00\x01\x02", b"HTTP/9.9 what\r\n\r\n", UPGRADE])
def test_what_is_no_http_is_told(words):
    async def respond(writer):
        writer.write(words)

    with pytest.raises(PostFailed, match=r"not HTTP|without an answer"):
        post_raw(respond)


def test_an_interim_answer_is_passed_over():
    async def respond(writer):
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")

    assert post_raw(respond).status == 204


def test_a_closed_port_and_a_closed_connection_are_failures(receiver):
    receiver.answers += ["drop"]
    with pytest.raises(PostFailed, match=r"without an answer|connection failed"):
        post(receiver.url)
    with receiving() as closed:
        url = closed.url
    with pytest.raises(PostFailed, match="connection failed"):
        post(url)


def test_a_name_that_nobody_has_is_a_failure():
    with pytest.raises(PostFailed, match="cannot be resolved"):
        post("https://nobody.invalid/", allowed=NONE)


def test_tls_is_verified():
    async def respond(writer):
        writer.write(b"never")

    context = http_post._tls()
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname

    async def during(port):
        url = f"https://127.0.0.1:{port}/"
        return await http_post.post(url, {}, b"{}", allowed=LOOPBACK, timeout_s=5.0)

    async def plain(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    async def main():
        async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
            with pytest.raises(PostFailed, match="TLS failed"):
                await during(server.sockets[0].getsockname()[1])

    asyncio.run(main())


def test_a_connection_that_ends_during_the_handshake_is_named():
    async def end(reader, writer):
        await reader.read(4096)
        writer.close()

    async def main():
        async with await asyncio.start_server(end, "127.0.0.1", 0) as server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            return await http_post.post(url, {}, b"{}", allowed=LOOPBACK, timeout_s=5.0)

    with pytest.raises(PostFailed, match=r"the connection failed: \w+"):
        asyncio.run(main())


def test_a_proxy_of_the_environment_is_not_asked(receiver, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")

    assert post(receiver.url).status == 200
    until(lambda: receiver.requests == 1)
