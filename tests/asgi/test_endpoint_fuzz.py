"""Requests made from the OpenAPI document and frames of any kind: no answer is a 500, and the server lives.

`make test` does a small, seeded share; `make faults` 100,000 requests and frames.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import hypothesis
import pytest
import requests
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from dashboard.api.openapi.document import document
from tests.support.doors import Caller, token
from tests.support.live import Server
from tests.support.shares import amount_of, seed
from tests.support.tiers import rounds, variants

OPERATIONS = [  # all that take something
    (path, method)
    for path, item in document()["paths"].items()
    for method, details in item.items()
    if details["parameters"] or "requestBody" in details
]
SLOW = "/api/v1/publish"  # cases of its union take a third of a second to make: most of its bodies are made below
LARGEST = 64 << 10  # bytes of a frame
WAITS = ("block_ms", "wait_s")  # how long an answer may wait for something to happen
CLOSES = {1000, 1009, 4403}


@cache
def schema() -> Any:
    """Read the document, once; the library is imported by who fuzzes, not by each process that collects the tests."""
    import schemathesis

    @schemathesis.serializer("application/x-ndjson")
    def as_lines(context: Any, value: Any) -> bytes:
        """Write a generated value as a body of lines."""
        return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")

    return schemathesis.openapi.from_dict(document())


def modes() -> list[Any]:
    """List how requests are made: as the document says, and not so."""
    from schemathesis import GenerationMode

    return [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]


def runs(examples: int) -> Callable[[Any], Any]:
    """Run so many examples, the same ones each time."""
    chosen = settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    return lambda test: chosen(hypothesis.seed(seed())(test)) if seed() else chosen(test)


def fuzz_operation(caller: Caller, path: str, method: str, examples: int) -> Counter[int]:
    """Send so many requests to one operation; return how often each status came."""
    operation = schema()[path][method]
    statuses = {int(status) for status in document()["paths"][path][method]["responses"]}
    may_wait = [name for name in WAITS if name in {p["name"] for p in document()["paths"][path][method]["parameters"]}]
    seen: Counter[int] = Counter()
    session = requests.Session()
    session.trust_env = False

    for mode in modes():

        @runs(max(1, examples // 2))
        @given(case=operation.as_strategy(generation_mode=mode))
        def send_case(case: Any) -> None:
            for name in may_wait:
                if str((case.query or {}).get(name, "0")).isdecimal():
                    case.query = {**(case.query or {}), name: "0"}  # else the time goes by waiting
            headers = {"Authorization": f"Bearer {caller.token}"}
            request = _request(case, caller.server, headers)
            with session.request(**request, timeout=30, allow_redirects=False, stream=True) as answer:
                kind = answer.headers.get("Content-Type", "")
                text = "" if kind.startswith("text/event-stream") else answer.text  # a stream may have no end
            seen[answer.status_code] += 1
            assert answer.status_code < 500 or answer.status_code == 503, (answer.status_code, text)
            if path.startswith(answer.request.path_url[:4]) and kind == "application/json":
                assert answer.status_code in statuses | {404}, (answer.status_code, text)
                json.loads(text)

        send_case()
    session.close()
    return seen


def _request(case: Any, server: Server, headers: dict[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = case.as_transport_kwargs(base_url=server.url, headers=headers)
    made["headers"]["Authorization"] = headers["Authorization"]
    return made


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
NAMES = (
    *("event", "type", "sender", "agent", "recipient", "content", "text", "index", "name", "args", "status", "turn"),
    *("metadata", "conversation_id", "run_id", "tool_call_id", "duration_ms", "output", "error", "created_at", "title"),
)
TOPICS = st.sampled_from(
    ["stream:fuzzed-doors", "fleet", "stream:", "stream:\ud800", "approvals", "stream:" + "x" * 200, ""]
)
ASKED = st.fixed_dictionaries(
    {"op": st.sampled_from(["subscribe", "unsubscribe"]), "topic": TOPICS},
    optional={
        "after": st.integers(-2, 5) | st.sampled_from([2**53, 2**70, 1.5, "1", True]),
        "epoch": ANY_JSON,
        "render": ANY_JSON,
    },
)
FRAMES = st.one_of(
    ASKED.map(json.dumps),
    ANY_JSON.map(json.dumps),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace").decode()),
    st.binary(max_size=200),
    st.integers(1, 3000).map(lambda depth: "[" * depth),
    st.just(70_000).map(lambda size: "x" * size),
)
PART = st.fixed_dictionaries(
    {},
    optional={
        "topic": st.sampled_from(["stream:fuzzed-doors", "chat:fuzzed-doors", "signal:x", "dlq:x", "nowhere:x"])
        | ANY_JSON,
        "payload": ANY_JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, ANY_JSON)),
        "id": st.sampled_from(["a", "b", ""]) | ANY_JSON,
        "messages": ANY_JSON,
    },
)
BODIES = st.one_of(
    PART.map(json.dumps),
    st.lists(PART, max_size=5).map(lambda messages: json.dumps({"messages": messages})),
    ANY_JSON.map(json.dumps),
    st.binary(max_size=100),
    st.tuples(PART.map(json.dumps), st.integers(0, 200)).map(lambda cut: cut[0][: cut[1]]),
)


def fuzz_bodies(caller: Caller, bodies: int) -> Counter[int]:
    """Publish so many bodies of any kind; return how often each status came."""
    seen: Counter[int] = Counter()
    session = requests.Session()
    session.trust_env = False
    address = f"{caller.server.url}{SLOW}"

    @runs(bodies)
    @given(body=BODIES, kind=st.sampled_from(["application/json", "application/x-ndjson"]))
    def send_body(body: str | bytes, kind: str) -> None:
        head = {"Authorization": f"Bearer {caller.token}", "Content-Type": kind}
        data = body.encode() if isinstance(body, str) else body
        answer = session.post(address, data=data, headers=head, timeout=30)
        seen[answer.status_code] += 1
        assert answer.status_code in (200, 201, 400, 403, 409, 413), (answer.status_code, answer.text)

    send_body()
    session.close()
    return seen


def fuzz_frames(caller: Caller, frames: int) -> Counter[str]:
    """Send so many frames, over new sockets as the server closes old ones; return how it went."""
    seen: Counter[str] = Counter()
    open_socket: list[ClientConnection] = []
    cut_off: set[ClientConnection] = set()  # sockets on which a frame was too large: its rest cuts the answer off

    @runs(max(1, frames // 10))
    @given(batch=st.lists(FRAMES, min_size=10, max_size=10))
    def ten(batch: list[str | bytes]) -> None:
        for frame in batch:
            if not open_socket:
                open_socket.append(_connect(caller))
            if len(frame) > LARGEST:
                cut_off.add(open_socket[0])
            try:
                open_socket[0].send(frame)
                seen["sent"] += 1
                wait = 5 if isinstance(frame, bytes) else 0  # it is hung up on: what is sent behind it cuts that off
                while True:
                    seen[json.loads(open_socket[0].recv(wait))["t"]] += 1
            except TimeoutError:
                continue
            except ConnectionClosed as closed:
                code = (
                    closed.rcvd.code if closed.rcvd else 1009 if open_socket[0] in cut_off else 0
                )  # 0: without a word
                seen[str(code)] += 1
                open_socket.pop()

    ten()
    for part in open_socket:
        part.close()
    assert {name for name in seen if name.isdigit()} <= {str(code) for code in CLOSES}
    return seen


def _connect(caller: Caller) -> ClientConnection:
    address = f"ws://127.0.0.1:{caller.server.port}/ws/"
    return connect(address, additional_headers={"Authorization": f"Bearer {caller.token}"}, compression=None)


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_no_request_breaks_the_server(door_server: Server, callers: dict[str, Caller], path: str, method: str) -> None:
    seen = fuzz_operation(callers["fuzzer"], path, method, rounds(3, 10) if path == SLOW else rounds(3, 40))

    assert sum(seen.values()) >= 2
    assert callers["admin"].publish("stream:alive", {"event": "log"}).status == 201


@pytest.mark.slow
@pytest.mark.parametrize("name", variants(["fuzzer", "admin"]))
def test_no_body_breaks_the_server(callers: dict[str, Caller], name: str) -> None:
    seen = fuzz_bodies(callers[name], rounds(50, 300))

    assert {200, 400} <= set(seen)
    assert callers["admin"].publish("stream:alive", {"event": "log"}).status == 201


@pytest.mark.slow
def test_no_frame_breaks_the_server(callers: dict[str, Caller]) -> None:
    callers["admin"].batch(*[token("fuzzed-doors", n) for n in range(3)])

    frames = rounds(500, 1500)
    seen = fuzz_frames(callers["admin"], frames)

    assert seen["sent"] > frames * 2 // 3
    assert {"error", "events", "caught_up", "1009"} <= set(seen)
    assert callers["admin"].publish("stream:alive", {"event": "log"}).status == 201


# A hundred thousand in all, whatever of an operation's cases there are not so many different ones of.
REQUESTS = {operation: 1000 if operation[0] == SLOW else 1500 for operation in OPERATIONS}
BODIES_BY = {"admin": 30_000, "fuzzer": 10_000}
FRAMES_SENT = max(20_000, 100_000 - sum(BODIES_BY.values()) - sum(REQUESTS.values()) // 2)
Told = Callable[[str, object], None]


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("path", "method"), REQUESTS)
def test_thousands_of_requests_break_nothing(
    door_server: Server, callers: dict[str, Caller], path: str, method: str, record_property: Told
) -> None:
    seen = fuzz_operation(callers["admin"], path, method, amount_of(REQUESTS[path, method]))

    record_property("amount", f"{sum(seen.values()):,} requests, by status {dict(seen)}")
    assert 500 not in seen
    assert callers["admin"].publish("stream:alive", {"event": "log"}).status == 201


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", BODIES_BY)
def test_tens_of_thousands_of_bodies_break_nothing(
    callers: dict[str, Caller], name: str, record_property: Told
) -> None:
    seen = fuzz_bodies(callers[name], amount_of(BODIES_BY[name]))

    record_property("amount", f"{sum(seen.values()):,} bodies, by status {dict(seen)}")
    assert sum(seen.values()) >= amount_of(BODIES_BY[name])
    assert callers["admin"].publish("stream:alive", {"event": "log"}).status == 201


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_tens_of_thousands_of_frames_break_nothing(callers: dict[str, Caller], record_property: Told) -> None:
    callers["admin"].batch(*[token("fuzzed-doors", n) for n in range(3)])

    seen = fuzz_frames(callers["admin"], amount_of(FRAMES_SENT) * 5 // 4)  # some meet a socket that is closed already

    record_property("amount", f"{seen['sent']:,} frames, answers and closes {dict(seen)}")
    assert seen["sent"] >= amount_of(FRAMES_SENT)
    assert callers["admin"].publish("stream:alive", {"event": "log"}).status == 201


def pid_of(server: Server) -> int:
    """Return the id of the server's process."""
    assert server.process is not None
    return server.process.pid


def _send_and_listen(wire: ClientConnection, frame: str) -> None:
    wire.send(frame)
    wire.recv(60)


def memory_of(server: Server, what: str) -> int:
    """Return the server's memory in bytes: `VmRSS` now, `VmHWM` at its most."""
    with open(f"/proc/{pid_of(server)}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(what)) * 1024


ROOM = 16 << 20
LARGE = 64 << 20


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
@pytest.mark.parametrize("form", ["told", "in chunks", "a frame"])
def test_64_mib_are_refused_with_little_memory(door_server: Server, callers: dict[str, Caller], form: str) -> None:
    caller = callers["admin"]
    caller.batch(*[token("warm", n) for n in range(100)])
    before = memory_of(door_server, "VmRSS")
    with open(f"/proc/{pid_of(door_server)}/clear_refs", "w") as clear:
        clear.write("5")  # the peak begins again

    if form == "a frame":
        with _connect(caller) as wire, pytest.raises(ConnectionClosed) as closed:
            _send_and_listen(wire, "x" * LARGE)
        assert closed.value.rcvd is None or closed.value.rcvd.code == 1009
    else:
        sent: Any = b"x" * LARGE if form == "told" else (b"x" * (1 << 20) for _ in range(64))
        answer = caller.ask("POST", "/api/v1/publish", sent)
        assert (answer.status, answer.body["error"]["code"]) == (413, "too_large")

    assert memory_of(door_server, "VmHWM") - before < ROOM
    assert caller.publish("stream:alive", {"event": "log"}).status == 201
