"""`GET /api/v1/openapi.json`: what the API takes and answers (OpenAPI 3.1), made from the views and their models."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Literal

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.urls import get_resolver
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from dashboard.api.openapi import raw_endpoints
from dashboard.api.openapi.operations import BEARER, FORM, SESSION, TEXT, Json, Operation, endpoint
from dashboard.api.schemas import core

JSON, NDJSON = "application/json", "application/x-ndjson"
REF = "#/components/schemas/{model}"
PARAMETER = re.compile(r"<(\w+):(\w+)>")
CONVERTERS: dict[str, Json] = {
    "str": TEXT,
    "number": {"type": "integer", "minimum": 1},
    "topic": {"type": "string", "minLength": 3, "maxLength": 208},
    "cid": {
        "type": "string",
        "pattern": "^~?[A-Za-z0-9_.-]+$",
        "description": "percent-encoded, or ~ followed by the base64url of its UTF-8; . and .. only in the latter form",
    },
}
REASONS = {
    400: "the input is wrong: `field` says where",
    401: "no session and no token, or a revoked one",
    403: "without the right",
    404: "no such thing",
    405: "another method: `Allow` says which",
    409: "somebody or something was first",
    413: "over a limit",
    429: "busy: send again after `Retry-After` seconds",
    503: "not now: send again after `Retry-After` seconds",
}


@endpoint(get=Operation("Read this document.", {200: None}, security=(), is_open=True))
@login_not_required
def openapi(request: HttpRequest) -> JsonResponse:
    """Return the document. It says nothing that the source does not, so whoever asks may have it."""
    return JsonResponse(document())


@cache
def document() -> Json:
    """Make the document."""
    routes = dict(_routes())
    return {
        "openapi": "3.1.0",
        "info": {"title": "Switchboard", "version": "1"},
        "servers": [{"url": "/"}],
        "paths": {_address(route): _item(route, operations) for route, operations in routes.items()},
        "components": {
            "schemas": _schemas([model for operations in routes.values() for model in operations.values()]),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME},
                "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRFToken"},
            },
        },
    }


def _routes() -> Iterator[tuple[str, Mapping[str, Operation]]]:
    yield from raw_endpoints.ROUTES.items()
    for pattern in get_resolver().url_patterns:
        if operations := getattr(pattern.callback, "operations", None):
            yield str(pattern.pattern), operations


def _address(route: str) -> str:
    return "/" + PARAMETER.sub(lambda match: f"{{{_name(*match.groups())}}}", route)


def _name(converter: str, name: str) -> str:
    return "id" if converter == "cid" else name


def _item(route: str, operations: Mapping[str, Operation]) -> Json:
    path = [
        _parameter(_name(converter, name), "path", CONVERTERS[converter])
        for converter, name in PARAMETER.findall(route)
    ]
    return {method: _operation(method, path, operation) for method, operation in operations.items()}


def _operation(method: str, path: list[Json], operation: Operation) -> Json:
    by_person = SESSION if method == "get" else FORM
    security = [BEARER, by_person] if operation.security is None else list(operation.security)
    described: Json = {
        "summary": operation.summary,
        "parameters": path + [_parameter(name, "query", schema) for name, schema in operation.query.items()],
        "responses": {str(status): _answer(model) for status, model in operation.answers.items()},
        "security": security,
    }
    if operation.files:
        media = {file_type.partition(";")[0]: {"schema": TEXT} for file_type in operation.files}
        described["responses"]["200"] = {"description": "The file.", "content": media}
    for status in statuses(operation, has_path=bool(path), needs_somebody=bool(security)):
        described["responses"].setdefault(str(status), _content(REASONS[status], _ref(core.Error)))
    content = {JSON: {"schema": _any_of(operation.bodies)}} if operation.bodies else {}
    content |= {NDJSON: {"schema": TEXT}} if operation.takes_lines else {}
    return described | ({"requestBody": {"required": True, "content": content}} if content else {})


def statuses(operation: Operation, *, has_path: bool, needs_somebody: bool) -> list[int]:
    """Return which errors an operation may answer: its own, and those that follow from what it takes."""
    takes_body = bool(operation.bodies) or operation.takes_lines
    follow = {
        400: takes_body or bool(operation.query),
        401: needs_somebody,
        403: not operation.is_open,
        404: has_path,
        405: True,
        413: takes_body,
    }
    return sorted({*operation.errors, *(status for status, is_so in follow.items() if is_so)})


def _parameter(name: str, location: str, schema: Json) -> Json:
    return {"name": name, "in": location, "required": location == "path", "schema": schema}


def _answer(model: type[BaseModel] | None) -> Json:
    return _content(model.__doc__ or "", _ref(model)) if model else _content("The document.", {"type": "object"})


def _content(description: str, schema: Json) -> Json:
    return {"description": description, "content": {JSON: {"schema": schema}}}


def _ref(model: type[BaseModel]) -> Json:
    return {"$ref": REF.format(model=model.__name__)}


def _any_of(models: tuple[type[BaseModel], ...]) -> Json:
    return _ref(models[0]) if len(models) == 1 else {"anyOf": [_ref(model) for model in models]}


def _schemas(operations: list[Operation]) -> Json:
    modes: dict[type[BaseModel], Literal["validation", "serialization"]] = {}
    modes |= {model: "serialization" for operation in operations for model in operation.answers.values() if model}
    modes |= {model: "validation" for operation in operations for model in operation.bodies}
    _, generated = models_json_schema([*modes.items(), (core.Error, "serialization")], ref_template=REF)
    schemas: Json = generated["$defs"]
    schemas["ErrorDetail"]["required"] = ["code", "message"]
    return schemas
