"""Numbers in the address of a page. Called by the pages of conversations."""

from django.http import HttpRequest


def number(request: HttpRequest, name: str) -> int | None:
    """Read a seq of the query. What is no seq counts as absent: a mangled link still opens the page."""
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
