"""Whose request it is behind a proxy: where the peer is one of `SWITCHBOARD_PROXIES`, the address it forwards.

Read from the right, as each proxy adds the address it saw at the end: the first one that is no proxy of ours is the
client. What stands further left the client may have written itself. uvicorn's middleware for proxies reads it likewise,
but takes what is no address (`unknown`, `<script>`) for the client, gives one address several spellings, by which the
throttle would count apart, and trusts no IPv4 proxy that reaches an IPv6 socket.
"""

import ipaddress
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

from conversations.asgi.route import Scope

HEADER = b"x-forwarded-for"
MAX_ADDRESS = 64  # characters, with brackets, zone and port
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def apply_forwarded_for(scope: Scope, proxies: Sequence[Network]) -> Scope:
    """Return the scope with the client's own address where a trusted proxy tells it; else as it is."""
    if not proxies or not (peer := scope.get("client")):
        return scope
    forwarded = ",".join(value.decode("latin-1") for name, value in scope["headers"] if name == HEADER)
    chain = [*forwarded.split(","), peer[0]] if forwarded else [peer[0]]
    client = peer[0]
    for text in reversed(chain):
        address = _address(text.strip())
        if address is None:  # what a trusted proxy should not say: the last one that is sure
            break
        client = str(address)
        if not _is_within(address, proxies):
            break
    return {**scope, "client": (client, peer[1])} if client != peer[0] else scope


def is_trusted(peer: tuple[str, int] | None, proxies: Sequence[Network]) -> bool:
    """Return whether a connection comes from a proxy of ours, IPv4 on an IPv6 socket too."""
    address = _address(peer[0]) if peer else None
    return address is not None and _is_within(address, proxies)


def _is_within(address: Address, proxies: Sequence[Network]) -> bool:
    return any(address in network for network in proxies)


def _address(text: str) -> Address | None:
    """Read an address, also one with a port behind it."""
    return _parsed(text) if len(text) <= MAX_ADDRESS else None


@lru_cache(4096)
def _parsed(text: str) -> Address | None:
    bare = text[1:].partition("]")[0] if text.startswith("[") else text
    for tried in (bare, bare.partition(":")[0]):
        with suppress(ValueError):
            address = ipaddress.ip_address(tried)
            return getattr(address, "ipv4_mapped", None) or address
    return None
