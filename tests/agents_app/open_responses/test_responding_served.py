"""Agents behind the responses door of a real server process, asked by the official client and by the Agents SDK."""

import asyncio
import json
import re
import subprocess
import sys

import pytest
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, function_tool
from openai import AsyncOpenAI
from websockets.asyncio.client import connect

from tests.support.doors import Caller
from tests.support.live import ROOT, Server
from tests.support.protocol_client import Client


@pytest.fixture
def token(callers: dict[str, Caller]) -> str:
    return callers["operator"].token


def client_of(server: Server, token: str) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{server.url}/v1", api_key=token, max_retries=0, timeout=60)


@pytest.mark.slow
def test_the_script_of_the_guide_drives_the_town_hall_with_a_hosted_and_an_external_tool(
    door_server: Server, token: str
) -> None:
    guide = (ROOT / "docs/how-to/open-responses.md").read_text()
    script = re.search(r"```python\n(.*?)```", guide, re.DOTALL)[1]
    ((before,),) = door_server.rows("SELECT COALESCE(MAX(id),0) FROM conversations_conversation")

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={"SWITCHBOARD_URL": door_server.url, "SWITCHBOARD_TOKEN": token},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "Nothing moves on Mill Road." in done.stdout
    assert "TH-0A1B2C3D" in done.stdout
    runs = door_server.rows(
        "SELECT t.name, t.origin, t.status, s.hash IS NOT NULL, c.key FROM conversations_toolcall t"
        " JOIN conversations_conversation c ON c.id=t.conversation_id"
        " LEFT JOIN conversations_toolschema s ON s.hash=t.schema WHERE t.origin IN ('hosted', 'external')"
        " AND t.agent='Dialogue' AND c.id>? ORDER BY t.called_seq",
        [before],
    )
    assert {row[:4] for row in runs} == {
        ("incident_status", "hosted", "done", 1),
        ("street_camera", "external", "done", 1),
    }
    (key,) = {row[4] for row in runs}
    page = door_server.request("GET", f"/api/v1/conversations/{key}/events?after=0", token=token)[1]
    kinds = [event["kind"] for event in page["items"]]
    assert (kinds.count("response.received"), kinds.count("response.completed")) == (2, 2)


def test_the_agents_sdk_runs_its_own_agent_on_the_door_with_its_own_tool(door_server: Server, token: str) -> None:
    seen = []

    @function_tool
    def street_camera(street: str) -> str:
        """Look at a street."""
        seen.append(street)
        return "all quiet"

    async def run() -> str:
        async with client_of(door_server, token) as client:
            model = OpenAIResponsesModel("demo", client)
            agent = Agent(name="Watcher", instructions="Watch.", model=model, tools=[street_camera])
            config = RunConfig(tracing_disabled=True)
            return str((await Runner.run(agent, "street camera on Mill Road", run_config=config)).final_output)

    assert asyncio.run(run()) == "street_camera answered: all quiet"
    assert len(seen) == 1


class Watcher:
    """An operator's open socket on one conversation: what came, and who spoke as it came."""

    def __init__(self, server: Server, token: str, key: str) -> None:
        self._where = f"{server.url.replace('http', 'ws')}/ws/"
        self._token, self._topic = token, f"stream:{key}"
        self.client = Client()

    async def watch(self, *, until: int, answered: asyncio.Event) -> None:
        """Follow until so many responses are completed, saying so at each."""
        headers = {"Authorization": f"Bearer {self._token}"}
        async with connect(self._where, additional_headers=headers) as socket:
            await socket.send(json.dumps({"op": "subscribe", "topic": self._topic, "after": 0}))
            while self.kinds.count("response.completed") < until:
                before = self.kinds.count("response.completed")
                self.client.take(await socket.recv())
                if self.kinds.count("response.completed") > before:
                    answered.set()

    @property
    def kinds(self) -> list[str]:
        """List the events that were seen, in order."""
        return [body["event"] for _, body in self.client.seen]


def test_two_agents_of_the_sdk_talk_through_the_door_while_an_operator_watches(door_server: Server, token: str) -> None:
    """Each speaks as its own model on the server; an operator sees one conversation, each answer before the next."""
    key, watcher = "sdk-pair", Watcher(door_server, token, "sdk-pair")

    async def run() -> list[str]:
        words_sent, answered = ["Hello!"], asyncio.Event()
        watching = asyncio.create_task(watcher.watch(until=3, answered=answered))
        async with client_of(door_server, token) as client:
            for n in range(3):
                model = OpenAIResponsesModel("Dialogue" if n % 2 else "demo", client)
                agent = Agent(name=f"Voice {n % 2}", model=model)
                agent.model_settings.metadata = {"conversation_id": key}
                result = Runner.run_streamed(agent, words_sent[-1][:200], run_config=RunConfig(tracing_disabled=True))
                deltas = [
                    event.data.delta
                    async for event in result.stream_events()
                    if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
                ]
                assert "".join(deltas) == result.final_output
                words_sent.append(str(result.final_output))
                async with asyncio.timeout(60):  # the operator has it before the next one speaks
                    await answered.wait()
                answered.clear()
        async with asyncio.timeout(60):
            await watching
        return words_sent

    lines = asyncio.run(run())

    assert all(lines)
    completed = [body for _, body in watcher.client.seen if body["event"] == "response.completed"]
    texts = ["".join(p["text"] for i in body["output"] for p in i["content"]) for body in completed]
    assert texts == lines[1:]
    assert [seq for seq, _ in watcher.client.seen] == list(range(1, watcher.client.last + 1))
    assert watcher.kinds.count("response.received") == 3
    assert watcher.kinds.count("token") >= 3
