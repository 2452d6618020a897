"""Where `serve` listens, for people: the addresses, what is wrong with one, a warning if the network can reach it."""

import errno
import ipaddress
import socket
from collections.abc import Sequence
from contextlib import suppress

from conversations.core.errors import Unavailable

MAX_PORT = 65_535

PLAIN_HTTP = (
    "Warning: --host {host} accepts plain HTTP from the network: anyone who can reach port {port} can read it,\n"
    "including passwords and tokens. Put a TLS proxy in front and set SWITCHBOARD_ORIGINS=https://NAME."
)
UNNAMED = (
    "Browsers on other machines get error 400 until SWITCHBOARD_ORIGINS lists the address they use, such as\n"
    "http://192.0.2.10:{port}."
)


def ensure_free(host: str, port: int) -> None:
    """Bind every address that a host stands for, and let go of it. Raises Unavailable with what the system says."""
    try:
        addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise Unavailable(f"--host {host} must be an address of this machine or a name that it resolves") from None
    for family, type_, protocol, _, address in addresses:
        try:
            probe = socket.socket(family, type_, protocol)
        except OSError:  # a machine without IPv6: the event loop leaves the address out, too
            continue
        with probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            try:
                probe.bind(address)
            except OSError as error:
                raise Unavailable(_why_not(host, port, error)) from None


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is already in use: stop the program that listens there, or choose another with --port"
    return f"--host {host} --port {port} cannot be used: {error.strerror}"


def is_wildcard(host: str) -> bool:
    """Return whether a host means every interface: `0.0.0.0`, `::`, or empty."""
    return host in ("", "0.0.0.0", "::")  # compared, not bound


def local_url(host: str, port: int) -> str:
    """Return the URL at which this machine reaches the server; for a wildcard host that of its loopback."""
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


def public_url(host: str, port: int, origins: Sequence[str]) -> str:
    """Return the URL for people: the first `https` origin, else the first origin, else the local one."""
    secure = [origin for origin in origins if origin.startswith("https://")]
    return [*secure, *origins, local_url(host, port)][0].rstrip("/")


def warning(host: str, port: int, origins: Sequence[str]) -> str:
    """Return what to print when the network can reach the server without TLS; empty on loopback."""
    if _is_loopback(host):
        return ""
    sentences = [PLAIN_HTTP.format(host=host, port=port)]
    if is_wildcard(host) and not origins:
        sentences.append(UNNAMED.format(port=port))
    return "\n".join(sentences)


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
