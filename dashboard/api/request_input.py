"""Bodies and queries of requests, read strictly. Called by the API's views."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from django.http import HttpRequest
from pydantic import BaseModel, ValidationError

from conversations.core import sliced_json, url_converters
from conversations.core.errors import Invalid, as_predicate
from conversations.listing.url_filters import MAX_VALUES, TIME_SPANS, UrlFilters
from dashboard.api.openapi.operations import MOMENT, TEXT, Json, many, one_of, up_to

MAX_ITEMS, USUAL = 200, 50  # items of one answer: at the most, and unless told
LIMIT = up_to(MAX_ITEMS, USUAL)

MAX_DEPTH = 200  # levels of a body, as pydantic has it
Body = TypeVar("Body", bound=BaseModel)


def read_body(request: HttpRequest, model: type[Body]) -> Body:
    """Read a JSON body. Raises Invalid naming the first field at fault."""
    try:
        return _validated(request.body, model)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        why, field = as_predicate(wrong["msg"]), ".".join(map(str, wrong["loc"]))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        why, field = f"Invalid JSON: {error}", ""
    # not inside: what came would be kept with the error for as long as that is told
    raise Invalid(why, field=field)


def _validated(body: bytes, model: type[Body]) -> Body:
    """Validate a body; pydantic itself would decode a large one in one go, which keeps the event loop."""
    if len(body) <= sliced_json.SLICE:
        return model.model_validate_json(body)
    return model.model_validate(sliced_json.decode(body, MAX_DEPTH))


def whole_number(request: HttpRequest, field: str, *, least: int = 1, most: int, default: int) -> int:
    """Read a number. Raises Invalid saying which numbers are fit."""
    return url_converters.whole_number(request.GET.get(field, str(default)), field, least, most)


def list_params(filters: type[UrlFilters], own: Mapping[str, Json]) -> dict[str, Json]:
    """Describe the query of a filtered list: filters with several values, what is its `own`, the time, the limit."""
    several = {name: many(TEXT, MAX_VALUES) for name in filters.many}
    return {**several, **own, "last": one_of(TIME_SPANS), "from": MOMENT, "to": MOMENT, "limit": LIMIT}


def limit_of(request: HttpRequest) -> int:
    """Read how many items an answer may have at the most: 1 to 200, 50 unless told. Raises Invalid."""
    return whole_number(request, "limit", most=MAX_ITEMS, default=USUAL)
