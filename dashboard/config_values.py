"""Values of settings: lists, pairs, origins and addresses, read from the text of a variable."""

from urllib.parse import unquote, urlsplit

from pydantic_core import PydanticCustomError


def parts_of(value: str) -> list[str]:
    """Cut a list at its commas."""
    return [part.strip() for part in value.split(",") if part.strip()]


def pairs_of(value: str) -> list[tuple[str, str]]:
    """Cut name=value, comma-separated; a value is percent-encoded."""
    cut = (part.partition("=") for part in parts_of(value))
    return [(name.strip(), unquote(text.strip())) for name, _, text in cut]


def is_origin(text: str) -> bool:
    """Return whether it is scheme://host[:port] and nothing else."""
    scheme, mark, netloc = text.partition("://")
    if scheme not in ("http", "https") or not mark or any(char in "/\\@?#" or char.isspace() for char in netloc):
        return False
    try:
        port = urlsplit(text).port
    except ValueError:  # no number, or beyond 65535
        return False
    return port != 0 and not netloc.endswith(":") and bool(hostname_of(text))


def hostname_of(origin: str) -> str:
    """Return the host of an origin; empty when there is none that can be read."""
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


def expect_scheme(url: str, *schemes: str) -> str:
    """Refuse an address of another kind, or one without a host. The address itself may hold a password: never said."""
    parts = urlsplit(url)
    if url and (parts.scheme not in schemes or not parts.hostname):
        raise PydanticCustomError("address", f"must be {schemes[0]}://host[:port]/name; got {parts.scheme or '?'}://…")
    return url
