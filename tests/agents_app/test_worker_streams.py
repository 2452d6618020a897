"""Providers' streams through the worker: recorded ones are in the record as they were, broken ones end as failed runs
with a reason, tries are bounded. One worker, one server, all runs at once."""

import json
import re
from collections import Counter
from contextlib import contextmanager

import pytest
from agents import Agent

from agents_app.model_providers.providers import ModelConfig
from agents_app.teams.definition import Team
from conversations.events import registry
from conversations.models import Event, Run, ToolCall
from tests.support import recorded_streams as streams
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.provider_server import Answer, served_apart
from tests.support.tiers import rounds, sampled

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def streaming(agents, answer, **changed):
    """A worker over these agents, and the server that their models ask; `answer` gets (words, body, which request
    about these words it is)."""
    requests = Counter()

    def respond(_n, request):
        words = re.search(r"<(.*?)>", json.dumps(request.body))[1]
        requests[words] += 1
        return answer(words, requests[words] - 1)

    team = Team(name="streams", agents=agents, entry=[agent.name for agent in agents])
    with served_apart(respond) as server:
        config = ModelConfig(**{"api_key": "sk-a", "base_url": server.url, "model": "m", "silence_s": 20.0} | changed)
        with working(team, config=config, per_team=100):
            yield requests


def agent_of(name, body):
    tools = streams.tools_of(body)
    return Agent(name=name, model=streams.api_of(body), tools=tools, tool_use_behavior="stop_on_first_tool")


@pytest.mark.slow
@pytest.mark.any_database
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of the SDK, at an action newer than its types
@streams.needs_recordings
def test_recorded_streams_are_in_the_record_as_they_were():
    recorded = sampled(streams.RECORDED, one_of=3)
    bodies = {f"r{n}": path.read_bytes() for n, path in enumerate(recorded)}
    refused = {name for name, path in zip(bodies, recorded, strict=True) if streams.has_refused_calls(path)}
    agents = [agent_of(name, body) for name, body in bodies.items()]

    with streaming(agents, lambda words, _: Answer(bodies[words])):
        for name in bodies:
            send_message(f"<{name}>", key=name, to=f"agent:{name}")
        runs = ended_runs(len(bodies), within=60)

    assert len(bodies) >= rounds(17, 50)
    failed = {run.agent for run in runs if run.status == "failed"}
    assert failed <= refused
    for name in bodies.keys() - failed:
        sent = streams.recorded(bodies[name])
        assert as_recorded(name) == sent._replace(calls=sorted(sent.calls)), name
    assert {"token", "output", "model.turn", "tool_step", "run.done"} <= all_fit_their_schemas()


def all_fit_their_schemas():
    """Check all that is recorded; return the event types that are."""
    events = list(Event.objects.order_by("id").values_list("kind", "body"))
    for kind, body in events:
        registry.declared(kind).check(json.loads(body))
    return {kind for kind, _ in events}


def as_recorded(key):
    """What the record has of a run with one answer of a model."""
    steps = [step for step in event_bodies("tool_step", key) if step["status"] == "start"]
    (turn,) = event_bodies("model.turn", key)
    usage = turn["usage"]
    spent = (usage["input_tokens"], usage["output_tokens"]) if usage else None
    texts = [output["text"] for output in event_bodies("output", key) if output["turn"] == 1]
    streamed = "".join(token["text"] for token in event_bodies("token", key))
    assert texts == ([streamed] if streamed else [])
    assert ToolCall.objects.filter(conversation__key=key, status="done").count() == len(steps)
    calls = sorted((step["name"], step["args_raw"]) for step in steps)  # those of one turn are made at once
    return streams.Told(streamed, calls, spent)


def cut_runs(cuts, within):
    """Run recordings cut at (name, place, end); return the conversations. Each run has failed."""
    bodies = {name: streams.body_of(name) for name, _, _ in cuts}
    agents = [agent_of(name, body) for name, body in bodies.items()]

    def answer(words, _):
        name, place, end = words.split(" ")
        return Answer(bodies[name][: int(place)], end=end)

    with streaming(agents, answer, retries=0):
        for name, place, end in cuts:
            send_message(f"<{name} {place} {end}>", key=f"{name}-{place}-{end}", to=f"agent:{name}")
        ended_runs(len(cuts), within=within)
    for name, place, end in cuts:
        ended_as_failed(f"{name}-{place}-{end}", streams.recorded(bodies[name]))
    assert Run.objects.filter(status="failed", reason="error").count() == len(cuts)


def ended_as_failed(key, whole):
    """The run ended with a reason, and what had come of it is told as a part and as nothing else."""
    (failed,) = event_bodies("run.failed", key)
    assert re.match(r"ModelFailed: m: .{10}", failed["error"]), failed
    parts = event_bodies("output", key)
    assert [(part["final"], part["is_partial"]) for part in parts] == [(False, True)] * len(parts)
    assert all(part["text"] and whole.text.startswith(part["text"]) for part in parts)
    assert not event_bodies("tool_step", key)


@pytest.mark.thorough
@streams.needs_recordings
def test_a_recording_cut_anywhere_is_a_failed_run_with_a_reason():
    cuts = [
        (name, place, end)
        for name in streams.CUT
        for end in ("closed", "reset")
        for place in streams.places_of(streams.body_of(name), 12)
    ]

    cut_runs(cuts, within=60)

    assert len(cuts) >= 100
    assert Event.objects.filter(kind="output").exists()


@pytest.mark.faults
@pytest.mark.timeout(900)
@streams.needs_recordings
@pytest.mark.parametrize("name", streams.CUT[1:])
def test_a_recording_cut_after_any_byte_is_a_failed_run_with_a_reason(name):
    cut_runs([(name, place, "closed") for place in streams.places_of(streams.body_of(name), None)][:4000], within=600)


SOON = ("retry-after-ms: 5",)
EVENT = b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[%b]}\n\n'
HALF = EVENT % b'{"index":0,"delta":{"role":"assistant","content":"Hal"},"finish_reason":null}'
WHOLE = (
    EVENT % b'{"index":0,"delta":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}' + b"data: [DONE]\n\n"
)
REFUSAL = json.dumps({"error": {"message": "no capacity for sk-PLANTED0123456789"}}).encode()
FAULTS = {  # words → (answer, how often it is asked for, what the reason has in it)
    **{
        f"status {s}": (Answer(REFUSAL, s, "application/json", SOON), 3, f"responded with {s}") for s in (429, 500, 503)
    },
    "refused key": (Answer(REFUSAL, 401, "application/json"), 1, "responded with 401"),
    "dropped": (None, 3, "the connection was lost"),
    "silent at once": (Answer(b"", end="silent"), 1, "the server was silent for too long"),
    "silent in the middle": (Answer(HALF, end="silent"), 1, "the server was silent for too long"),
    "dripping for ever": (Answer(HALF, end="drip"), 1, "no complete answer within 3 s"),
    "not json": (Answer(b"data: {not json\n\n"), 1, ""),
    "a page": (Answer(b"<html>It works!</html>"), 1, ""),
    "a list": (Answer(b"data: []\n\ndata: [DONE]\n\n"), 1, ""),
    "wrong types": (Answer(b'data: {"choices": 5}\n\ndata: [DONE]\n\n'), 1, ""),
    "an error inside": (Answer(b'data: {"error": {"message": "overloaded"}}\n\n'), 1, "overloaded"),
    "an end and nothing else": (Answer(b"data: [DONE]\n\n"), 1, "nothing before it"),
    "no text": (Answer(b"\xff\xfe\x00"), 1, ""),
    "nothing": (Answer(b""), 1, ""),
}


@pytest.mark.thorough
def test_a_faulty_provider_is_a_failed_run_with_a_reason_after_a_bounded_number_of_tries():
    ours = {name: name.replace(" ", "-") for name in FAULTS}
    agents = [Agent(name="Chat", model="chat:m"), Agent(name="Responses", model="responses:m")]

    def answer(words, n):
        return FAULTS[words.partition(" by ")[0]][0] if not words.startswith("recovers") or n == 0 else Answer(WHOLE)

    with streaming(agents, answer, retries=2, silence_s=1.0, timeout_s=3.0) as requests:
        for name, key in ours.items():
            for by in ("Chat", "Responses"):
                send_message(f"<{name} by {by}>", key=f"{key}-{by}", to=f"agent:{by}")
        runs = ended_runs(2 * len(FAULTS), within=60)

    assert {(run.status, run.reason) for run in runs} == {("failed", "error")}
    for name, key in ours.items():
        for by in ("Chat", "Responses"):
            (failed,) = event_bodies("run.failed", f"{key}-{by}")
            assert re.match(r"ModelFailed: m: .", failed["error"]), (name, failed)
            assert FAULTS[name][2] in failed["error"] or by == "Responses"
            assert requests[f"{name} by {by}"] == FAULTS[name][1], name
    assert not Event.objects.filter(body__contains="PLANTED").exists()


def test_a_provider_that_recovers_is_answered_in_the_same_run():
    def answer(_words, n):
        return Answer(WHOLE) if n else Answer(REFUSAL, 429, "application/json", SOON)

    with streaming([Agent(name="Chat", model="chat:m")], answer) as requests:
        send_message("<one>", to="agent:Chat")
        (run,) = ended_runs()

    assert (run.status, run.attempt, requests["one"]) == ("done", 1, 2)
    assert [output["text"] for output in event_bodies("output")] == ["Hello"]
