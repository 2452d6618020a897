"""Variables of settings: their names, their values (lists, pairs, origins, addresses), and what is wrong with one."""

import difflib
import ipaddress
import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from pydantic_core import ErrorDetails, PydanticCustomError

from conversations.core.errors import as_predicate
from conversations.core.outbound_address import is_host_name

SECRETS = (
    "secret_key",
    "agui_agents",
    "database_url",
    "redis_url",
    "email_url",
    "otlp_endpoint",
    "otlp_headers",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
)

_ADDRESS = r"[^\s<>@,]+@[^\s<>@,]+"
_SENDER = re.compile(rf"{_ADDRESS}|[^<>]*<{_ADDRESS}>")
PREFIX = "SWITCHBOARD_"
# Of the client library and of the tests.
OF_OTHERS = (
    "SWITCHBOARD_URL",
    "SWITCHBOARD_TOKEN",
    "SWITCHBOARD_SPOOL_DIR",
    "SWITCHBOARD_TEST",
    "SWITCHBOARD_FAILPOINT",
)


def variable_name(setting: str) -> str:
    """Return the variable of a setting; those of OpenAI's own clients keep their names."""
    return setting if setting.isupper() else f"{PREFIX}{setting.upper()}"


def unknown_variables(variables: Iterable[str], known: Collection[str]) -> list[str]:
    """Return a warning for each variable with our prefix that is not a setting; it names a similar setting."""
    ours = (name for name in variables if name.startswith(PREFIX) and not name.startswith(OF_OTHERS))
    return [_warning(name, known) for name in sorted(ours) if name not in known]


def _warning(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(
        name.removeprefix(PREFIX), [setting.removeprefix(PREFIX) for setting in known], n=1
    )
    return f"Warning: there is no setting {name}" + (f"; did you mean {PREFIX}{close[0]}?" if close else "")


def describe_error(error: ErrorDetails) -> str:
    """Name the variable; a value is repeated unless it may hold a secret."""
    message = as_predicate(error["msg"])
    if not error["loc"]:
        return message
    name = str(error["loc"][0])
    got = "" if name in SECRETS or "; got " in message else f"; got {error['input']!r}"
    return f"{variable_name(name)}: {message}{got}"


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
    return port != 0 and not netloc.endswith(":") and _is_host(hostname_of(text))


def _is_host(text: str) -> bool:
    """Return whether it is one host: Django would take `*` and `.example` for many."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return is_host_name(text)
    return True


def expect_origins(value: str) -> str:
    """Refuse a list with anything but origins."""
    for part in parts_of(value):
        if not is_origin(part):
            raise ValueError(f"must be scheme://host[:port], comma-separated; got {part!r}")
    return value


def expect_networks(value: str) -> str:
    """Refuse a list with anything but addresses and networks."""
    for part in parts_of(value):
        try:
            ipaddress.ip_network(part)
        except ValueError:
            raise ValueError(f"must be addresses or networks such as 10.0.0.0/8; got {part!r}") from None
    return value


def expect_file(path: Path) -> Path:
    """Refuse a directory."""
    if os.path.isdir(path):  # False also where it may not be looked at
        raise ValueError("must be a file, and it is a directory")
    return path


def expect_sender(value: str) -> str:
    """Refuse anything but the sender of an e-mail."""
    if not (value.isprintable() and _SENDER.fullmatch(value)):
        raise ValueError("must be an e-mail address, or a name and <an address>")
    return value


def hostname_of(origin: str) -> str:
    """Return the host of an origin; empty when there is none that can be read."""
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""


def expect_redis(url: str) -> str:
    """Refuse an address of another kind, and one that names a database by no number: the client would take number 0,
    or join the numbers of a path."""
    parts = urlsplit(expect_scheme(url, "redis", "rediss", path="/number"))
    numbers = [*filter(None, [parts.path.strip("/")]), *parse_qs(parts.query, True).get("db", ())]
    if not all(re.fullmatch("[0-9]{1,9}", number) for number in numbers):
        raise PydanticCustomError("address", "must be redis://host[:port]/number: the database is a number")
    return url


def expect_scheme(url: str, *schemes: str, path: str = "") -> str:
    """Refuse an address of another kind, without a host, or whose port is none. It may hold a password: never said."""
    expected = f"must be {schemes[0]}://host[:port]{path}"
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError:  # urllib's own words may repeat a part of the password
        raise PydanticCustomError("address", f"{expected}; a user and a password are percent-encoded") from None
    if url and not (parts.scheme in schemes and parts.hostname and has_port):
        raise PydanticCustomError("address", f"{expected}; got {parts.scheme or '?'}://…")
    return url
