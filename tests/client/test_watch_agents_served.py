"""`watch_agents` in programs of their own, against a real server that goes away, and killed."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from tests.support.cutting_proxy import CuttingProxy
from tests.support.forking import bare_nursery
from tests.support.live import ROOT, Server, until
from tests.support.provider_answers import call, message
from tests.support.provider_server import served_apart
from tests.support.tiers import rounds, variants
from tests.support.watched import by_results

PROGRAM = """
import asyncio, sys
import switchboard
from agents import Agent, RunConfig, Runner, function_tool

watch = switchboard.watch_agents()

@function_tool
def add(a: int, b: int) -> int:
    return a + b

async def main(group, number):
    agent = Agent("Counter", model="gpt-test", tools=[add])
    for n in range(number):
        result = await Runner.run(agent, "what is 1 + 2?", run_config=RunConfig(group_id=f"{group}-{n}"))
        if number > 1 and await asyncio.to_thread(watch.flush, 60):
            print(n, flush=True)
    print(result.final_output, flush=True)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""
STEPS = [call("add", {"a": 1, "b": 2}, "call_1")], [message("It is 3.")]
WHOLE = {"run.started": 1, "user_message": 1, "model.call": 2, "tool_step": 2, "output": 1, "run.done": 1}


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """A model server that calls the tool first, and speaks once it has its result."""
    with served_apart(by_results(*STEPS)) as server:
        yield server.url


@pytest.fixture(scope="module")
def desk(served: Server) -> str:
    """The token of an agent, as the page Connect makes it."""
    return served.command("token", "Desk", "--role", "agent").strip().splitlines()[-1]


def environment(url: str, token: str, provider: str, spool: Path) -> dict[str, str]:
    """What the program is given from outside."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("SWITCHBOARD_", "OPENAI_"))}
    ours = {"SWITCHBOARD_URL": url, "SWITCHBOARD_TOKEN": token, "SWITCHBOARD_SPOOL_DIR": str(spool)}
    theirs = {"OPENAI_BASE_URL": provider, "OPENAI_API_KEY": "none", "AGENT_NAME": "Desk"}
    return outside | ours | theirs | {"OPENAI_TRACING_DISABLED_FOR_EXPORT": "1", "PYTHONUNBUFFERED": "1"}


class Program:
    """The program in a process of its own, which has the SDK imported already."""

    def __init__(self, group: str, number: int, env: dict[str, str]) -> None:
        self._printed = Path(env["SWITCHBOARD_SPOOL_DIR"]).parent / f"{group}.printed"
        self._printed.touch()
        command = ["-c", PROGRAM, group, str(number)]
        self._process = bare_nursery(ROOT).fork(command, env=env, stdout=self._printed, stderr=Path(os.devnull))

    def lines(self, count: int) -> list[str]:
        """Wait until it has printed so many lines; return them."""
        printed = until(lambda: len(lines := self.whole_lines()) >= count and lines, what=f"{count} lines")
        return printed[:count]

    def whole_lines(self) -> list[str]:
        """Return what it has printed so far."""
        return self._printed.read_text().split("\n")[:-1]

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait(60)

    def over(self) -> list[str]:
        """Wait for its end; return what it printed."""
        self._process.wait(100)
        return self.whole_lines()


def recorded(served: Server, conversation: str) -> list[tuple[str, str, str]]:
    """Return id, kind and body of a conversation's events."""
    rows = served.rows(
        "SELECT e.event_id,e.kind,e.body FROM conversations_event e JOIN conversations_conversation c"
        " ON c.id=e.conversation_id WHERE c.key=? ORDER BY e.seq",
        [conversation],
    )
    return [(id, kind, body) for id, kind, body in rows]


@pytest.mark.slow
def test_program_with_one_line_is_a_conversation(
    served: Server, served_token: str, desk: str, provider: str, tmp_path: Path
) -> None:
    group = uuid4().hex

    output = Program(group, 1, environment(served.url, desk, provider, tmp_path / "spool")).over()

    assert output == ["It is 3."]
    until(lambda: len(recorded(served, f"{group}-0")) == sum(WHOLE.values()), what="the conversation")
    assert Counter(kind for _, kind, _ in recorded(served, f"{group}-0")) == WHOLE
    status, head = served.request("GET", f"/api/v1/conversations/{group}-0", token=served_token)
    assert (status, head["title"], head["tool_calls"], head["errors"]) == (200, "what is 1 + 2?", 1, 0)
    assert head["participants"] == ["agent:Desk/Counter"]
    _, calls = served.request("GET", "/api/v1/tool-calls", token=served_token)
    (made,) = [item for item in calls["items"] if item["conversation_id"] == f"{group}-0"]
    assert (made["call_id"], made["name"], made["output"], made["status"]) == ("call_1", "add", 3, "done")
    with served.database() as database:
        sums = (
            "SELECT turns,input_tokens,output_tokens FROM conversations_modelusage WHERE turns>0 AND conversation_id="
        )
        key = "(SELECT id FROM conversations_conversation WHERE key=?)"
        assert database.execute(sums + key, [f"{group}-0"]).fetchall() == [(2, 22, 10)]


@pytest.mark.slow
@pytest.mark.parametrize("state", variants(["away", "hanging"]))
def test_what_happens_while_the_server_is_away_is_sent_by_the_next_program(
    served: Server, proxy: CuttingProxy, desk: str, provider: str, tmp_path: Path, state: Any
) -> None:
    group, env = uuid4().hex, environment(proxy.url, desk, provider, tmp_path / "spool")
    proxy.be(state)
    assert Program(group, 1, env).over() == ["It is 3."]
    assert recorded(served, f"{group}-0") == []

    proxy.be("there")
    Program(f"{group}-next", 1, env).over()

    for conversation in (f"{group}-0", f"{group}-next-0"):
        assert Counter(kind for _, kind, _ in recorded(served, conversation)) == WHOLE


@pytest.mark.slow
def test_killed_program_loses_and_doubles_nothing_that_was_acknowledged(
    served: Server, proxy: CuttingProxy, desk: str, provider: str, tmp_path: Path
) -> None:
    random, group, env = Random(7), uuid4().hex, environment(proxy.url, desk, provider, tmp_path / "spool")
    acknowledged: list[str] = []
    for round_ in range(rounds(2, 12)):
        proxy.be(("there", "away", "cutting")[round_ % 3])
        running = Program(f"{group}-{round_}", 10_000, env)
        acknowledged += [f"{group}-{round_}-{number}" for number in running.lines(random.randrange(1, 6))]
        running.kill()
    proxy.be("there")
    Program(f"{group}-last", 2, env).over()

    for conversation in acknowledged:
        events = recorded(served, conversation)
        assert Counter(kind for _, kind, _ in events) == WHOLE, conversation
        assert len({id for id, _, _ in events}) == len(events)
        assert events[0][1] == "run.started"
