"""What a model sends and is sent, without what the SDK, the record or a server cannot hold: half characters, endless
nesting, a call id for two calls. Used by the served models, and by the run's hooks for the models that a team gives its
agents itself.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, nullcontext
from functools import cache
from typing import Any

from agents import Model
from agents.items import ModelResponse, TResponseStreamEvent

from agents_app.model_providers.sent_arguments import encodable
from agents_app.model_providers.unique_call_ids import CallIds

Respond = Callable[..., Awaitable[ModelResponse]]
Stream = Callable[..., AsyncIterator[TResponseStreamEvent]]


class FitCalls:
    """Marks the models that do so."""

    __slots__ = ()


async def respond(inner: Respond, system_instructions: Any, input: Any, *args: Any, **named: Any) -> ModelResponse:
    """Return as `get_response` of a model does."""
    system_instructions, input = encodable(system_instructions), encodable(input)
    response = await inner(system_instructions, input, *args, **named)
    CallIds(input).separate(response.output)
    return response


async def stream(
    inner: Stream, system_instructions: Any, input: Any, *args: Any, **named: Any
) -> AsyncIterator[TResponseStreamEvent]:
    """Stream as `stream_response` of a model does."""
    system_instructions, input = encodable(system_instructions), encodable(input)
    events: Any = inner(system_instructions, input, *args, **named)
    ids = CallIds(input)
    async with aclosing(events) if hasattr(events, "aclose") else nullcontext():
        async for event in events:
            kind = getattr(event, "type", "")
            if kind == "response.output_item.done":
                ids.separate([event.item])
            elif kind == "response.completed":
                ids.separate(event.response.output)
            yield event


def fit(model: Any) -> None:
    """Have a model do so from now on, by a subclass of its class. Anything but a `Model`, such as a name, and done
    again, it changes nothing."""
    if isinstance(model, Model) and not isinstance(model, FitCalls):
        object.__setattr__(model, "__class__", _fitted(type(model)))


@cache
def _fitted(kind: Any) -> type[Model]:
    class Fitted(kind, FitCalls):  # type: ignore[misc]  # of a class that a team brings
        __slots__ = ()

        async def get_response(self, *args: Any, **named: Any) -> ModelResponse:
            return await respond(super().get_response, *args, **named)

        def stream_response(self, *args: Any, **named: Any) -> AsyncIterator[TResponseStreamEvent]:
            return stream(super().stream_response, *args, **named)

    Fitted.__name__, Fitted.__qualname__, Fitted.__module__ = kind.__name__, kind.__qualname__, kind.__module__
    return Fitted
