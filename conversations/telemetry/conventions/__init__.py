"""The conventions that instrumentations write by, a module each: `read(span, reading)` fills in what is still empty.

To add one: a module here, its place in `READERS`, and a test of what it reads. Those that say less come later.
"""

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

READERS = (
    langfuse.read,
    vercel_ai.read,
    langsmith.read,
    openinference.read,
    logfire.read,
    openllmetry.read,
    genai.read,
)
# The libraries that give every tool call a span of its own: what their messages tell of calls is told already.
_WITH_TOOL_SPANS = (
    "openai_agents", "langchain", "langgraph", "pydantic-ai", "pydantic_ai", "gcp.vertex.agent", "google_adk",
    "smolagents", "crewai", "llama_index", "autogen", "agno", "strands", "haystack", "dspy", "langsmith",
)  # fmt: skip


def read(span: Span) -> SpanReading:
    """Read a span by all conventions."""
    logfire.settle(span)
    reading = SpanReading(has_tool_spans=any(name in span.source.scope for name in _WITH_TOOL_SPANS))
    for reader in READERS:
        reader(span, reading)
    return reading
