"""Whose request it is behind a proxy: where the peer is one of `SWITCHBOARD_PROXIES`, the address it forwards.

Read from the right, as each proxy adds the address it saw at the end: the first one that is no proxy of ours is the
client. What stands further left the client may have written itself.
"""

import ipaddress
from collections.abc import Sequence
from contextlib import suppress

from conversations.doors.http import Scope

HEADER = b"x-forwarded-for"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def seen_through(scope: Scope, proxies: Sequence[Network]) -> Scope:
    """Answer the scope with the client's own address where a trusted proxy tells it; else as it is."""
    if not proxies or not (peer := scope.get("client")):
        return scope
    told = ",".join(value.decode("latin-1") for name, value in scope["headers"] if name == HEADER)
    chain = [*told.split(","), peer[0]] if told else [peer[0]]
    client = peer[0]
    for text in reversed(chain):
        address = _address(text)
        if address is None:  # what a trusted proxy should not say: the last one that is sure
            break
        client = str(address)
        if not any(address in network for network in proxies):
            break
    return {**scope, "client": (client, peer[1])} if client != peer[0] else scope


def _address(text: str) -> Address | None:
    """Read an address, also one with a port behind it."""
    text = text.strip()
    bare = text[1:].partition("]")[0] if text.startswith("[") else text
    for tried in (bare, bare.partition(":")[0]):
        with suppress(ValueError):
            address = ipaddress.ip_address(tried)
            return getattr(address, "ipv4_mapped", None) or address
    return None
