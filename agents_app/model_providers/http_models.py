"""Models of an OpenAI-compatible server, as the SDK has them, with a bounded answer and a reason for every failure."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, ClassVar

from agents import AgentsException, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel
from agents.items import ModelResponse, TResponseStreamEvent
from agents.models import get_default_model_settings, gpt_5_reasoning_settings_required
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI

from agents_app.model_providers import fit_calls
from agents_app.model_providers.fit_calls import FitCalls
from conversations.core.secret_masking import mask

SHOWN = 500  # characters of a server's own words


class ModelFailed(AgentsException):
    """A model gave no whole answer. The text says why, without keys."""


class _Bounded(FitCalls):
    """Mixed in before an SDK model: its calls end in time, and end as `ModelFailed`."""

    timeout_s: float
    model: Any
    api: ClassVar[str]
    """how people call the server's API"""

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: ModelSettings, *args: Any, **named: Any
    ) -> ModelResponse:
        """Return as the SDK's model does. Raises ModelFailed."""
        try:
            async with asyncio.timeout(self.timeout_s):
                settled = _settled(model_settings, self.model)
                inner = super().get_response  # type: ignore[misc]
                return await fit_calls.respond(inner, system_instructions, input, settled, *args, **named)
        except Exception as error:
            raise self._failed(error) from error

    async def stream_response(
        self, system_instructions: Any, input: Any, model_settings: ModelSettings, *args: Any, **named: Any
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Stream as the SDK's model does, to a completed response. Raises ModelFailed."""
        deadline = asyncio.get_running_loop().time() + self.timeout_s
        settled = _settled(model_settings, self.model)
        inner = super().stream_response  # type: ignore[misc]
        events: Any = fit_calls.stream(inner, system_instructions, input, settled, *args, **named)
        is_whole = False
        async with aclosing(events):
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        event = await anext(events, None)
                except Exception as error:
                    raise self._failed(error) from error
                if event is None:
                    break
                if not hasattr(event, "type"):
                    raise ModelFailed(f"{self.model}: the server sent an invalid event")
                is_whole = is_whole or event.type == "response.completed"
                yield event
        if not is_whole:
            raise ModelFailed(f"{self.model}: the stream ended before the answer was complete")

    def _failed(self, error: Exception) -> Exception:
        if isinstance(error, TimeoutError):
            return ModelFailed(f"{self.model}: no complete answer within {self.timeout_s:g} s")
        hint = (
            f" (API used: {self.api}; choose another with `responses:` or `chat:` before the model name)"
            if _is_absent(error)
            else ""
        )
        return ModelFailed(f"{self.model}: {_reason(error)}{hint}")


class ResponsesModel(_Bounded, OpenAIResponsesModel):
    """A model by the Responses API."""

    api = "Responses"

    def __init__(self, model: str, client: AsyncOpenAI, *, timeout_s: float) -> None:
        super().__init__(model, client)
        self.timeout_s = timeout_s


class ChatModel(_Bounded, OpenAIChatCompletionsModel):
    """A model by the Chat Completions API."""

    api = "Chat Completions"

    def __init__(self, model: str, client: AsyncOpenAI, *, timeout_s: float) -> None:
        super().__init__(model, client)
        self.timeout_s = timeout_s


def _settled(settings: ModelSettings, model: Any) -> ModelSettings:
    """Ask for usage; take back what the SDK presets for its maker's default model when this is another one."""
    preset = get_default_model_settings()
    is_preset = (settings.reasoning, settings.verbosity) == (preset.reasoning, preset.verbosity)
    if is_preset and not gpt_5_reasoning_settings_required(str(model)):
        settings = replace(settings, reasoning=None, verbosity=None)
    return settings if settings.include_usage is not None else settings.resolve(ModelSettings(include_usage=True))


def _is_absent(error: Exception) -> bool:
    """Return whether a server has no such address, or no such model by this API."""
    return isinstance(error, APIStatusError) and error.status_code in (404, 405)


def _reason(error: Exception) -> str:
    if isinstance(error, APITimeoutError):
        return "the server was silent for too long"
    if isinstance(error, APIConnectionError):
        return f"the connection was lost ({mask(str(error.__cause__ or error))[:SHOWN]})"
    if isinstance(error, APIStatusError):
        return f"the server responded with {error.status_code}: {mask(error.message)[:SHOWN]}"
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return "the server sent invalid JSON"
    if isinstance(error, APIError):
        return f"the server reported an error: {mask(error.message)[:SHOWN]}"
    if isinstance(error, AttributeError | LookupError | TypeError | ValueError):  # a malformed event was read
        return f"the server sent an invalid event ({type(error).__name__}: {mask(str(error))[:SHOWN]})"
    return f"{type(error).__name__}: {mask(str(error))[:SHOWN]}"
