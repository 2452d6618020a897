"""Fields of a query, read strictly. Called by the API's views."""

from django.http import HttpRequest

from conversations.errors import Invalid


def whole_number(request: HttpRequest, field: str, *, least: int = 1, most: int, default: int) -> int:
    """Read a number. Raises Invalid saying which numbers are fit."""
    text = request.GET.get(field, str(default))
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or not least <= int(text) <= most:
        raise Invalid(f"expected a whole number from {least:,} to {most:,}; got {text[:20]!r}", field=field)
    return int(text)
