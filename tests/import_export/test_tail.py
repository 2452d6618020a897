"""`switchboard tail`: a conversation in a terminal, over a server that goes away."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO
from uuid import uuid4

import pytest

from tests.support import programs
from tests.support.cutting_proxy import proxied
from tests.support.live import Server


@contextmanager
def tailed(server: Server, *arguments: str, **environment: str) -> Iterator[TextIO]:
    """Run the command in the block, with what it prints."""
    with programs.printing(["tail", *arguments], server.env() | environment) as (_, output):
        yield output


def say(served: Server, token: str, key: str, words: str) -> None:
    """Say something in a conversation."""
    message = {
        "type": "message",
        "conversation_id": key,
        "sender": "agent:A",
        "recipient": f"chat:{key}",
        "content": words,
    }
    assert served.publish(token, f"chat:{key}", message)[0] == 201


def test_words_are_printed_as_they_come(served: Server, served_token: str) -> None:
    key = uuid4().hex
    say(served, served_token, key, "hello")

    with tailed(served, key, "--from-start") as output:
        first = [output.readline() for _ in range(2)]
        say(served, served_token, key, "still here")
        later = "".join(iter(lambda: "" if (line := output.readline()) == "    still here\n" else line, ""))

    assert re.fullmatch(r"\[1\] \d\d:\d\d:\d\d UTC A.*\n", first[0])
    assert "hello" in "".join(first) + later


def test_nothing_is_missed_over_an_interruption(served: Server, served_token: str) -> None:
    key, words = uuid4().hex, [f"number {n}" for n in range(6)]
    with proxied(served.port) as proxy:
        proxy.be("there")
        environment = {"SWITCHBOARD_URL": proxy.url, "SWITCHBOARD_TOKEN": served_token}
        say(served, served_token, key, words[0])
        with tailed(served, key, "--json", "--from-start", **environment) as output:
            read = [json.loads(output.readline())]
            proxy.be("away")
            say(served, served_token, key, words[1])
            proxy.be("there")
            for text in words[2:]:
                say(served, served_token, key, text)
            read += [json.loads(output.readline()) for _ in range(5)]

    assert [event["body"]["content"] for event in read] == words


@pytest.mark.slow
def test_the_server_of_the_data_directory_is_followed_into_its_next_start(tmp_path: Path) -> None:
    """It gives its commands tokens that end with it."""
    server = Server(tmp_path / "data").start()
    try:
        token = server.token()
        say(server, token, "desk", "before")
        with tailed(server, "--json", "--from-start", "desk") as output:
            lines = [output.readline()]
            server.terminate()
            server.start()
            say(server, token, "desk", "after")
            lines.append(output.readline())
    finally:
        server.terminate()

    assert [line and json.loads(line)["body"]["content"] for line in lines] == ["before", "after"]


def test_the_ids_of_json_continue_the_feed_of_this_database(served: Server, served_token: str) -> None:
    key = uuid4().hex
    for text in ("first", "second"):
        say(served, served_token, key, text)

    with tailed(served, key, "--json", "--from-start") as output:
        first, second = (json.loads(output.readline()) for _ in range(2))
    epoch, _, row = str(first["id"]).rpartition(".")
    assert epoch
    assert row.isdecimal()
    with tailed(served, key, "--json", "--after", first["id"]) as output:
        again = json.loads(output.readline())

    assert again == second
