"""The conventions of instrumentations, a module each: `read(span, facts)` fills in fields that are still empty.

To add one: a module here, its position in `READERS`, and a test of what it reads. Less specific ones come later.
"""

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import NamedTuple

from conversations.telemetry.conventions import (
    genai,
    langfuse,
    langsmith,
    logfire,
    openinference,
    openllmetry,
    vercel_ai,
)
from conversations.telemetry.span import Span
from conversations.telemetry.span_facts import SpanFacts

Reader = Callable[[Span, SpanFacts], None]
Names = Collection[str]


def _has_word(*words: str) -> Callable[[Names], bool]:
    """Return a function that tells whether any name begins with one of these words."""
    return lambda names: any(name.partition(".")[0] in words for name in names)


# Each reader with the attributes without which it reads nothing: of a span that has none of them it is not asked.
READERS: tuple[tuple[Reader, Callable[[Names], bool]], ...] = (
    (langfuse.read, _has_word("langfuse", "session")),
    (vercel_ai.read, _has_word("ai")),
    (langsmith.read, _has_word("langsmith")),
    (openinference.read, _has_word("openinference")),
    (logfire.read, _has_word("logfire", "agent_name", "pydantic_ai", "events", "all_messages_events", "model_name")),
    (openllmetry.read, openllmetry.is_of_library),
)
# The libraries that give every tool call a span of its own: what their messages say of calls is recorded already.
_WITH_TOOL_SPANS = (
    "openai_agents", "langchain", "langgraph", "pydantic-ai", "pydantic_ai", "gcp.vertex.agent", "google_adk",
    "smolagents", "crewai", "llama_index", "autogen", "agno", "strands", "haystack", "dspy", "langsmith",
)  # fmt: skip
MAX_NAMES = 64  # attributes of a kind of span that is remembered
MAX_NAMES_CHARACTERS = 4_096  # of their names together


class SpanReaders(NamedTuple):
    """Which conventions apply to a span, by its attributes' names and its instrumentation."""

    readers: tuple[Reader, ...]
    has_tool_spans: bool
    is_of_genai: bool


def _readers_of(scope: str, names: Names) -> SpanReaders:
    readers = tuple(reader for reader, may_read in READERS if may_read(names))
    is_of_genai = bool(readers) or any(name.startswith(genai.PREFIXES) for name in names)
    return SpanReaders(readers, any(name in scope for name in _WITH_TOOL_SPANS), is_of_genai)


_cached_readers_of = lru_cache(512)(_readers_of)  # a program has few kinds of spans, and sends them again and again


def read(span: Span) -> SpanFacts:
    """Read a span by all conventions."""
    logfire.settle(span)
    names, scope = span.attributes, span.source.scope
    is_small = len(names) <= MAX_NAMES and len(scope) + sum(map(len, names)) <= MAX_NAMES_CHARACTERS
    known = _cached_readers_of(scope, tuple(names)) if is_small else _readers_of(scope, names)
    readers, has_tool_spans, is_of_genai = known
    facts = SpanFacts(has_tool_spans=has_tool_spans)
    for reader in readers:
        reader(span, facts)
    if is_of_genai or span.events:
        genai.read(span, facts)
    return facts
