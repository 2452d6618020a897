"""Which pages may open a socket with a person's cookie: scheme, host and port must all be equal (§3.5)."""

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from django.http.request import validate_host


def headers_of(scope: Mapping[str, object]) -> dict[str, str]:
    """Return an ASGI scope's headers by lower-case name; of repeated ones the last."""
    raw: Iterable[tuple[bytes, bytes]] = scope["headers"]  # type: ignore[assignment]
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in raw}


def address_of(scope: Mapping[str, object]) -> str:
    """Return the client's address, as the server saw it or as a trusted proxy forwarded it."""
    client: tuple[str, int] | None = scope.get("client")  # type: ignore[assignment]
    return client[0] if client else "unknown"


def is_ours(scope: Mapping[str, object], allowed_hosts: list[str], allowed_origins: list[str]) -> bool:
    """Return whether the Origin is the address the page was served from, or one the operator allowed.

    A missing or `null` Origin is foreign; so is a Host that is not ours (DNS rebinding).
    """
    headers = headers_of(scope)
    origin, host = headers.get("origin", ""), headers.get("host", "")
    if origin in allowed_origins:
        return True
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    name = f"[{name}]" if ":" in name else name
    if not host or not validate_host(name, allowed_hosts):
        return False
    scheme = {"ws": "http", "wss": "https"}.get(str(scope.get("scheme")), str(scope.get("scheme")))
    return origin == f"{scheme}://{host}"
