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


def span_of(one, trace):
    """Write an observation as the SDK does."""
    plain = {"langfuse.observation.type": one["type"].lower()}
    for side in ("input", "output"):
        if (value := one.get(side)) is not None:
            plain[f"langfuse.observation.{side}"] = value if isinstance(value, str) else json.dumps(value)
    if spent := parsed(one.get("usageDetails")):
        plain["langfuse.observation.usage_details"] = json.dumps(spent)
    if one.get("model"):
        plain["langfuse.observation.model.name"] = one["model"]
    if one.get("level") == "ERROR":
        plain |= {"langfuse.observation.level": "ERROR", "langfuse.observation.status_message": one["statusMessage"]}
    return {
        "traceId": trace,
        "spanId": hexed(one["id"], 8),
        "parentSpanId": hexed(one["parentObservationId"], 8) if one.get("parentObservationId") else "",
        "name": one["name"],
        "startTimeUnixNano": nanos(one["startTime"]),
        "endTimeUnixNano": nanos(one["endTime"] or one["startTime"]),
        "attributes": [{"key": key, "value": value_of(value)} for key, value in plain.items()],
    }


def counted(name):
    """Count a file by itself: agents, calls of tools that were run, errors, tokens in and out."""
    found = observations(name)
    by_id = {one["id"]: one for one in found}

    def is_within_generation(one):
        while one := by_id.get(one.get("parentObservationId")):
            if one["type"] in ("GENERATION", "AGENT", "TOOL"):
                return one["type"] == "GENERATION"
        return False

    outer = [one for one in found if one["type"] == "GENERATION" and not is_within_generation(one)]
    spent = [parsed(one.get("usageDetails")) or {} for one in outer]
    return (
        Counter(one["name"] for one in found if one["type"] == "TOOL"),
        sum(one.get("level") == "ERROR" and one["type"] in ("GENERATION", "TOOL") for one in found),
        sum(int(each.get("input") or 0) for each in spent),
        sum(int(each.get("output") or 0) for each in spent),
    )


def scope_of(name):
    """Return the instrumentation that made a trace."""
    scopes = [parsed(parsed(one["metadata"])["scope"])["name"] for one in observations(name)]
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
    spans = [span_of(one, whole) for one in observations(name)]
    shuffled = random.Random(11).sample([{**span, "traceId": mixed} for span in spans], len(spans))

    send(caller, name, spans)
    send(caller, name, shuffled[: len(shuffled) // 2])
    for one in shuffled:
        send(caller, name, [one])
    send(caller, name, shuffled)

    told, agents = of_record(counts_of(server, whole))
    calls, *others = counted(name)
    assert counts_of(server, whole).messages == MESSAGES.get(name, counts_of(server, whole).messages)
    assert told[1:] == tuple(others)
    assert {tool: told[0].get(tool, 0) for tool in calls} == calls
    assert agents >= {one["name"] for one in observations(name) if one["type"] == "AGENT" and is_named(name, one)}
    assert counts_of(server, mixed)[1:] == counts_of(server, whole)[1:]


def is_named(name, one):
    """Return whether an agent's own run tells anything beside its frame."""
    children = [each for each in observations(name) if each.get("parentObservationId") == one["id"]]
    return any(each["type"] in ("GENERATION", "TOOL") for each in children)
