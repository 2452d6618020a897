"""Traces that people sent to Langfuse, as its SDK exports them: what comes out is what an independent count of the file
says, and the same record sent twice, shuffled and halved."""

import json
import random
from collections import Counter
from datetime import datetime
from hashlib import sha256

import pytest

from tests.support.live import ROOT
from tests.support.otlp import JSON, counts_of, export
from tests.support.tiers import variants
from tests.telemetry.test_recorded import value_of

DATA = ROOT.parent / "shared" / "data" / "langfuse-traces"
NAMES = ("openai-agents-2025-09-30", "claude-agent-2025-12-22", "google-adk-2025-08-28", "langgraph-python-2025-08-22",
         "crewai-2025-07-11", "autogen-2025-06-06")  # fmt: skip

MESSAGES = {"openai-agents-2025-09-30": 2, "google-adk-2025-08-28": 2, "autogen-2025-06-06": 2}  # as one reads them


def observations(name):
    return json.loads((DATA / f"{name}.trace.json").read_text())["observations"]


def parsed(value):
    """Undo what the export wrote as a text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def hexed(text, size):
    return sha256(text.encode()).hexdigest()[: 2 * size]


def nanos(moment):
    return str(int(datetime.fromisoformat(moment).timestamp() * 1e6) * 1000)


def span_of(observation, trace):
    """Write an observation as the SDK does."""
    plain = {"langfuse.observation.type": observation["type"].lower()}
    for side in ("input", "output"):
        if (value := observation.get(side)) is not None:
            plain[f"langfuse.observation.{side}"] = value if isinstance(value, str) else json.dumps(value)
    if spent := parsed(observation.get("usageDetails")):
        plain["langfuse.observation.usage_details"] = json.dumps(spent)
    if observation.get("model"):
        plain["langfuse.observation.model.name"] = observation["model"]
    if observation.get("level") == "ERROR":
        plain |= {
            "langfuse.observation.level": "ERROR",
            "langfuse.observation.status_message": observation["statusMessage"],
        }
    return {
        "traceId": trace,
        "spanId": hexed(observation["id"], 8),
        "parentSpanId": hexed(observation["parentObservationId"], 8) if observation.get("parentObservationId") else "",
        "name": observation["name"],
        "startTimeUnixNano": nanos(observation["startTime"]),
        "endTimeUnixNano": nanos(observation["endTime"] or observation["startTime"]),
        "attributes": [{"key": key, "value": value_of(value)} for key, value in plain.items()],
    }


def counted(name):
    """Count a file by itself: agents, calls of tools that were run, errors, tokens in and out."""
    recorded = observations(name)
    by_id = {observation["id"]: observation for observation in recorded}

    def is_within_generation(observation):
        while observation := by_id.get(observation.get("parentObservationId")):
            if observation["type"] in ("GENERATION", "AGENT", "TOOL"):
                return observation["type"] == "GENERATION"
        return False

    outer = [
        observation
        for observation in recorded
        if observation["type"] == "GENERATION" and not is_within_generation(observation)
    ]
    spent = [parsed(observation.get("usageDetails")) or {} for observation in outer]
    return (
        Counter(observation["name"] for observation in recorded if observation["type"] == "TOOL"),
        sum(
            observation.get("level") == "ERROR" and observation["type"] in ("GENERATION", "TOOL")
            for observation in recorded
        ),
        sum(int(each.get("input") or 0) for each in spent),
        sum(int(each.get("output") or 0) for each in spent),
    )


def scope_of(name):
    """Return the instrumentation that made a trace."""
    scopes = [parsed(parsed(observation["metadata"])["scope"])["name"] for observation in observations(name)]
    return Counter(scopes).most_common(1)[0][0]


def send(caller, name, spans):
    body = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope_of(name)}, "spans": spans}]}]}
    assert export(caller, json.dumps(body).encode(), content_type=JSON).status == 200


def of_record(counts):
    agents, _, calls, errors, *tokens = counts
    return (dict(calls), errors, *tokens), agents


@pytest.mark.parametrize("name", variants(NAMES))
def test_a_trace_of_langfuse_is_what_its_file_says_in_any_order(server, caller, name):
    whole, mixed = hexed(f"whole {name}", 16), hexed(f"mixed {name}", 16)
    spans = [span_of(observation, whole) for observation in observations(name)]
    shuffled = random.Random(11).sample([{**span, "traceId": mixed} for span in spans], len(spans))

    send(caller, name, spans)
    send(caller, name, shuffled[: len(shuffled) // 2])
    for row in shuffled:
        send(caller, name, [row])
    send(caller, name, shuffled)

    shown, agents = of_record(counts_of(server, whole))
    calls, *others = counted(name)
    assert counts_of(server, whole).messages == MESSAGES.get(name, counts_of(server, whole).messages)
    assert shown[1:] == tuple(others)
    assert {tool: shown[0].get(tool, 0) for tool in calls} == calls
    assert agents >= {
        observation["name"]
        for observation in observations(name)
        if observation["type"] == "AGENT" and is_named(name, observation)
    }
    assert counts_of(server, mixed)[1:] == counts_of(server, whole)[1:]


def is_named(name, observation):
    """Return whether an agent's own run tells anything beside its frame."""
    children = [each for each in observations(name) if each.get("parentObservationId") == observation["id"]]
    return any(each["type"] in ("GENERATION", "TOOL") for each in children)
