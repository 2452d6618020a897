"""The setting `SWITCHBOARD_AGUI_AGENTS`: remote agents by name, each with its URL. No Django, no protocol."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from conversations.core import outbound_address
from conversations.core.errors import Invalid

FIELDS = ("url", "token", "description")


class RemoteAgent(NamedTuple):
    """A remote agent. `token` is sent to its URL as a bearer token."""

    name: str
    url: str
    token: str = ""
    description: str = ""


def read(text: str) -> list[RemoteAgent]:
    """Parse the setting: JSON, `{"NAME": "URL"}` or `{"NAME": {"url", "token", "description"}}`. Raises ValueError,
    whose message never contains a token."""
    if not text.strip():
        return []
    try:
        value: Any = json.loads(text)
    except ValueError:
        raise ValueError('must be JSON: {"NAME": {"url": "https://…"}}') from None
    if not isinstance(value, dict):
        raise ValueError('must be an object: {"NAME": {"url": "https://…"}}')
    return [_agent(name, fields) for name, fields in value.items()]


def _agent(name: str, fields: Any) -> RemoteAgent:
    given = {"url": fields} if isinstance(fields, str) else fields
    if not isinstance(given, dict) or not all(isinstance(text, str) for text in given.values()):
        raise ValueError(f"{name!r} must be a URL or an object of strings")
    if unknown := sorted(given.keys() - set(FIELDS)):
        raise ValueError(f"{name!r} has the unknown field {unknown[0]!r}: use {', '.join(FIELDS)}")
    try:
        outbound_address.parse(given.get("url", ""))
    except Invalid as error:
        raise ValueError(f"the url of {name!r} {error.message}") from None
    token = given.get("token", "")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError(f"the token of {name!r} must be printable ASCII without spaces")
    return RemoteAgent(name, **given)
