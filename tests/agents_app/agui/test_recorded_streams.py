"""What others recorded of AG-UI, played by a remote agent: an independent count of each file is what comes out."""

import asyncio
import json
from collections import Counter

import pytest

from agents_app.agui.event_reader import KNOWN, event_of, events_of
from agents_app.agui.http_stream import RemoteFailed
from conversations.models import Event, Run, ToolCall
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.live import ROOT

DATA = ROOT.parent / "shared" / "data" / "ag-ui"
RUNS = json.loads((DATA / "events.json").read_text())
SINGLE = ("activity", "custom-and-raw", "message", "run", "state", "tool-call")
BROKEN = {"Malformed Examples"}


def texts_of(events: list[dict]) -> list[str]:
    """Return each message's text, by an own count."""
    texts: dict[str, str] = {}
    for event in events:
        if event["type"] in ("TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK"):
            texts[event["messageId"]] = texts.get(event["messageId"], "") + event["delta"]
    return list(texts.values())


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_each_recorded_run_becomes_what_it_says(remote, tmp_path):
    for name, events in RUNS.items():
        stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        (tmp_path / f"{name}.txt").write_text(stream)

    with working(remote()):
        for name in RUNS:
            send_message(f"play {tmp_path / name}.txt", key=f"recorded-{name}", to="agent:Weather")
        ended_runs(len(RUNS), within=60)

    for name, events in RUNS.items():
        key, kinds = f"recorded-{name}", Counter(event["type"] for event in events)
        run = Run.objects.get(conversation__key=key)
        assert run.status == ("failed" if kinds["RUN_ERROR"] else "done"), (name, event_bodies("run.failed", key))
        if not kinds["RUN_ERROR"] and texts_of(events):
            assert event_bodies("output", key)[-1]["text"] == "\n\n".join(texts_of(events)), name
        calls = ToolCall.objects.filter(conversation__key=key)
        assert calls.count() == kinds["TOOL_CALL_START"], name
        assert calls.filter(status="done").count() == kinds["TOOL_CALL_RESULT"], name
        counts = Counter(Event.objects.filter(conversation__key=key).values_list("kind", flat=True))
        for kind in ("STATE_SNAPSHOT", "STATE_DELTA", "ACTIVITY_SNAPSHOT", "CUSTOM", "RAW", "STEP_STARTED"):
            assert counts[f"agui.{kind.lower()}"] == kinds[kind], (name, kind)


@pytest.mark.parametrize("name", [*SINGLE, "forward-compatibility"])
def test_each_recorded_event_is_read(name):
    path = DATA / (f"{name}-events.json" if name in SINGLE else f"{name}.json")

    for value in json.loads(path.read_text()):
        event = event_of(json.dumps(value).encode())
        if event is None:
            assert value["type"] not in KNOWN or (value["type"], "value" in value) == ("CUSTOM", False)
            continue
        assert event.type.value == value["type"]
        assert event_of(event.model_dump_json(by_alias=True).encode()) == event


def sections() -> dict[str, str]:
    """Return the recorded streams by their headings."""
    texts: dict[str, str] = {}
    for part in (DATA / "sse_streams.txt").read_text().split("## ")[1:]:
        title, _, stream = part.partition("\n")
        texts[title] = stream + "\n\n"
    return texts


async def read(stream: str, size: int) -> list:
    """Read a stream that comes in pieces of so many bytes."""
    data = stream.encode()

    async def pieces():
        for at in range(0, len(data), size):
            yield data[at : at + size]

    return [event async for event in events_of(pieces(), most=1 << 20)]


@pytest.mark.parametrize("size", [1, 7, 65_536])
def test_each_recorded_stream_is_read_however_it_is_cut(size):
    for title, stream in sections().items():
        if title in BROKEN:
            with pytest.raises(RemoteFailed):
                asyncio.run(read(stream, size))
        else:
            events = asyncio.run(read(stream, size))
            blocks = [block for block in stream.split("\n\n") if "data:" in block]
            assert len(events) == len(blocks), title
