"""Fields of a query, read strictly. Called by the API's views."""

from django.http import HttpRequest

from conversations.errors import Invalid

MOST = 200  # items of one answer


def whole_number(request: HttpRequest, field: str, *, least: int = 1, most: int, default: int) -> int:
    """Read a number. Raises Invalid saying which numbers are fit."""
    text = request.GET.get(field, str(default))
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or not least <= int(text) <= most:
        raise Invalid(f"expected a whole number from {least:,} to {most:,}; got {text[:20]!r}", field=field)
    return int(text)


def limit_of(request: HttpRequest) -> int:
    """Read how many items an answer may have at the most: 1 to 200, 50 unless told. Raises Invalid."""
    return whole_number(request, "limit", most=MOST, default=50)
