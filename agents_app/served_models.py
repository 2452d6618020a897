"""Models of an OpenAI-compatible server, as the SDK has them, with a bounded answer and a reason for every failure."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from agents import AgentsException, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel
from agents.items import ModelResponse, TResponseStreamEvent
from agents.models import get_default_model_settings, gpt_5_reasoning_settings_required
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI

from conversations.masking import mask

SHOWN = 500  # characters of a server's own words


class ModelFailed(AgentsException):
    """A model gave no whole answer. The text says why, without keys."""


class _Bounded:
    """Mixed in before an SDK model: its calls end in time, and end as `ModelFailed`."""

    timeout_s: float
    model: Any

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: ModelSettings, *args: Any, **named: Any
    ) -> ModelResponse:
        """Answer as the SDK's model does. Raises ModelFailed."""
        try:
            async with asyncio.timeout(self.timeout_s):
                settled = _settled(model_settings, self.model)
                answer = super().get_response(system_instructions, input, settled, *args, **named)  # type: ignore[misc]
                response: ModelResponse = await answer
                return response
        except Exception as error:
            raise self._failed(error) from error

    async def stream_response(
        self, system_instructions: Any, input: Any, model_settings: ModelSettings, *args: Any, **named: Any
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Stream as the SDK's model does, to a completed response. Raises ModelFailed."""
        deadline = asyncio.get_running_loop().time() + self.timeout_s
        settled = _settled(model_settings, self.model)
        events = super().stream_response(system_instructions, input, settled, *args, **named)  # type: ignore[misc]
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
                    raise ModelFailed(f"{self.model}: the server sent what is no event")
                is_whole = is_whole or event.type == "response.completed"
                yield event
        if not is_whole:
            raise ModelFailed(f"{self.model}: the stream ended before the answer was complete")

    def _failed(self, error: Exception) -> Exception:
        if isinstance(error, TimeoutError):
            return ModelFailed(f"{self.model}: no whole answer within {self.timeout_s:g} s")
        return ModelFailed(f"{self.model}: {_reason(error)}")


class ResponsesModel(_Bounded, OpenAIResponsesModel):
    """A model by the Responses API."""

    def __init__(self, model: str, client: AsyncOpenAI, *, timeout_s: float) -> None:
        super().__init__(model, client)
        self.timeout_s = timeout_s


class ChatModel(_Bounded, OpenAIChatCompletionsModel):
    """A model by the Chat Completions API."""

    def __init__(self, model: str, client: AsyncOpenAI, *, timeout_s: float) -> None:
        super().__init__(model, client)
        self.timeout_s = timeout_s


def _settled(given: ModelSettings, model: Any) -> ModelSettings:
    """Ask for usage; take back what the SDK presets for its maker's default model when this is another one."""
    preset = get_default_model_settings()
    is_preset = (given.reasoning, given.verbosity) == (preset.reasoning, preset.verbosity)
    if is_preset and not gpt_5_reasoning_settings_required(str(model)):
        given = replace(given, reasoning=None, verbosity=None)
    return given if given.include_usage is not None else given.resolve(ModelSettings(include_usage=True))


def _reason(error: Exception) -> str:
    if isinstance(error, APITimeoutError):
        return "the server was silent for too long"
    if isinstance(error, APIConnectionError):
        return f"the connection was lost ({mask(str(error.__cause__ or error))[:SHOWN]})"
    if isinstance(error, APIStatusError):
        return f"the server answered {error.status_code}: {mask(error.message)[:SHOWN]}"
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return "the server sent what is not JSON"
    return f"{type(error).__name__}: {mask(str(error))[:SHOWN]}"
