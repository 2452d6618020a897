"""A team's context between messages: written as JSON, read back whole, or refused. Called by the worker.

    context = team_context.read(team.context, stored, conversation)     # stored: the text kept last time, or None
    ... run ...
    stored = team_context.write(context)                                # keep this for the conversation's next message

For the SDK's RunState pass `context_serializer=team_context.to_mapping`,
`context_deserializer=team_context.reader(model)` and `strict_context=True`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from conversations.core.secret_masking import has_secret, names_secret


class ContextRefused(ValueError):
    """A context that cannot be stored. The text names the field, never the value."""


def fresh(model: type[BaseModel], conversation: str) -> BaseModel:
    """Return the context of a conversation's first message; a field `conversation_id` is filled."""
    fields = {"conversation_id": conversation} if "conversation_id" in model.model_fields else {}
    return model(**fields)


def read(model: type[BaseModel], stored: str | None, conversation: str) -> BaseModel:
    """Return the stored context; a fresh one if none is stored.

    Raises ContextRefused if the text no longer fits the model (the team has changed).
    """
    if stored is None:
        return fresh(model, conversation)
    try:
        return model.model_validate_json(stored)
    except ValidationError as error:
        fields = ", ".join(sorted({".".join(map(str, e["loc"])) for e in error.errors()}))
        raise ContextRefused(f"{model.__name__} does not match the saved context: {fields}") from None


def write(context: BaseModel) -> str:
    """Return a context as text. Raises ContextRefused if it would come back changed, or contains what looks like a
    secret."""
    text = context.model_dump_json()
    for path, value in _texts(json.loads(text)):
        if has_secret(value):
            raise ContextRefused(f"{type(context).__name__}.{path} looks like a key or token, which must not be saved")
    try:
        is_same = type(context).model_validate_json(text) == context
    except ValidationError:
        is_same = False
    if not is_same:
        raise ContextRefused(f"{type(context).__name__} does not survive a JSON round trip unchanged")
    return text


def to_mapping(context: Any) -> Mapping[str, Any]:
    """Serialize a context for the SDK's RunState."""
    mapping: Mapping[str, Any] = json.loads(write(context))
    return mapping


def reader(model: type[BaseModel]) -> Callable[[Mapping[str, Any]], BaseModel]:
    """Return the deserialiser for the SDK's RunState."""

    def _read(mapping: Mapping[str, Any]) -> BaseModel:
        return read(model, json.dumps(dict(mapping)), "")

    return _read


def problem_of(model: type[BaseModel]) -> str:
    """Return why a model cannot be a team's context; empty if it can."""
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return "the context must be a pydantic model"
    for name, field in model.model_fields.items():
        if names_secret(name) or "Secret" in str(field.annotation):
            return f"the context's field {name!r} holds a secret, which must not be saved"
        if field.exclude:
            return f"the context's field {name!r} is excluded from JSON and would be lost"
        if field.is_required():
            return f"the context's field {name!r} has no default"
    if model.__private_attributes__:
        return f"the context's private attribute {next(iter(model.__private_attributes__))!r} would be lost"
    try:
        model.model_json_schema(mode="serialization")
        write(model())
    except Exception as error:  # pydantic's own, or a validator's of the team: the reason is reported either way
        return f"the context cannot be saved as JSON: {error}".splitlines()[0]
    return ""


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts of a JSON value with their paths."""
    match value:
        case str():
            yield path, value
        case dict():
            for key, inner in value.items():
                yield from _texts(inner, f"{path}.{key}".lstrip("."))
        case list():
            for number, inner in enumerate(value):
                yield from _texts(inner, f"{path}.{number}")
