"""A client asks for a response: what it asked, the conversation it belongs to and the run that answers, together.

Like publishing, asking is recorded by its own event, which names who asked; the audit log has refusals. Called by the
responses door, in a thread.
"""

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from conversations import envelopes, log
from conversations.actions.acting import acting
from conversations.errors import Invalid, NotFound
from conversations.ids import new_id
from conversations.log import asked as log_asked
from conversations.log.asked import Served
from conversations.log.events import NewEvent
from conversations.models import Response, Run
from conversations.principals import SYSTEM, Principal
from conversations.responses import CONTINUABLE, PLAIN_MODEL, Asked, Json, new_response_id, words_of
from conversations.rights import Who

DEMO = "demo"
TITLE = 80  # characters
TRIES = 3
LIVE = ("queued", "running", "waiting")
NOBODY = Served(False, False, False, "")

Body = dict[str, object]


class Received(NamedTuple):
    """A response that is under way. `seq` is its run.queued's: whoever follows it begins after that."""

    response: str
    conversation: str
    run: str
    seq: int
    at: int  # µs UTC
    body: dict[str, Any]  # of response.received
    must_wait: bool  # for another run of the conversation, or for a person


class Place(NamedTuple):
    """Where a response goes. `opened` is the body of conversation.opened where it makes the conversation."""

    key: str
    head: int
    must_wait: bool
    opened: Body | None


class _Moved(Exception):
    """The conversation went on between the look and the append."""


def receive(by: Who, asked: Asked, *, socket: str = "", known_here: bool = True) -> Received:
    """Store the request and queue its run.

    `socket` is the id of the websocket that asks: what it was answered with store=false it may continue, unless
    `known_here` is false. Raises `NotFound` for a model, `Invalid` for a response that cannot be continued,
    `NotAllowed`.
    """
    for _ in range(TRIES - 1):
        with contextlib.suppress(_Moved):
            return _receive(by, asked, socket, known_here=known_here)
    return _receive(by, asked, socket, known_here=known_here)


def _receive(by: Who, asked: Asked, socket: str, *, known_here: bool) -> Received:
    with acting(by, "respond", "responses", right="respond") as principal:
        served = _served(asked.model)
        agent, hosted = _agent(asked.model, served), _hosted(asked.tools, served)
        earlier = previous_of(asked.previous_response_id, socket if known_here else "")
        response, run = new_response_id(), new_id()
        place = _place(asked, earlier, response)
        body = _received(asked, response, agent, principal) | {"hosted": hosted}
        queued: Body = {"event": "run.queued", "id": new_id(), "run_id": run, "agent": agent, "run_kind": "agent"}
        queued |= {"input_seq": place.head + (2 if place.opened else 1), "response_id": response}
        queued |= {"previous_response_id": asked.previous_response_id, "store": asked.store, "socket": socket}
        events = [_ours(place, place.opened)] if place.opened else []
        events += [log.of_ours(place.key, body, principal), _ours(place, queued)]
        *_, received, last = log.append(events)
        if received.seq != queued["input_seq"]:
            raise _Moved
    return Received(response, place.key, run, last.seq, received.at, body, place.must_wait)


def agent_of(model: str) -> str:
    """Answer the agent that answers for a model's name. Raises `NotFound` where none is served now."""
    return _agent(model, _served(model))


def _served(model: str) -> Served:
    return log_asked.served(model) if envelopes.fit(model) == model else NOBODY


def _agent(model: str, served: Served) -> str:
    if served.is_agent:
        return model
    if served.is_plain and (model == DEMO or not served.is_demo):
        return PLAIN_MODEL
    shown = envelopes.fit(model[:80])
    raise NotFound(f"no agent and no model {shown!r} is served now", code="model_not_found", field="model")


def _hosted(tools: Sequence[Json], served: Served) -> list[str]:
    """Answer which of the tools are hosted here, as far as rows tell: for who reads the record, the worker decides.

    Raises `Invalid` for a `slug:NAME` that names none.
    """
    if not tools:
        return []
    told = msgspec.json.decode(served.hosted) if served.hosted else []
    hosted = {tool["name"] for tool in told if tool.get("origin") == "hosted"}
    named = [str(tool.get("name") if tool["type"] == "function" else tool["type"].partition(":")[2]) for tool in tools]
    for at, (tool, name) in enumerate(zip(tools, named, strict=True)):
        if tool["type"] != "function" and name not in hosted:
            raise Invalid(
                f"expected function, or slug:NAME of a tool hosted here; got {tool['type']}", field=f"tools[{at}].type"
            )
    return [name for name in named if name in hosted]


def previous_of(response: str | None, socket: str) -> Response | None:
    """Answer the response that another goes on from. Raises `Invalid` unless it ended well, and is stored or this
    socket's own."""
    if response is None:
        return None
    found = Response.objects.filter(id=response, status__in=CONTINUABLE).select_related("conversation").first()
    if found is None or not (found.store or (socket and found.socket == socket)):
        raise not_continuable(response)
    return found


def not_continuable(response: str) -> Invalid:
    """Say that a response cannot be continued."""
    shown = envelopes.fit(response[:80])
    return Invalid(
        f"no response {shown!r} that can be continued", code="previous_response_not_found", field="previous_response_id"
    )


def _place(asked: Asked, earlier: Response | None, response: str) -> Place:
    """Find the conversation: the one that is named, else the earlier response's, else a new one. A response that was
    continued before is not continued beside it: that is a fork."""
    key, fork = asked.conversation_id or response, None
    if earlier is not None and asked.conversation_id is None:
        fork = earlier if is_continued(earlier) else None
        key = response if fork else earlier.conversation.key
    standing = log_asked.standing(key) if key != response else None  # nobody else can have made that one
    if standing is not None:
        return Place(key, standing.head, standing.must_wait, None)
    opened: Body = {"event": "conversation.opened", "id": new_id(), "title": _title(asked), "handler": None}
    if fork is not None:
        opened |= {"parent": fork.conversation.key, "forked_at": fork.out_seq}
        opened["title"] = fork.conversation.title or opened["title"]
    return Place(key, 0, False, opened)


def is_continued(earlier: Response) -> bool:
    """Tell whether another response went on from this one; one whose run ended badly did not."""
    others = list(Response.objects.filter(previous=earlier.id).values_list("status", "run"))
    if any(status in CONTINUABLE for status, _ in others):
        return True
    return Run.objects.filter(id__in=[run for status, run in others if not status], status__in=LIVE).exists()


def _received(asked: Asked, response: str, agent: str, by: Principal) -> dict[str, Any]:
    facts: dict[str, Any] = {"event": "response.received", "id": new_id(), "response_id": response, "agent": agent}
    facts |= {"sender": str(by), "recipient": f"agent:{agent}"}
    names = ("previous_response_id", "model", "input", "instructions", "tools", "tool_choice", "allowed_tools")
    return facts | {name: getattr(asked, name) for name in (*names, "params", "store", "stream")}


def _ours(place: Place, body: Body) -> NewEvent:
    return log.of_ours(place.key, body, SYSTEM)


def _title(asked: Asked) -> str:
    line = " ".join(words_of(asked.input)[:400].split())
    return envelopes.fit(line if len(line) <= TITLE else f"{line[: TITLE - 1]}…")
