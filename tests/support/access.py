"""Every address of the server, found by walking it: Django's routes and the application's endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from django.urls import URLPattern, URLResolver

from conversations.asgi.agui import routes as agui
from conversations.asgi.responses.routes import ADDRESSES
from dashboard import urls

PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")


def views(patterns: list[URLPattern | URLResolver] | None = None, before: str = "/") -> Iterator[tuple[str, str, Any]]:
    """Walk Django's routes: address with `{parameter}`, name, view."""
    for pattern in urls.urlpatterns if patterns is None else patterns:
        address = before + PARAMETER.sub(r"{\1}", str(pattern.pattern))
        if isinstance(pattern, URLResolver):
            yield from views(pattern.url_patterns, address)
        else:
            yield address, pattern.name or address, pattern.callback


def doors() -> list[str]:
    """List the addresses that raw ASGI routes answer."""
    from dashboard.asgi import application  # it makes the process's engine, so only when asked for

    below = {"/api/v1/topics/": ["/api/v1/topics/{topic}/messages"], "/v1/": ADDRESSES, agui.PREFIX: agui.ADDRESSES}
    assert set(application._endpoints_below) == set(below), "say here how the new endpoint's addresses look"
    return sorted([*application._endpoints, *(address for some in below.values() for address in some)])


def addresses() -> list[str]:
    """List every address."""
    return sorted({*(address for address, _, _ in views()), *doors(), "/ws/"})
