"""How one operation of the API is described in OpenAPI. Called by `openapi`."""

from typing import Any

from pydantic import BaseModel

from dashboard.api import shapes

REF = "#/components/schemas/{model}"
JSON, NDJSON = "application/json", "application/x-ndjson"
WORDS = {
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

Json = dict[str, Any]
BEARER: Json = {"bearer": []}
TEXT: Json = {"type": "string"}
SESSION: Json = {"session": []}
FORM: Json = {"session": [], "csrf": []}
CONVERSATION: Json = {  # the id of one, in an address
    "type": "string",
    "pattern": "^~?[A-Za-z0-9_.-]+$",
    "description": "verbatim when [A-Za-z0-9_.-]{1,200} and not . or .., else ~ and the base64url of its UTF-8",
}


def does(
    words: str,
    answers: dict[int, type[BaseModel] | None],
    *,
    path: Json | None = None,
    query: Json | None = None,
    body: Json | None = None,
    errors: tuple[int, ...] = (400, 403),
    security: list[Json] | None = None,
) -> Json:
    """Describe one operation. Whoever needs to be somebody may be nobody (401); a wrong method is 405 everywhere."""
    security = [BEARER] if security is None else security
    parameters = [_parameter(name, "path", schema) for name, schema in (path or {}).items()]
    parameters += [_parameter(name, "query", schema) for name, schema in (query or {}).items()]
    responses: Json = {str(status): _answer(model) for status, model in answers.items()}
    for status in sorted({*errors, *((401,) if security else ()), 405}):
        responses[str(status)] = {"description": WORDS[status], "content": {JSON: {"schema": ref(shapes.Error)}}}
    told: Json = {"summary": words, "parameters": parameters, "responses": responses, "security": security}
    if body:
        told["requestBody"] = {"required": True, "content": {kind: {"schema": schema} for kind, schema in body.items()}}
    return told


def _parameter(name: str, place: str, schema: Json) -> Json:
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


def _answer(model: type[BaseModel] | None) -> Json:
    schema = ref(model) if model else {"type": "object"}
    return {"description": (model.__doc__ or "") if model else "The document.", "content": {JSON: {"schema": schema}}}


def up_to(most: int, default: int) -> Json:
    """Describe a whole number from 1 on."""
    return {"type": "integer", "minimum": 1, "maximum": most, "default": default}


def ref(model: type[BaseModel]) -> Json:
    """Point to a model."""
    return {"$ref": REF.format(model=model.__name__)}


def one_of(*models: type[BaseModel]) -> Json:
    """Describe any of several models."""
    return {"anyOf": [ref(model) for model in models]}
