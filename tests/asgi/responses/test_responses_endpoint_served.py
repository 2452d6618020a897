"""The responses door on a port: the official client, real sockets, and a worker in another process."""

import json
import socket
import struct
from contextlib import closing

import openai
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from conversations.models import Response, Run
from tests.support.doors import events_of
from tests.support.live import until
from tests.support.responses_served import served_desk
from tests.support.stand_in import MODEL

RAIN = {
    "type": "function",
    "name": "rain",
    "parameters": {"type": "object", "properties": {"street": {"type": "string"}}},
}


@pytest.fixture
def served(transactional_db):
    with served_desk() as desk:
        yield desk


def client_of(url, token):
    return openai.OpenAI(base_url=url, api_key=token, max_retries=0, timeout=60)


def drive(client):
    """Ask, stream, have a tool called, go on: what the official client does with a server; return the last response."""
    first = client.responses.create(model=MODEL, input='call rain {"street": "Elm"}', tools=[RAIN])
    call = first.output[-1]
    assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "rain", {"street": "Elm"})
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "none since noon"}
    texts, kinds = [], []
    stream = client.responses.create(
        model=MODEL, input=[output], tools=[RAIN], previous_response_id=first.id, stream=True
    )
    for event in stream:
        kinds.append(event.type)
        if event.type == "response.output_text.delta":
            texts.append(event.delta)
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    assert "".join(texts) == "You said: none since noon"
    with client.responses.stream(model=MODEL, input="and now?", previous_response_id=event.response.id) as managed:
        final = managed.get_final_response()
    assert final.output_text == "You said: and now?"
    assert final.previous_response_id == event.response.id
    return final


@pytest.mark.slow
def test_the_official_client_asks_streams_and_goes_on(served):
    client = client_of(served.url, served.desk.token)

    drive(client)

    assert Response.objects.count() == 3
    compacted = client.responses.compact(model=MODEL, input="hello")
    assert client.responses.create(model=MODEL, input=[compacted.output[0].to_dict()]).status == "completed"


def test_the_official_clients_errors_are_of_their_kind(served):
    client = client_of(served.url, served.desk.token)

    with pytest.raises(openai.NotFoundError) as missing:
        client.responses.create(model="nobody", input="x")
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as wrong:
        client.responses.create(model=MODEL, input="x", previous_response_id="resp_1")
    assert (wrong.value.code, wrong.value.param) == ("previous_response_not_found", "previous_response_id")
    with pytest.raises(openai.AuthenticationError):
        client_of(served.url, "sb_nobody").responses.create(model=MODEL, input="x")


def request(token, body):
    raw = json.dumps(body).encode()
    head = (
        f"POST /v1/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(raw)}\r\n\r\n"
    )
    return head.encode() + raw


def test_each_event_is_one_chunk_of_the_answer(served):
    with closing(served.connect()) as wire:
        wire.sendall(request(served.desk.token, {"model": MODEL, "input": "some words here", "stream": True}))
        answer = b""
        while not answer.endswith(b"0\r\n\r\n"):
            answer += wire.recv(65536)

    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"text/event-stream" in head
    chunks = []
    while body != b"0\r\n\r\n":
        size, _, rest = body.partition(b"\r\n")
        chunks.append(rest[: int(size, 16)])
        body = rest[int(size, 16) + 2 :]
    for chunk in chunks[:-1]:
        assert chunk.startswith(b"event: ")
        assert chunk.endswith(b"\n\n")
        assert chunk.count(b"\n") == 3
        assert b"\r" not in chunk
    assert chunks[-1] == b"data: [DONE]\n\n"


def test_a_reader_that_does_not_read_is_hung_up_and_the_run_goes_on(served, monkeypatch):
    monkeypatch.setattr("conversations.asgi.responses.endpoint.SLOW_AFTER", 0.5)
    with closing(socket.socket()) as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.connect(("127.0.0.1", served.port))
        body = {"model": MODEL, "input": "silent " + "x" * 900_000, "stream": True}  # told five times over
        wire.sendall(request(served.desk.token, body))
        until(lambda: Run.objects.filter(status="done").exists())
        until(lambda: served.desk.context.followers.count == 0, what="the slow reader to be let go")

    assert Response.objects.get().status == "completed"


def socket_to(port, token, **more):
    head = {"Authorization": f"Bearer {token}"} if token else {}
    return connect(f"ws://127.0.0.1:{port}/v1/responses", additional_headers=head, compression=None, **more)


def turn(wire):
    kinds = []
    while True:
        event = json.loads(wire.recv(60))
        kinds.append(event["type"])
        if kinds[-1] in ("response.completed", "response.failed", "error"):
            return kinds, event


def test_a_real_socket_asks_and_goes_on(served):
    with closing(socket_to(served.port, served.desk.token)) as wire:
        wire.send(json.dumps({"type": "response.create", "model": MODEL, "input": "x" * 200_000, "store": False}))
        kinds, event = turn(wire)
        assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
        previous = event["response"]["id"]
        wire.send(
            json.dumps({"type": "response.create", "model": MODEL, "input": "on", "previous_response_id": previous})
        )
        assert turn(wire)[1]["response"]["output"][0]["content"][0]["text"] == "You said: on"


@pytest.mark.parametrize(("token", "status"), [("", 401), ("sb_nobody", 401)])
def test_a_real_socket_without_a_good_bearer_is_refused(served, token, status):
    with pytest.raises(InvalidStatus) as refused:
        socket_to(served.port, token, origin="http://127.0.0.1:8000")

    assert refused.value.response.status_code == status
    assert json.loads(refused.value.response.body)["error"]["code"] == "not_signed_in"


def test_a_frame_over_a_megabyte_closes_the_socket(served):
    with closing(socket_to(served.port, served.desk.token)) as wire:
        # Its beginning says how long it would be; what came behind would meet a closed socket, and the close be lost.
        wire.socket.sendall(struct.pack("!BBQ4s", 0x81, 0xFF, 2 << 20, b"mask") + b"x" * 100)
        with pytest.raises(ConnectionClosed) as closed:
            wire.recv(60)

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


@pytest.mark.slow
def test_a_real_server_streams_what_a_worker_elsewhere_writes(door_server, callers):
    token, home = callers["operator"].token, door_server.data_dir.parent
    script = ["shell", "--no-imports", "-c", "from tests.support import stand_in; stand_in.main(60)"]
    worker = door_server.spawn(script, home / "worker.out", home / "worker.err")
    try:
        with door_server.database() as database:
            registered = "SELECT 1 FROM conversations_agent WHERE name='Stand-in'"
            until(lambda: database.execute(registered).fetchall(), within=60, what="the worker to register")
        final = drive(client_of(f"{door_server.url}/v1", token))
        with closing(socket_to(door_server.port, token)) as wire:
            wire.send(json.dumps({"type": "response.create", "model": MODEL, "input": "over a socket"}))
            assert turn(wire)[0][-1] == "response.completed"
    finally:
        worker.kill()
        worker.wait()
    kinds = [kind for _, kind, _ in events_of(door_server, conversation_of(final, door_server))]
    assert kinds.count("response.completed") == 3


def conversation_of(final, server):
    """Return the conversation of a response."""
    with server.database() as database:
        (row,) = database.execute(
            "SELECT conversation_id FROM conversations_response WHERE id=?", [final.id]
        ).fetchone()
        return database.execute("SELECT key FROM conversations_conversation WHERE id=?", [row]).fetchone()[0]
