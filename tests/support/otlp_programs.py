"""Programs that people write, each traced by an instrumentation that nobody here wrote: `python -m … NAME`.

Each asks an agent "Weather in Paris?" twice, over the model at OPENAI_BASE_URL, and exports by the OTLP exporter's own
settings (OTEL_EXPORTER_OTLP_…). What it imports is of one framework only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

MODEL, ASKED = "scripted-1", "Weather in Paris?"


def get_weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"rainy in {city}"


def exporting() -> Any:
    """Make a tracer provider that exports in batches, as programs have it."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


def _agents_sdk() -> None:
    """Run an agent of the OpenAI Agents SDK."""
    from agents import Agent, Runner, function_tool

    agent = Agent(name="Weather", instructions="Be brief.", model=MODEL, tools=[function_tool(get_weather)])
    Runner.run_sync(agent, ASKED)


def openinference_agents() -> None:
    """The Agents SDK, traced by OpenInference."""
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    provider = exporting()
    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)
    _agents_sdk()
    provider.shutdown()


def openllmetry_agents() -> None:
    """The Agents SDK, traced by OpenLLMetry."""
    from agents import set_trace_processors
    from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    set_trace_processors([])  # the SDK's own sends to OpenAI
    provider = exporting()
    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)
    _agents_sdk()
    provider.shutdown()


def openllmetry_openai() -> None:
    """A loop over the openai client, traced by OpenLLMetry."""
    import json

    import openai
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    provider = exporting()
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    client, messages = openai.OpenAI(), [{"role": "user", "content": ASKED}]
    tracer = provider.get_tracer("a program of its own")
    with tracer.start_as_current_span("ask"):
        while True:
            message: Any = client.chat.completions.create(model=MODEL, messages=messages).choices[0].message  # type: ignore[arg-type]
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                output = get_weather(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": output})
    provider.shutdown()


def pydantic_ai() -> None:
    """An agent of pydantic-ai, which traces itself."""
    from pydantic_ai import Agent
    from pydantic_ai.models.instrumented import InstrumentationSettings
    from pydantic_ai.models.openai import OpenAIChatModel

    provider = exporting()
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
    agent = Agent(OpenAIChatModel(MODEL), name="Weather", instructions="Be brief.", tools=[get_weather])
    agent.run_sync(ASKED)
    provider.shutdown()


def _langgraph() -> None:
    """Run an agent of LangGraph."""
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import create_react_agent  # `langchain` has it as `create_agent`, and far more

    graph = create_react_agent(ChatOpenAI(model=MODEL), [get_weather], prompt="Be brief.", name="Weather")
    thread = {"thread_id": f"thread of {sys.argv[1]}"}
    settings: Any = {"configurable": thread, "metadata": thread}
    graph.invoke({"messages": [{"role": "user", "content": ASKED}]}, settings)


def openinference_langgraph() -> None:
    """LangGraph, traced by OpenInference."""
    from openinference.instrumentation.langchain import LangChainInstrumentor

    provider = exporting()
    LangChainInstrumentor().instrument(tracer_provider=provider)
    _langgraph()
    provider.shutdown()


def langsmith_langgraph() -> None:
    """LangGraph, traced by LangSmith's own OpenTelemetry export."""
    from langchain_core.tracers.langchain import wait_for_all_tracers

    provider = exporting()
    os.environ |= {"LANGSMITH_TRACING": "true", "LANGSMITH_OTEL_ENABLED": "true", "LANGSMITH_OTEL_ONLY": "true"}
    _langgraph()
    wait_for_all_tracers()
    provider.force_flush()
    provider.shutdown()


def google_adk() -> None:
    """An agent of Google's ADK, which traces itself, over Gemini's API."""
    import asyncio

    from google.adk.agents import LlmAgent
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    async def ask() -> None:
        agent = LlmAgent(name="Weather", model="gemini-scripted", instruction="Be brief.", tools=[get_weather])
        runner = InMemoryRunner(agent=agent, app_name="weather")
        session = await runner.session_service.create_session(app_name="weather", user_id="ida")
        words = types.Content(role="user", parts=[types.Part(text=ASKED)])
        async for _ in runner.run_async(user_id="ida", session_id=session.id, new_message=words):
            pass

    provider = exporting()
    asyncio.run(ask())
    provider.shutdown()


PROGRAMS: dict[str, Callable[[], None]] = {
    program.__name__: program
    for program in (
        openinference_agents, openllmetry_agents, openllmetry_openai, pydantic_ai, openinference_langgraph,
        langsmith_langgraph,
    )
}  # fmt: skip
# Its package takes no version of websockets that the server is tested with: its export is recorded (`record_exports`).
RECORDED: dict[str, Callable[[], None]] = {"google_adk": google_adk}

if __name__ == "__main__":
    (PROGRAMS | RECORDED)[sys.argv[1]]()
