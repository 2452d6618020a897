"""Determine the client's address behind a proxy: if the peer is one of `SWITCHBOARD_PROXIES`, the address it forwards.

The header is read from the right, since each proxy appends the address it saw: the first address that is not one of our
proxies is the client. Anything further left may be forged by the client. uvicorn's proxy middleware reads it the same
way, but accepts values that are not addresses (`unknown`, `<script>`), keeps several spellings of one address, which a
throttle would count separately, and trusts no IPv4 proxy that connects to an IPv6 socket.
"""

import ipaddress
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

from conversations.asgi.route import Scope
from conversations.core.outbound_address import Address, Network

HEADER = b"x-forwarded-for"
MAX_ADDRESS = 64  # characters, with brackets, zone and port


def apply_forwarded_for(scope: Scope, proxies: Sequence[Network]) -> Scope:
    """Return the scope with the client's own address if a trusted proxy forwards it; else unchanged."""
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
    """Return whether a connection comes from one of our proxies, including IPv4 on an IPv6 socket."""
    address = _address(peer[0]) if peer else None
    return address is not None and _is_within(address, proxies)


def _is_within(address: Address, proxies: Sequence[Network]) -> bool:
    return any(address in network for network in proxies)


def _address(text: str) -> Address | None:
    """Parse an IP address, with or without a port; None if it is none."""
    return _parsed(text) if len(text) <= MAX_ADDRESS else None


@lru_cache(4096)
def _parsed(text: str) -> Address | None:
    bare = text[1:].partition("]")[0] if text.startswith("[") else text
    for tried in (bare, bare.partition(":")[0]):
        with suppress(ValueError):
            address = ipaddress.ip_address(tried)
            return getattr(address, "ipv4_mapped", None) or address
    return None
