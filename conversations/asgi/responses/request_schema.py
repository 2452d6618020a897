"""The schemas and limits of a request's fields (Open Responses 2026-04-24). Used by `parse_request` and `input_items`.

Null means "left out" everywhere; unknown fields are ignored and never stored. A field added to `ResponseBody` is stored
with the request's `params`; `resource.DEFAULTS` lists those that the response returns.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from conversations.core.json_values import Converter

LOGPROBS = "message.output_text.logprobs"
Json = dict[str, Any]
Name = Annotated[str, Meta(pattern="^[a-zA-Z0-9_-]{1,64}$")]
CallId = Annotated[str, Meta(min_length=1)]  # some models' are longer than the specification's 64 characters
Short = Annotated[str, Meta(max_length=64)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Metadata = Annotated[dict[Short, Annotated[str, Meta(max_length=512)]], Meta(max_length=16)]


class TextFormat(msgspec.Struct, tag_field="type", tag="text"):
    """Plain text."""


class JsonObject(msgspec.Struct, tag_field="type", tag="json_object"):
    """Any JSON object."""


class JsonSchema(msgspec.Struct, tag_field="type", tag="json_schema"):
    """JSON that matches a schema."""

    name: Name
    schema: Json | None = None
    description: str | None = None
    strict: bool | None = None


class TextOptions(msgspec.Struct):
    """The format of the output text."""

    format: TextFormat | JsonObject | JsonSchema | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class Reasoning(msgspec.Struct):
    """The reasoning effort."""

    effort: Literal["none", "low", "medium", "high", "xhigh"] | None = None
    summary: Literal["concise", "detailed", "auto"] | None = None


class StreamOptions(msgspec.Struct):
    """Options of the stream; obfuscation is never added."""

    include_obfuscation: bool | None = None


class ConversationName(msgspec.Struct):
    """A conversation by its id."""

    id: str


class ResponseBody(msgspec.Struct, kw_only=True):
    """The body of `POST /v1/responses`, and of a socket's `response.create`."""

    model: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    input: str | list[Any] | None = None
    previous_response_id: str | None = None
    conversation: str | ConversationName | None = None
    instructions: str | None = None
    include: list[Literal["reasoning.encrypted_content", "message.output_text.logprobs"]] | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    allowed_tools: Any = None
    metadata: Metadata | None = None
    text: TextOptions | None = None
    reasoning: Reasoning | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    background: bool | None = None
    store: bool | None = None
    max_output_tokens: Annotated[int, Meta(ge=16, lt=1 << 53)] | None = None
    max_tool_calls: Annotated[int, Meta(ge=1, lt=1 << 53)] | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    safety_identifier: Short | None = None
    prompt_cache_key: Short | None = None
    truncation: Literal["auto", "disabled"] | None = None
    service_tier: Literal["auto", "default", "flex", "priority"] | None = None


class CompactBody(msgspec.Struct, kw_only=True):
    """The body of `POST /v1/responses/compact`."""

    model: Annotated[str, Meta(min_length=1, max_length=200)]
    input: str | list[Any] | None = None
    previous_response_id: str | None = None
    instructions: str | None = None
    prompt_cache_key: Short | None = None


body_shape: Converter[ResponseBody] = Converter(ResponseBody)
compact_shape: Converter[CompactBody] = Converter(CompactBody)
name_shape: Converter[str] = Converter(Name)
