"""Create a response: store a client's request, its conversation and the run that answers it, together.

Like publishing, a request is recorded by its own event, which names the requester; the audit log contains only
refusals. Called by the `/v1/responses` endpoint, in a thread.
"""

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from django.db.models import Exists, OuterRef, Q, QuerySet

from conversations.access.action_context import audited_action
from conversations.access.permissions import Who
from conversations.core.errors import Invalid, NotFound, Unavailable
from conversations.core.ids import new_id
from conversations.core.plain_text import short_title
from conversations.core.principals import SYSTEM, Principal
from conversations.events import log, payload
from conversations.events.log import response_queries as log_asked
from conversations.events.log.records import NewEvent, Stored
from conversations.events.log.response_queries import ModelAvailability
from conversations.events.redacted_events import has_redacted
from conversations.events.response_ids import (
    CONTINUABLE,
    DELETED,
    PLAIN_MODEL,
    Json,
    ResponseRequest,
    new_response_id,
    words_of,
)
from conversations.models import Conversation, Event, Response, Run
from conversations.models.run import UNFINISHED
from conversations.runs.responses import unknown_calls

DEMO = "demo"
TRIES = 3
ITEMS = ("response.received", "response.completed")  # types of the events that have a chain's items
NOBODY = ModelAvailability(False, False, False, "", False)

Body = dict[str, object]


class Received(NamedTuple):
    """A response in progress. `seq` is that of its run.queued: followers start after it."""

    response: str
    conversation: str
    run: str
    seq: int
    at: int  # µs UTC
    body: dict[str, Any]  # of response.received
    must_wait: bool  # for another run of the conversation, or for a person


class ResponseTarget(NamedTuple):
    """The conversation of a response. `opened` is the body of conversation.opened if it creates the conversation."""

    key: str
    head: int
    must_wait: bool
    opened: Body | None


class Answerer(NamedTuple):
    """The agent that answers a request, which of its tools are hosted here, and, of a plain model, the team that hosts
    them: only its workers can run them. Empty: any worker can answer."""

    agent: str
    hosted: list[str]
    team: str


class NewResponse(NamedTuple):
    """A response with the events to store for it."""

    response: str
    target: ResponseTarget
    run: str
    body: dict[str, Any]
    events: Sequence[NewEvent]

    def received(self, stored: Sequence[Stored]) -> Received:
        """Return it as it is once its events are stored."""
        *_, received, last = stored
        must_wait = self.target.must_wait
        return Received(self.response, self.target.key, self.run, last.seq, received.at, self.body, must_wait)


class _Moved(Exception):
    """The conversation changed between the check and the append."""


def receive(by: Who, request: ResponseRequest, *, socket: str = "", known_here: bool = True) -> Received:
    """Store the request and queue its run.

    `socket` is the id of the requesting WebSocket: it may continue its own responses with store=false, unless
    `known_here` is false. Raises `NotFound` for a model, `Unavailable` while no worker serves it, `Invalid` for a
    response that cannot be continued, `NotAllowed`.
    """
    _check_outputs(request, socket if known_here else "")
    for _ in range(TRIES - 1):
        with contextlib.suppress(_Moved):
            return _receive(by, request, socket, known_here=known_here)
    return _receive(by, request, socket, known_here=known_here)


def _receive(by: Who, request: ResponseRequest, socket: str, *, known_here: bool) -> Received:
    with audited_action(by, "respond", "responses", right="respond", is_shared=True) as principal:
        answerer = _answerer(request)
        earlier = previous_of(request.previous_response_id, socket if known_here else "")
        response = new_response_id()
        target = _place(request, earlier, response)
        if request.conversation is not None and target.opened is None:
            earlier = remembered(request.conversation)
        new_response = _with_events(
            request, response, answerer, target, earlier.id if earlier else None, principal, socket
        )
        *_, received, _ = stored = log.append(new_response.events)
        if received.seq != _input_seq(target):
            raise _Moved
        if answerer.team:
            Run.objects.filter(id=new_response.run).update(team=answerer.team)
    return new_response.received(stored)


def begin(by: Principal, request: ResponseRequest, *, socket: str = "") -> NewResponse | None:
    """Return the response to a request that continues nothing, for the log's writer: it begins a conversation in which
    nobody else can write before, and the writer checks the requester's token. None if it needs `receive`, as one does
    that only some workers can answer.

    Raises like `receive`, except `NotAllowed`.
    """
    if by.kind != "token" or request.previous_response_id is not None or request.conversation_id is not None:
        return None
    _check_outputs(request, "")
    answerer = _answerer(request)
    if answerer.team:
        return None
    response = new_response_id()
    target = _place(request, None, response)
    return _with_events(request, response, answerer, target, None, by, socket)


def _with_events(
    request: ResponseRequest,
    response: str,
    answerer: Answerer,
    target: ResponseTarget,
    earlier: str | None,
    by: Principal,
    socket: str,
) -> NewResponse:
    run, agent = new_id(), answerer.agent
    body = _received(request, response, agent, by) | {"hosted": answerer.hosted}
    queued: Body = {"event": "run.queued", "id": new_id(), "run_id": run, "agent": agent, "run_kind": "agent"}
    queued |= {"input_seq": _input_seq(target), "response_id": response}
    queued |= {"previous_response_id": earlier, "store": request.store, "socket": socket}
    queued |= {"must_wait": True} if target.must_wait else {}
    events = [_ours(target, target.opened)] if target.opened else []
    events += [log.from_internal(target.key, body, by), _ours(target, queued)]
    return NewResponse(response, target, run, body, events)


def _input_seq(target: ResponseTarget) -> int:
    return target.head + (2 if target.opened else 1)


def _check_outputs(request: ResponseRequest, socket: str) -> None:
    """Raise `Invalid` for the output of a call that was never made. Called before the transaction: earlier events do
    not change."""
    if not any(item.get("type") == "function_call_output" for item in request.input):
        return
    earlier = previous_of(request.previous_response_id, socket)
    if request.conversation is not None:
        earlier = remembered(request.conversation)
    index = unknown_calls.first_unknown(request.input, earlier.id if earlier else None)
    if index is not None:
        shown = payload.clean_text(str(request.input[index].get("call_id"))[:80])
        message = f"no call {shown!r} is waiting for output in this input or the response it continues"
        raise Invalid(message, code="tool_call_not_found", field=f"input[{index}].call_id")


def _answerer(request: ResponseRequest) -> Answerer:
    served = _served(request.model)
    agent, hosted = _agent(request.model, served), _hosted(request.tools, served)
    team = next(filter(None, hosted.values()), "") if agent == PLAIN_MODEL else ""
    return Answerer(agent, list(hosted), team)


def agent_of(model: str) -> str:
    """Return the agent for a model's name. Raises `NotFound` if none is available, `Unavailable` if its worker is
    starting."""
    return _agent(model, _served(model))


def _served(model: str) -> ModelAvailability:
    return log_asked.model_availability(model) if payload.clean_text(model) == model else NOBODY


def _agent(model: str, served: ModelAvailability) -> str:
    if served.is_agent:
        return model
    shown = payload.clean_text(model[:80])
    if served.is_away:
        raise Unavailable(f"{shown!r} is not available right now: try again", code="model_unavailable", field="model")
    if served.is_plain and (model == DEMO or not served.is_demo):
        return PLAIN_MODEL
    raise NotFound(f"no agent or model {shown!r} is available", code="model_not_found", field="model")


def _hosted(tools: Sequence[Json], served: ModelAvailability) -> dict[str, str]:
    """Return which of the tools are hosted here, as far as rows show, each with the team that hosts it; the worker
    decides.

    Raises `Invalid` for a `slug:NAME` that names none.
    """
    if not tools:
        return {}
    offered = msgspec.json.decode(served.hosted) if served.hosted else []
    rows = [(tool["name"], tool.get("team") or "") for tool in offered if tool.get("origin") == "hosted"]
    named = [str(tool.get("name") if tool["type"] == "function" else tool["type"].partition(":")[2]) for tool in tools]
    if any(team and name in named for name, team in rows):
        teams = log_asked.teams_served()
        rows = [(name, team) for name, team in rows if not team or team in teams]
    hosted = dict(rows)
    for at, (tool, name) in enumerate(zip(tools, named, strict=True)):
        if tool["type"] != "function" and name not in hosted:
            raise Invalid(
                f"must be function, or slug:NAME of a tool hosted here; got {tool['type']}", field=f"tools[{at}].type"
            )
    return {name: hosted[name] for name in named if name in hosted}


def previous_of(response: str | None, socket: str) -> Response | None:
    """Return the response to continue. Raises `Invalid` unless it completed, and is stored or belongs to this
    socket."""
    if response is None:
        return None
    row = Response.objects.filter(id=response, status__in=CONTINUABLE).select_related("conversation").first()
    if row is None or not (row.store or (socket and row.socket == socket)):
        raise not_continuable(response)
    return row


def remembered(key: str) -> Response | None:
    """Return the newest response of a conversation that can be continued: one that completed, or is in progress,
    because the next one waits for it. For a fork without one it is the newest that was copied."""
    responses = Response.objects.filter(conversation__key=key, store=True).order_by("-in_seq")
    live = Run.objects.filter(id=OuterRef("run"), status__in=UNFINISHED)
    own = responses.filter(Q(status__in=CONTINUABLE) | Q(status="") & Exists(live)).first()
    return own or _copied(key)


def _copied(key: str) -> Response | None:
    """Return the newest response of a fork's parents that was copied to its end; None if one was redacted in the
    fork."""
    row = Conversation.objects.filter(key=key, copied_seq__gt=0).select_related("parent").first()
    if row is None or has_redacted(Event.objects.filter(conversation=row, seq__lte=row.copied_seq, kind__in=ITEMS)):
        return None
    at, parent = row.copied_seq, row.parent
    while parent is not None and at:
        responses = Response.objects.filter(conversation=parent, store=True, status__in=CONTINUABLE, out_seq__lte=at)
        if (newest := responses.order_by("-in_seq").first()) is not None:
            return newest
        at, parent = min(at, parent.copied_seq), parent.parent
    return None


def not_continuable(response: str) -> Invalid:
    """Return the error for a response that cannot be continued."""
    shown = payload.clean_text(response[:80])
    return Invalid(
        f"there is no response {shown!r} that can be continued",
        code="previous_response_not_found",
        field="previous_response_id",
    )


def _place(request: ResponseRequest, earlier: Response | None, response: str) -> ResponseTarget:
    """Return the conversation: the named one, or the earlier response's, or a new one. Continuing a response that was
    already continued creates a fork."""
    key, fork = request.conversation_id or response, None
    if earlier is not None and request.conversation_id is None:
        log_asked.conversation_state(
            earlier.conversation.key
        )  # locks: of two that go on from it at once one is the fork
        fork = earlier if is_continued(earlier) else None
        key = response if fork else earlier.conversation.key
    standing = log_asked.conversation_state(key) if key != response else None  # nobody else can have made that one
    if standing is not None:
        return ResponseTarget(key, standing.head, standing.must_wait, None)
    opened: Body = {"event": "conversation.opened", "id": new_id(), "title": _title(request), "handler": None}
    if fork is not None:
        opened |= {"parent": fork.conversation.key, "forked_at": fork.out_seq}
        opened["title"] = fork.conversation.title or opened["title"]
    return ResponseTarget(key, 0, False, opened)


def is_continued(earlier: Response) -> bool:
    """Return whether another response of its conversation continued this one; one whose run ended badly does not
    count."""
    continuing = Response.objects.filter(previous=earlier.id, conversation=earlier.conversation_id)
    others = list(continuing.values_list("status", "run"))
    if any(status in (*CONTINUABLE, DELETED) for status, _ in others):
        return True
    return Run.objects.filter(id__in=[run for status, run in others if not status], status__in=UNFINISHED).exists()


def keep_host(run: str, earlier: QuerySet[Run]) -> None:
    """Have a plain model's run wait for the workers of the team that hosts its tools, as the earlier run that was given
    the same tools did."""
    team = earlier.filter(agent=PLAIN_MODEL).values_list("team", flat=True).first()
    if team:
        Run.objects.filter(id=run, agent=PLAIN_MODEL).update(team=team)


def _received(request: ResponseRequest, response: str, agent: str, by: Principal) -> dict[str, Any]:
    body: dict[str, Any] = {"event": "response.received", "id": new_id(), "response_id": response, "agent": agent}
    body |= {"sender": str(by), "recipient": f"agent:{agent}"}
    names = ("previous_response_id", "model", "input", "instructions", "tools", "tool_choice", "allowed_tools")
    body |= {"conversation": request.conversation} if request.conversation is not None else {}
    return body | {name: getattr(request, name) for name in (*names, "params", "store", "stream")}


def _ours(target: ResponseTarget, body: Body) -> NewEvent:
    return log.from_internal(target.key, body, SYSTEM)


def _title(request: ResponseRequest) -> str:
    return payload.clean_text(short_title(words_of(request.input)))
