"""The client library by itself: its wheel, an empty environment, an agent in another process; the README's agent."""

import ast
import os
import re
import shutil
import subprocess
import sys
import textwrap
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from tests.support.live import ROOT, Server, until

LIBRARY = ROOT / "switchboard"
AGENT = """
from uuid import uuid4
from switchboard import BusMessage, chat_send, get_bus

answer = chat_send("agent:Dialogue", "Somebody is at the desk.")
bus, conversation = get_bus(), answer["published_to"][0].partition(":")[2]
for index, text in enumerate(["On ", "my ", "way."]):
    token = {"event": "token", "id": str(uuid4()), "conversation_id": conversation, "text": text, "index": index}
    bus.publish(f"stream:{conversation}", BusMessage(f"stream:{conversation}", token))
print(answer["envelope_id"], bus.flush())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build it from a clean copy, with the setuptools of the lock file."""
    pytest.importorskip(
        "setuptools", minversion="77", reason="setuptools is too old: `make test` installs the locked one"
    )
    source, built = tmp_path_factory.mktemp("library") / "switchboard", tmp_path_factory.mktemp("built")
    shutil.copytree(LIBRARY, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(built), "."]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=100)
    return next(built.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install it in an environment that has nothing else; no network is asked."""
    home = tmp_path_factory.mktemp("home")
    venv.create(home, symlinks=True)
    command = [sys.executable, "-m", "pip", "--python", str(home), "install", "-q", "--no-index", str(wheel)]
    subprocess.run(command, check=True, capture_output=True, timeout=100)
    return home / "bin" / "python"


def environment(served: Server, token: str, spool: Path) -> dict[str, str]:
    """What an agent is told from outside."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    ours = {"SWITCHBOARD_URL": served.url, "SWITCHBOARD_TOKEN": token, "SWITCHBOARD_SPOOL_DIR": str(spool)}
    return environment | ours | {"AGENT_NAME": "Triage", "PYTHONUNBUFFERED": "1"}


@pytest.mark.thorough
def test_wheel_holds_the_library_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as inside:
        names = {name for name in inside.namelist() if ".dist-info/" not in name}

    assert names == {f"switchboard/{path.name}" for path in [*LIBRARY.glob("*.py"), LIBRARY / "py.typed"]}
    assert wheel.name.startswith("switchboard_client-")


def test_library_imports_nothing_but_the_standard_library_and_its_extras_late() -> None:
    early, all_ = set[str](), set[str]()
    for path in LIBRARY.glob("*.py"):
        tree = ast.parse(path.read_text())
        all_ |= set(imported(ast.walk(tree)))
        early |= set(imported(iter(tree.body)))

    assert all_ - sys.stdlib_module_names - {"switchboard"} == {"redis", "agents"}
    assert early.isdisjoint({"redis", "agents"})


def imported(nodes: Iterator[ast.AST]) -> Iterator[str]:
    """Name the top packages that these statements import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


@pytest.mark.thorough
def test_agent_in_an_empty_environment_is_on_the_record(
    python: Path, served: Server, served_token: str, tmp_path: Path
) -> None:
    conversation = uuid4().hex
    env = environment(served, served_token, tmp_path / "spool") | {"CHAT_TOOL_CONVERSATION_ID": conversation}

    done = subprocess.run(
        [python, "-c", AGENT], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stderr == ""
    envelope_id, is_flushed = done.stdout.split()
    assert is_flushed == "True"
    assert events(served, conversation)[0] == (envelope_id, "message")
    assert [kind for _, kind in events(served, conversation)[1:]] == ["token"] * 3


@pytest.mark.thorough
def test_readmes_agent_answers(python: Path, served: Server, served_token: str, tmp_path: Path) -> None:
    token = served.command("token", "Triage", "--role", "agent").strip().splitlines()[-1]
    conversation = uuid4().hex
    question = {
        "type": "message",
        "conversation_id": conversation,
        "sender": "user:anna",
        "recipient": "agent:Triage",
        "content": "Is anybody there?",
    }

    def is_answered() -> bool:
        """Ask until the agent, once it watches, answers."""
        served.publish(served_token, "chat:Triage", question)
        return "You said: Is anybody there?" in words(served, conversation)

    with started([str(python), "-c", readme_agent()], tmp_path, environment(served, token, tmp_path / "spool")):
        until(is_answered, within=60, what="the agent's answer")


def readme_agent() -> str:
    """Cut the agent out of its guide: the indented block that begins with its imports."""
    text = (ROOT / "docs/how-to/connect-agents.md").read_text()
    block = re.search(r"^    from switchboard import .*\n(?:(?:    .*)?\n)*", text, re.MULTILINE)
    assert block is not None, "the guide shows no agent"
    return textwrap.dedent(block.group())


@contextmanager
def started(command: list[str], folder: Path, env: dict[str, str]) -> Iterator[None]:
    """Run a process for the block; its end is its id's."""
    with (folder / "agent.log").open("w") as log, subprocess.Popen(command, cwd=folder, env=env, stderr=log) as process:
        try:
            yield
            assert process.poll() is None, (folder / "agent.log").read_text()
        finally:
            process.kill()


def events(served: Server, conversation: str) -> list[tuple[str, str]]:
    """Return ids and kinds of a conversation's events."""
    return [(row[0], row[1]) for row in _rows(served, conversation)]


def words(served: Server, conversation: str) -> str:
    """Return all that was said, as stored."""
    return "\n".join(row[2] for row in _rows(served, conversation))


def _rows(served: Server, conversation: str) -> list[tuple[str, str, str]]:
    return served.rows(
        "SELECT e.event_id,e.kind,e.body FROM conversations_event e JOIN conversations_conversation c"
        " ON c.id=e.conversation_id WHERE c.key=? ORDER BY e.seq",
        [conversation],
    )
