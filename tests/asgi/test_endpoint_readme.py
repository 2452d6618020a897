"""The commands of the guide on plain HTTP, as they stand there."""

import json
import shutil
import subprocess

import pytest

from tests.support.doors import Caller
from tests.support.live import ROOT, Server

GUIDE = ROOT / "docs/how-to/connect-agents.md"


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is missing: apt-get install curl")
def test_the_commands_of_the_guide_do_what_it_says(door_server: Server, callers: dict[str, Caller]) -> None:
    section = GUIDE.read_text().partition("\n## Over plain HTTP\n")[2].partition("\n## ")[0]
    commands = "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))
    script = commands.replace("http://127.0.0.1:8000", door_server.url).replace('"$@"; }', '"$@"; echo; }')

    done = subprocess.run(
        ["bash", "-ec", script],
        env={"TOKEN": callers["admin"].token, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.decode().splitlines() if line.startswith("{")]
    assert [item["seq"] for item in answers[0]["items"]] == [1, 1]
    assert answers[1]["items"][0]["payload"]["text"] == "Hello"
    assert answers[2] == {"items": [], "cursor": None}
    assert answers[3]["items"][0]["conversation_id"]
    assert answers[4]["items"][0]["body"]["text"] == "Hello"
