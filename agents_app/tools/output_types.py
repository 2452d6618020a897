"""What an agent answers with: plain text, an object, or something wrapped under `response`; and types in words."""

import types
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from agents import Agent, AgentOutputSchema
from agents.agent_output import AgentOutputSchemaBase


class OutputType(NamedTuple):
    """An agent's output. `schema` is None for plain text; `is_wrapped`: it sits under the key `response`."""

    type: str
    is_wrapped: bool
    is_strict: bool
    schema: dict[str, Any] | None


def output_of(agent: Agent[Any]) -> OutputType:
    """Return an agent's output. Raises UserError, or what pydantic raises, for a type that no model can be asked for:
    a run would fail with it at its first turn."""
    kind = agent.output_type
    if kind is None or kind is str:
        return OutputType("str", False, False, None)
    output_schema = kind if isinstance(kind, AgentOutputSchemaBase) else AgentOutputSchema(kind)
    if output_schema.is_plain_text():
        return OutputType("str", False, False, None)
    name = (
        type_name(output_schema.output_type) if isinstance(output_schema, AgentOutputSchema) else output_schema.name()
    )
    wrapped = isinstance(output_schema, AgentOutputSchema) and output_schema._is_wrapped
    return OutputType(name, wrapped, output_schema.is_strict_json_schema(), output_schema.json_schema())


def type_name(kind: Any) -> str:
    """Name a type as one would write it: the same for `Optional[int]`, `Union[int, None]` and `int | None`."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return type_name(parts[0])
    if origin in (Union, types.UnionType):
        return " | ".join(type_name(part) for part in parts)
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, parts))}]"
    if origin is not None and parts:
        return f"{getattr(origin, '__name__', origin)}[{', '.join(map(type_name, parts))}]"
    if kind is None or kind is type(None):
        return "None"
    if kind is Ellipsis:
        return "..."
    return str(getattr(kind, "__name__", None) or kind).removeprefix("typing.")
