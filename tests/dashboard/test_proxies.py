"""Whose address it is behind a proxy: only who is trusted may say."""

import asyncio
import ipaddress

import pytest
from pydantic import ValidationError

from conversations.access import origin_check
from dashboard import asgi
from dashboard.config import Config
from dashboard.server.trusted_proxies import apply_forwarded_for

PROXIES = [ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fd00::/8")]


def address(peer, *forwarded, proxies=PROXIES):
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    return apply_forwarded_for({"type": "http", "client": (peer, 1), "headers": headers}, proxies)["client"][0]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", ["203.0.113.7"], "203.0.113.7"),
        ("10.0.0.1", ["198.51.100.1, 203.0.113.7"], "203.0.113.7"),  # the left one is the client's own words
        ("10.0.0.1", ["203.0.113.7, 10.0.0.2"], "203.0.113.7"),  # through two proxies of ours
        ("10.0.0.1", ["198.51.100.1", "203.0.113.7"], "203.0.113.7"),
        ("10.0.0.1", ["203.0.113.7:4711"], "203.0.113.7"),
        ("10.0.0.1", ["[2001:db8::7]:4711"], "2001:db8::7"),
        ("fd00::1", ["2001:db8::7"], "2001:db8::7"),
        ("10.0.0.1", ["::ffff:203.0.113.7"], "203.0.113.7"),
        ("10.0.0.1", ["2001:DB8:0:0::7"], "2001:db8::7"),  # one spelling of each
        ("::ffff:10.0.0.1", ["203.0.113.7"], "203.0.113.7"),  # as an IPv6 socket names an IPv4 peer
        ("10.0.0.1", ["1" * 5000], "10.0.0.1"),
        ("10.0.0.1", ["10.0.0.3"], "10.0.0.3"),  # all of them are ours: the first one
        ("10.0.0.1", ["unknown"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.7, <script>, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),  # no proxy of ours
    ],
)
def test_the_address_is_the_first_one_from_the_right_that_is_no_proxy(peer, forwarded, client):
    assert address(peer, *forwarded) == client


def test_nobody_is_believed_by_default():
    assert Config().trusted_proxies == []
    assert address("127.0.0.1", "203.0.113.7", proxies=Config().trusted_proxies) == "127.0.0.1"


def test_a_network_that_is_none_ends_the_start():
    with pytest.raises(ValidationError, match=r"networks such as 10\.0\.0\.0/8; got 'the proxy'"):
        Config(proxies="10.0.0.0/8, the proxy")


def test_every_door_and_page_sees_the_client_a_proxy_tells_of(monkeypatch):
    seen = []

    async def answer(self, scope, receive, send):
        seen.append(origin_check.address_of(scope))

    monkeypatch.setattr(asgi, "PROXIES", PROXIES)
    monkeypatch.setattr(asgi.Application, "_answer", answer)
    scope = {
        "type": "http",
        "path": "/sign-in/",
        "client": ("10.0.0.1", 1),
        "headers": [(b"x-forwarded-for", b"203.0.113.7")],
    }

    asyncio.run(asgi.application(scope, None, None))

    assert seen == ["203.0.113.7"]
