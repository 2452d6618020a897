"""The conventions that instrumentations write by, a module each: `read(span, reading)` fills in what is still empty.

To add one: a module here, its place in `READERS`, and a test of what it reads. Those that say less come later.
"""

from collections.abc import Callable
from functools import lru_cache

from conversations.telemetry.conventions import (
    genai,
    langfuse,
    langsmith,
    logfire,
    openinference,
    openllmetry,
    vercel_ai,
)
from conversations.telemetry.reading import SpanReading
from conversations.telemetry.span import Span

Reader = Callable[[Span, SpanReading], None]

# Each reader with the first words of the attributes that it reads: of a span that has none of them it is not asked.
# One that has none here is asked of every span.
READERS: tuple[tuple[Reader, frozenset[str]], ...] = (
    (langfuse.read, frozenset({"langfuse", "session"})),
    (vercel_ai.read, frozenset({"ai"})),
    (langsmith.read, frozenset({"langsmith"})),
    (openinference.read, frozenset({"openinference"})),
    (logfire.read, frozenset({"logfire", "agent_name", "pydantic_ai", "events", "all_messages_events", "model_name"})),
    (openllmetry.read, frozenset({"traceloop", "llm", "gen_ai"})),
    (genai.read, frozenset()),
)
# The libraries that give every tool call a span of its own: what their messages tell of calls is told already.
_WITH_TOOL_SPANS = (
    "openai_agents", "langchain", "langgraph", "pydantic-ai", "pydantic_ai", "gcp.vertex.agent", "google_adk",
    "smolagents", "crewai", "llama_index", "autogen", "agno", "strands", "haystack", "dspy", "langsmith",
)  # fmt: skip


@lru_cache(256)
def _has_tool_spans(scope: str) -> bool:
    return any(name in scope for name in _WITH_TOOL_SPANS)


def read(span: Span) -> SpanReading:
    """Read a span by all conventions."""
    logfire.settle(span)
    reading = SpanReading(has_tool_spans=_has_tool_spans(span.source.scope))
    words = {name.partition(".")[0] for name in span.attributes}
    for reader, first_words in READERS:
        if not first_words or not words.isdisjoint(first_words):
            reader(span, reading)
    return reading
