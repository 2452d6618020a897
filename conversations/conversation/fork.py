"""Forks: a new conversation that continues another's events 1…N, unchanged or with one message edited.

The parent stays unchanged. The copy is only history (`projections.forks`): it starts no run, and runs, approval
requests and calls stay the parent's. A run is queued only on request (§3.4, fork and run).

Long histories are copied in pages before the action's own transaction; nobody sees a fork before that has committed.
"""

from typing import Any, NamedTuple

from conversations.access.action_context import audited_action, check_reason, event_author, find_conversation
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.conversation.post_message import MAX_CONTENT
from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.core.failpoints import failpoint
from conversations.core.ids import derived_id, new_id
from conversations.core.plain_text import short_title
from conversations.core.principals import Principal
from conversations.events import log, registry
from conversations.events.log import bounded_reads
from conversations.events.log.fork_copy import HANDLING, named_handler
from conversations.events.log.records import NewEvent
from conversations.events.payload import ParsedPayload, clean_text, parse
from conversations.events.redacted_events import require_unredacted
from conversations.models import Agent, Conversation, Event, Redaction, Run
from conversations.runs.claims import Body
from conversations.runs.responses.create import keep_host

LOOK_BACK = 5000  # events in which the message to answer is looked for
AGENT_INPUT = registry.names_with("agent_input")  # what a person may have said


class AnsweringRun(NamedTuple):
    """What a run at an event would answer: the event, its recipient, and the agent that would answer here."""

    seq: int  # 0: nothing was said
    sender: str
    recipient: str
    words: str
    agent: str  # empty: nobody here


class CreatedFork(NamedTuple):
    """A fork that exists. `run` is empty if none was requested."""

    conversation: str
    seq: int
    """of its conversation.forked"""
    run: str


def fork(
    by: Who, conversation: str, at: int, *, words: str | None = None, run: bool = False, agent: str = "",
    answers: int = 0, reason: str = "", client_id: str = "",
) -> CreatedFork:  # fmt: skip
    """Fork a conversation right after event `at`; with `run`, have `agent` continue (default: who would answer).

    With `words` the event at `at` must be a message: the fork has it with this text instead, sent by whoever forks. The
    same `client_id` again returns the same fork. Raises NotFound, Invalid with the field, NotAllowed, and Conflict if
    what the run would answer was redacted.
    """
    _check(words, reason, client_id)
    with audited_action(
        by, "fork", f"conversation:{conversation}", right="control"
    ) as principal:  # before anything is copied
        parent = _parent(conversation, at)
        key = _key(principal, conversation, client_id) if client_id else new_id()
    if client_id and (existing := _existing_fork(key)) is not None:
        return existing
    changed = _changed(parent, at) if words is not None else None
    answering = answering_at(parent, at)
    who = _agent(agent or answering.agent, answering) if run else ""
    if run and changed is None:
        require_unredacted(parent.pk, answers or answering.seq)
    plan = _Plan(key, parent, at, principal, reason, who, answers or answering.seq)
    try:
        return _make(by, plan, words, changed)
    except Conflict:
        if (
            client_id and (existing := _existing_fork(key)) is not None
        ):  # asked twice at once, and the other was quicker
            return existing
        raise


def rerun(by: Who, run: str, *, reason: str = "", client_id: str = "") -> CreatedFork:
    """Fork a run's conversation at the point where the run began, and have its agent answer the same message again."""
    original = Run.objects.filter(id=run).select_related("conversation").first()
    if original is None:
        raise NotFound(f"there is no run {run[:80]}")
    return fork(
        by, original.conversation.key, began_at(original), run=True, agent=original.agent, answers=original.input_seq,
        reason=reason, client_id=client_id,
    )  # fmt: skip


def began_at(run: Run) -> int:
    """Return the last event that a run may have seen when it began: all before its first start."""
    events = Event.objects.filter(conversation=run.conversation_id, seq__gte=run.queued_seq, run=run.id)
    started = events.filter(kind="run.started").order_by("seq").values_list("seq", flat=True).first()
    return (started or run.queued_seq) - 1


def answering_at(parent: Conversation, at: int) -> AnsweringRun:
    """Return what a run right after event `at` would answer: the last message from anyone but an agent, or from one
    agent to another that is available here; else the last message of all."""
    agents, handler = frozenset(Agent.objects.values_list("name", flat=True)), _handler_at(parent, at)
    near = Event.objects.filter(conversation=parent, seq__lte=at, seq__gt=at - LOOK_BACK, kind__in=AGENT_INPUT)
    last = AnsweringRun(0, "", "", "", "")
    for seq, body in near.order_by("-seq").values_list("seq", "body").iterator(bounded_reads.FETCHED):
        payload = parse(body.encode())
        answering = AnsweringRun(
            seq, payload.speaker, payload.recipient or "", payload.words, _name(payload, handler, agents)
        )
        if answering.agent or not payload.speaker.startswith("agent:"):
            return answering
        last = last if last.seq else answering
    return last


def is_changeable(event: Event) -> bool:
    """Return whether a fork may edit the text of an event."""
    return event.kind in ("message", "user_message") and event.erased_by is None


class _Plan(NamedTuple):
    """What follows the copied events."""

    key: str
    parent: Conversation
    at: int
    principal: Principal
    reason: str
    agent: str
    answers: int
    handler: str = ""  # of the parent at that event
    title: str = ""

    def append(self, text: str | None, changed: Event | None) -> CreatedFork:
        """Append it inside the action: the fork's own event, the edited message, the run."""
        copied = self.at - 1 if changed else self.at
        events = [self._forked(copied, changed)]
        if changed is not None:
            events += self._message_events(text or "", changed)
        run = new_id() if self.agent else ""
        if run:
            answers = copied + 2 if changed else self.answers
            queued: Body = {"event": "run.queued", "id": new_id(), "run_id": run, "agent": self.agent}
            queued |= {"run_kind": "agent", "input_seq": answers, "reason": f"fork of {self.parent.key}"}
            events.append(self._ours(queued))
        stored = log.append(events)
        if run and changed is None:
            keep_host(run, Run.objects.filter(conversation=self.parent, input_seq=self.answers))
        return CreatedFork(self.key, stored[0].seq, run)

    def _forked(self, copied: int, changed: Event | None) -> NewEvent:
        handler = self.handler or (f"agent:{self.agent}" if self.agent else "")
        body: Body = {"event": "conversation.forked", "id": new_id(), "parent": self.parent.key, "forked_at": copied}
        body |= {"title": self.title, "handler": handler or None}
        body |= {"changed": changed.seq} if changed else {}
        return self._ours(body | ({"reason": self.reason} if self.reason else {}))

    def _ours(self, body: Body) -> NewEvent:
        writer, by = event_author(self.principal)
        return log.from_internal(self.key, body | by, writer)

    def _message_events(self, text: str, changed: Event) -> list[NewEvent]:
        """Return the edited message. It goes to external agents only if someone is to answer it."""
        was = parse(changed.body.encode())
        recipient = was.recipient or f"chat:{self.parent.key}"
        recipient = f"chat:{self.key}" if recipient == f"chat:{self.parent.key}" else recipient
        before: dict[str, Any] = {"conversation_id": self.parent.key, "seq": changed.seq, "sender": was.speaker}
        payload: Body = {"id": new_id(), "conversation_id": self.key, "sender": f"user:{self.principal.name}"}
        payload |= {"recipient": recipient, "type": "message", "content": text}
        payload |= {"metadata": {"changed": before | {"content": was.words}}}
        topics = [f"stream:{self.key}"]
        if self.agent:
            topics = [f"chat:{self.key}"]
            topics += [f"chat:{recipient.removeprefix('agent:')}"] if recipient.startswith("agent:") else []
        return [event._replace(starts_no_run=True) for event in log.from_people(topics, payload, self.principal)]


def _make(by: Who, plan: _Plan, text: str | None, changed: Event | None) -> CreatedFork:
    """Copy the events, then publish them together with the fork's own. Nothing remains of a fork that fails."""
    redacted = _newest_redaction(plan.parent)
    copied = log.ForkCopy(log.StagedBatch(), plan.key, plan.parent, upto=plan.at - 1 if changed else plan.at)
    verb, target = "fork", f"conversation:{plan.parent.key}"
    try:
        copied.take()
        failpoint("before-fork")
        with audited_action(by, verb, target, right="control") as principal:
            copied.publish()
            if _newest_redaction(plan.parent) != redacted:
                raise Conflict("events were redacted while they were being copied: fork again", code="redacted")
            title = _title(plan.parent, copied.head.title, text or "", changed)
            forked = plan._replace(handler=copied.handler, title=title).append(text, changed)
            correlation = {"conversation": plan.key, "forked_at": plan.at, "run": forked.run}
            chain.add_entry(principal, verb, target, reason=plan.reason, correlation=correlation)
    except BaseException:
        copied.discard()
        raise
    return forked


def _newest_redaction(parent: Conversation) -> int | None:
    newest = Redaction.objects.filter(conversation=parent).order_by("-id")
    return newest.values_list("id", flat=True).first()


def _title(parent: Conversation, of_copies: str, text: str, changed: Event | None) -> str:
    """Return the parent's title, or the first words of the edited message (`text`) if that message gave the title or if
    no copied event would give one."""
    if changed is None:
        return parent.title
    was = short_title(parse(changed.body.encode()).words)
    return clean_text(short_title(text)) if not of_copies or parent.title == was else parent.title


def _check(text: str | None, reason: str, client_id: str) -> None:
    if text is not None and not text.strip():
        raise Invalid("must not be empty", field="words")
    if text is not None and len(text) > MAX_CONTENT:
        raise Invalid(f"must be at most {MAX_CONTENT:,} characters; got {len(text):,}", field="words")
    check_reason(reason)
    if len(client_id) > 100:
        raise Invalid("must be at most 100 characters", field="client_id")


def _parent(key: str, at: int) -> Conversation:
    conversation = find_conversation(key)
    if not 1 <= at <= conversation.head_seq:
        raise Invalid(f"must be an event from 1 to {conversation.head_seq:,}; got {at:,}", field="at")
    return conversation


def _changed(parent: Conversation, at: int) -> Event:
    event = Event.objects.get(conversation=parent, seq=at)
    if not is_changeable(event):
        raise Invalid(f"event {at} is not a message that can be edited", field="words")
    return event


def _agent(name: str, answering: AnsweringRun) -> str:
    """Return the agent that continues. Raises Invalid if it is not available here, or if there is nothing to answer."""
    if not answering.seq:
        raise Invalid("must come after a message; otherwise there is nothing to answer", field="at")
    if name and Agent.objects.filter(name=name).exists():
        return name
    addressee = name or answering.recipient
    whom = f"{addressee[:80]!r} is not available" if addressee else "the message has no recipient"
    raise Invalid(f"must be the name of an available agent: {whom}", field="agent")


def _handler_at(parent: Conversation, at: int) -> str:
    """Return who handled the conversation at an event; who handles it now if nobody was named by then."""
    naming = Event.objects.filter(conversation=parent, seq__lte=at, kind__in=HANDLING).exclude(kind="token")
    rows = naming.order_by("-seq").values_list("kind", "principal", "body")
    for kind, principal, body in rows.iterator(bounded_reads.FETCHED):
        if name := named_handler(kind, principal, parse(body.encode())):
            return name.removeprefix("agent:")
    return parent.handler.removeprefix("agent:")


def _name(payload: ParsedPayload, handler: str, agents: frozenset[str]) -> str:
    """Return the agent, available here, that a message is for; empty for none."""
    kind, _, name = (payload.recipient or "").partition(":")
    if kind == "agent":
        return name if name in agents and payload.speaker != f"agent:{name}" else ""
    return handler if handler in agents and not payload.speaker.startswith("agent:") else ""


def _key(principal: Principal, conversation: str, client_id: str) -> str:
    """Return the fork's id: the same for the same principal, conversation and client id."""
    return derived_id(f"fork\0{principal}\0{conversation}\0{client_id}")


def _existing_fork(key: str) -> CreatedFork | None:
    """Return the fork that was made earlier under this id; None if there is none."""
    conversation = Conversation.objects.visible().filter(key=key, parent__isnull=False).first()
    if conversation is None:
        return None
    run = Run.objects.filter(conversation=conversation).order_by("queued_seq").values_list("id", flat=True).first()
    return CreatedFork(key, conversation.copied_seq + 1, run or "")
