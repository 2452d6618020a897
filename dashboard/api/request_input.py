"""Parse request bodies and queries strictly. Used by the API's views."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from django.http import HttpRequest
from pydantic import BaseModel, ValidationError

from conversations.core import sliced_json, url_converters
from conversations.core.errors import Invalid, as_predicate
from conversations.listing.url_filters import MAX_VALUES, TIME_SPANS, UrlFilters
from dashboard.api.openapi.operations import MOMENT, TEXT, Json, many, one_of, up_to

MAX_LIMIT, DEFAULT_LIMIT = 200, 50  # items of one answer: the maximum, and the default
LIMIT = up_to(MAX_LIMIT, DEFAULT_LIMIT)

MAX_SEQ = 2**53  # of an event; JavaScript counts no further
MAX_DEPTH = 200  # levels of a body, as pydantic has it
Body = TypeVar("Body", bound=BaseModel)


def read_body(request: HttpRequest, model: type[Body]) -> Body:
    """Parse a JSON body. Raises Invalid naming the first invalid field."""
    try:
        return _validated(request.body, model)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        why, field = as_predicate(wrong["msg"]), ".".join(map(str, wrong["loc"]))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why, field = f"Invalid JSON: {error}", ""
    # not inside: what came would be kept with the error for as long as that is shown
    raise Invalid(why, field=field)


def _validated(body: bytes, model: type[Body]) -> Body:
    """Validate a body; pydantic itself would decode a large one in one step, which blocks the event loop."""
    if len(body) <= sliced_json.SLICE:
        return model.model_validate_json(body)
    return model.model_validate(sliced_json.decode(body, MAX_DEPTH))


def whole_number(request: HttpRequest, field: str, *, least: int = 1, most: int, default: int) -> int:
    """Parse a number. Raises Invalid with the allowed range."""
    return url_converters.whole_number(request.GET.get(field, str(default)), field, least, most)


def list_params(filters: type[UrlFilters], own: Mapping[str, Json]) -> dict[str, Json]:
    """Describe the query of a filtered list: filters with several values, its own parameters, the time, the limit."""
    several = {name: many(TEXT, MAX_VALUES) for name in filters.many}
    return {**several, **own, "last": one_of(TIME_SPANS), "from": MOMENT, "to": MOMENT, "limit": LIMIT}


def limit_of(request: HttpRequest) -> int:
    """Return the maximum number of items in a response: 1 to 200, 50 by default. Raises Invalid."""
    return whole_number(request, "limit", most=MAX_LIMIT, default=DEFAULT_LIMIT)
