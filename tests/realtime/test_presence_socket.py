"""Presence over a real socket: people are told who looks, programs too, an agent's token never."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from websockets.sync.client import ClientConnection, connect

from tests.asgi.test_live_socket import receive, sign_in, subscribe
from tests.support.doors import message_payload
from tests.support.live import Server

KEY = "looked-at"
TOPIC = f"stream:{KEY}"


@contextmanager
def looking(server: Server, *, cookie: str = "", token: str = "") -> Iterator[ClientConnection]:
    """Follow the conversation, as a person or as a program."""
    headers = {"Authorization": f"Bearer {token}"} if token else {"Cookie": f"switchboard_session={cookie}"}
    origin = None if token else f"http://127.0.0.1:{server.port}"
    address = f"ws://127.0.0.1:{server.port}/ws/"
    with connect(address, additional_headers=headers, origin=origin, compression=None) as wire:
        subscribe(wire, TOPIC, after=0)
        yield wire


def people(wire: ClientConnection) -> list[tuple[str, str]]:
    return [(person["name"], person["state"]) for person in receive(wire, "presence")["people"]]


def test_people_and_programs_are_told_who_looks_and_an_agents_token_never(door_server, callers) -> None:
    callers["admin"].publish(f"chat:{KEY}", message_payload(KEY, "Is anybody there?", recipient="agent:Desk"))
    walter, rosa = (sign_in(door_server, name) for name in ("walter", "rosa"))
    with ExitStack() as open_sockets:
        agent = open_sockets.enter_context(looking(door_server, token=callers["desk"].token))
        program = open_sockets.enter_context(looking(door_server, token=callers["viewer"].token))
        first = open_sockets.enter_context(looking(door_server, cookie=walter))
        assert people(first) == people(program) == [("walter", "looking")]

        with looking(door_server, cookie=rosa):
            assert people(first) == people(program) == [("rosa", "looking"), ("walter", "looking")]
        assert people(first) == people(program) == [("walter", "looking")]

        callers["admin"].publish(f"chat:{KEY}", message_payload(KEY, "the last one"))
        kinds = set()
        while True:
            frame = json.loads(agent.recv(timeout=60))
            kinds.add(frame["t"])
            if "the last one" in json.dumps(frame):
                break
    assert kinds - {"head"} == {"events", "caught_up"}  # a head comes every 15 s
