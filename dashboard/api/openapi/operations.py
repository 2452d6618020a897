"""What a view of the API takes and answers, written where the view stands: `@endpoint(get=Operation(…))`.

`document` makes the OpenAPI document of it. The views stay Django's: django-ninja reads a body before the view asks for
a permission, has errors of a form of its own, and gives a form of a page and a program no common address.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods
from pydantic import BaseModel

Json = dict[str, Any]
View = Callable[..., HttpResponseBase]  # a request, and what the route names

BEARER: Json = {"bearer": []}
SESSION: Json = {"session": []}
FORM: Json = {"session": [], "csrf": []}

TEXT: Json = {"type": "string"}
MOMENT: Json = {"type": "string", "format": "date-time"}


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of an address. `answers` are models by status; `query` schemas by name.

    `files`: media types of an answer that is no JSON. `errors` are statuses besides those that follow from the rest
    (`document.statuses`). `security` is a token or a session unless given; `is_open`: no right is needed.
    """

    summary: str
    answers: Mapping[int, type[BaseModel] | None]
    query: Mapping[str, Json] = field(default_factory=dict)
    body: tuple[type[BaseModel], ...] | type[BaseModel] = ()
    takes_lines: bool = False
    errors: tuple[int, ...] = ()
    security: tuple[Json, ...] | None = None
    is_open: bool = False
    files: tuple[str, ...] = ()

    @property
    def bodies(self) -> tuple[type[BaseModel], ...]:
        """The models of which one is the JSON that it takes."""
        return self.body if isinstance(self.body, tuple) else (self.body,)


def endpoint(**operations: Operation) -> Callable[[View], View]:
    """Answer these methods (405 to others), as described. Goes on top of a view's other decorators."""
    methods = [name.upper() for name in operations]
    if "GET" in methods:
        methods.insert(methods.index("GET") + 1, "HEAD")

    def described(view: View) -> View:
        answering: Any = require_http_methods(methods)(view)
        answering.operations = operations
        return answering  # type: ignore[no-any-return]  # functions take attributes

    return described


def one_of(values: Any) -> Json:
    """Describe a choice."""
    return {"enum": list(values)}


def up_to(most: int, default: int) -> Json:
    """Describe a whole number from 1 on."""
    return {"type": "integer", "minimum": 1, "maximum": most, "default": default}


def many(items: Json, most: int | None = None) -> Json:
    """Describe a parameter that may be given several times."""
    return {"type": "array", "items": items} | ({} if most is None else {"maxItems": most})
