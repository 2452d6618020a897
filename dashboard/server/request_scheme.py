"""Determine which scheme the browser used: `https` behind a proxy that terminates TLS. Called by `asgi` for every
request and socket.

Cookies, links, the content security policy and HSTS follow the scheme, so it must not depend on an untrusted peer: the
request is secure if its Host is an `https` origin of `SWITCHBOARD_ORIGINS`, or if a trusted proxy forwards that scheme.
"""

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from conversations.asgi.route import Scope, header
from conversations.core.outbound_address import PORTS, Network
from dashboard.server.trusted_proxies import is_trusted

FORWARDED = b"x-forwarded-proto"
SECURE = {"http": "https", "ws": "wss"}


def https_hosts(origins: Iterable[str]) -> frozenset[bytes]:
    """Return the Host headers, in lower case, that occur only in `https` origins; a host listed with both schemes is
    left out."""
    hosts: dict[str, set[bytes]] = {"http": set(), "https": set()}
    for origin in origins:
        parts = urlsplit(origin.lower())
        port = PORTS[parts.scheme]
        host = parts.netloc.removesuffix(f":{port}")
        names = (host,) if parts.port not in (None, port) else (host, f"{host}:{port}")
        hosts[parts.scheme].update(name.encode() for name in names)
    return frozenset(hosts["https"] - hosts["http"])


def with_browser_scheme(scope: Scope, secure_hosts: frozenset[bytes], proxies: Sequence[Network]) -> Scope:
    """Return the scope with scheme `https` or `wss` if the browser used TLS; else unchanged."""
    scheme = SECURE.get(scope.get("scheme", ""))
    if scheme is None or not (secure_hosts or proxies):
        return scope
    is_secure = header(scope, b"host").lower() in secure_hosts or _forwards_https(scope, proxies)
    return {**scope, "scheme": scheme} if is_secure else scope


def _forwards_https(scope: Scope, proxies: Sequence[Network]) -> bool:
    """Return whether the peer is a trusted proxy and the last scheme it forwards is secure."""
    last = header(scope, FORWARDED).rpartition(b",")[2].strip().lower()
    return last in (b"https", b"wss") and is_trusted(scope.get("client"), proxies)
