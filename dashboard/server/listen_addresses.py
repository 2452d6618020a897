"""Where `serve` listens, in words: the addresses, and a warning where the network can reach it."""

import ipaddress
from collections.abc import Sequence
from contextlib import suppress

PLAIN_HTTP = (
    "Warning: --host {host} accepts plain HTTP from the network: anyone who can reach port {port} can read it,\n"
    "including passwords and tokens. Put a TLS proxy in front and set SWITCHBOARD_ORIGINS=https://NAME."
)
UNNAMED = (
    "Browsers on other machines get error 400 until SWITCHBOARD_ORIGINS lists the address they use, such as\n"
    "http://192.0.2.10:{port}."
)


def is_wildcard(host: str) -> bool:
    """Return whether a host means every interface: `0.0.0.0`, `::`, or empty."""
    return host in ("", "0.0.0.0", "::")  # compared, not bound


def local_url(host: str, port: int) -> str:
    """Return an address that this machine reaches the server by; for a wildcard its loopback."""
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


def public_url(host: str, port: int, origins: Sequence[str]) -> str:
    """Return the address for people: the first `https` origin, else the first origin, else the local one."""
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
