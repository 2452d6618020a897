"""Which model an agent speaks with: any OpenAI-compatible server, else the built-in demo model. Called by the worker.

    config = configured()
    RunConfig(model_provider=Provider(config))      # for a run: every agent's model name is looked up here
    model_for(agent, Provider(config)).is_demo      # for the agents page and `model.turn`

An agent says `model="name"`, `"responses:name"` or `"chat:name"` (the server's API), `"demo"`, or nothing: then it is
`SWITCHBOARD_MODEL`, else the SDK's default. Clients are explicit: nothing of the SDK's global state is used or set.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import httpx2
from agents import Agent, Model, ModelProvider, set_trace_provider
from agents.models import get_default_model
from agents.tracing.provider import DefaultTraceProvider
from django.conf import settings
from openai import AsyncOpenAI, DefaultAsyncHttpx2Client

from agents_app.demo.model import DemoModel
from agents_app.model_providers.http_models import ChatModel, ResponsesModel
from agents_app.model_providers.truncation_check import WholeStreams

APIS = ("responses", "chat")
OPENAI = "https://api.openai.com/v1"
DEMO = "demo"
WIRE = 8  # bytes that an answer's byte may take on the wire: escapes, and what stands around

set_trace_provider(DefaultTraceProvider())  # without what the SDK adds: an HTTP client that sends traces to its maker


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What an operator says about models."""

    api_key: str = field(default="", repr=False)
    base_url: str = ""
    model: str = ""
    api: str = ""
    """`responses` or `chat`; empty: `responses` for OpenAI's own address, `chat` for any other"""
    timeout_s: float = 180.0
    """the longest a whole answer may take, retries included"""
    silence_s: float = 60.0
    """the longest a server may send nothing"""
    retries: int = 2
    """further tries after 408, 409, 429, 5xx or a lost connection, before the first byte of an answer"""
    most_bytes: int = 4 << 20
    """the most that one answer may have"""
    demo_pace_s: float = 0.02
    """the demo model's wait between two pieces of text"""

    @property
    def is_demo(self) -> bool:
        """Return whether no server is configured, or the demo model is asked for."""
        return self.model == DEMO or not (self.api_key or self.base_url)


class ResolvedModel(NamedTuple):
    """A model as an agent uses it. `label` is what people read."""

    model: Model
    label: str
    is_demo: bool


def configured() -> ModelConfig:
    """Read the settings."""
    config = settings.CONFIG
    return ModelConfig(
        api_key=config.openai_api_key.get_secret_value(),
        base_url=config.openai_base_url,
        model=config.model,
        api=config.model_api,
        timeout_s=config.model_timeout_s,
        silence_s=config.model_silence_s,
        retries=config.model_retries,
        most_bytes=config.model_turn_bytes,
        demo_pace_s=config.demo_pace_s,
    )


class Provider(ModelProvider):
    """Look models up by name: one client and one pool of connections for a process's loop. Close it with `aclose`."""

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self._demo = DemoModel(pace_s=config.demo_pace_s)
        self._served: dict[str, ResolvedModel] = {}
        self._open_client: AsyncOpenAI | None = None

    def get_model(self, model_name: str | None) -> Model:
        """Return the model of this name (see the module)."""
        return self.served(model_name).model

    def served(self, name: str | None) -> ResolvedModel:
        """Return the model of this name, what it is called, and whether it is the demo model."""
        key = name or ""
        if key not in self._served:
            self._served[key] = self.once(key)
        return self._served[key]

    async def aclose(self) -> None:
        """Close the connections."""
        self._served.clear()
        if self._open_client is not None:
            await self._open_client.close()
            self._open_client = None

    def once(self, name: str) -> ResolvedModel:
        """Return the model of a name that a client chose: it is made for one run and not kept."""
        if self.config.is_demo or name == DEMO:
            return ResolvedModel(self._demo, DemoModel.label, is_demo=True)
        api, bare = _parsed(name or self.config.model or get_default_model(), self.config)
        kind = ResponsesModel if api == "responses" else ChatModel
        return ResolvedModel(kind(bare, self._client(), timeout_s=self.config.timeout_s), bare, is_demo=False)

    def _client(self) -> AsyncOpenAI:
        if self._open_client is None:
            self._open_client = client_of(self.config)
        return self._open_client


def model_for(agent: Agent[Any], provider: Provider) -> ResolvedModel:
    """Return the model that an agent speaks with."""
    if isinstance(agent.model, Model):
        is_demo = isinstance(agent.model, DemoModel)
        label = DemoModel.label if is_demo else str(getattr(agent.model, "model", type(agent.model).__name__))
        return ResolvedModel(agent.model, label, is_demo)
    return provider.served(agent.model)


def client_of(config: ModelConfig) -> AsyncOpenAI:
    """Make the client of the configured server: bounded tries, bounded silence, broken streams noticed."""
    http = DefaultAsyncHttpx2Client(
        transport=WholeStreams(
            httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=1000)), most=config.most_bytes * WIRE
        ),
        headers={"Accept-Encoding": "identity"},
    )
    return AsyncOpenAI(
        api_key=config.api_key or "none",
        base_url=config.base_url or OPENAI,
        timeout=httpx2.Timeout(config.silence_s, connect=min(10.0, config.silence_s)),
        max_retries=config.retries,
        http_client=http,
    )


def _parsed(name: str, config: ModelConfig) -> tuple[str, str]:
    """Split `api:model`; a name with another colon in it (`llama3:8b`) is a name. The configured model has its API by
    its plain name, too."""
    api, mark, bare = name.partition(":")
    if mark and api in APIS:
        return api, bare
    api, mark, bare = config.model.partition(":")
    if mark and api in APIS and bare == name:
        return api, bare
    return config.api or ("chat" if config.base_url and config.base_url.rstrip("/") != OPENAI else "responses"), name
