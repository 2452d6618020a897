"""What happened to messages that people sent: stored, on the bus, waiting, picked up, answered, failed. For pages.

It is computed from rows and events by the messages' event numbers, so a reload shows the same. What an external agent
does with a message is known only from its events: the first one after the message counts as picking it up.
"""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Length

from conversations.conversation import conversation_row
from conversations.core.database_clock import database_now
from conversations.core.errors import SwitchboardError
from conversations.core.ids import copy_id
from conversations.core.micros import to_datetime
from conversations.events import payload, registry
from conversations.models import Agent, Conversation, Event, Participant, Post, Run
from conversations.models.run import LIVE
from conversations.rendering import richtext
from conversations.rendering.run_rows import FAILURE_REASONS
from conversations.runs import deliver_messages
from conversations.runs.deliver_messages import Delivery
from conversations.transport import relay_start

MAX_MESSAGES = 60  # messages of one answer
AFTERWARDS = 50  # events after a message in which an agent of another process is looked for
LEGIBLE = 20_000  # characters of such an event
LAST_WORDS = 20  # events before a run's end in which its answer is looked for
AGAIN_S = 2.0  # seconds until it is worth asking again for what no event tells

LOOK_S = 15.0  # the same while something waits: a worker ends without a word
ENDS = {
    "failed": "failed",
    "cancelled": "was stopped",
    "interrupted": "was interrupted",
    "incompatible": "could not resume",
}
UNSIGNED = registry.names_with("unsigned")
STEPS = {"stored": 1, "bus": 2, "waits": 1, "late": 1, "picked": 3, "answered": 4, "failed": 3}
WAITS = {"approval": "waiting for approval", "server": "waiting for a server"}


class _Sign(NamedTuple):
    """An event that the recipient of a message may have sent; `is_signed` is false if it names no sender."""

    seq: int
    is_signed: bool


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    """The status of one message. `state` is one of `STEPS`; `link`: the event that answers it or reports its end.

    Shown as `words` `agent` `verb`, then the duration, then `detail`. `since` is set if nobody has started on it for a
    long time; `again` names the run that can be run again; `again_s`: seconds after which to look again even without an
    event (0: never).
    """

    seq: int
    state: str
    words: str
    agent: str = ""  # markup, as `detail`
    verb: str = ""
    detail: str = ""
    link: int = 0
    since: datetime | None = None
    again: str = ""
    again_s: float = 0.0
    on_bus: bool = False

    @property
    def step(self) -> int:
        """Return how many of the 4 steps it has reached."""
        return max(STEPS[self.state], 2 if self.on_bus else 0)

    @property
    def is_settled(self) -> bool:
        """Return whether its status can no longer change by itself."""
        return self.state == "answered"


class DelayReason(NamedTuple):
    """Why an agent does not start here now, empty if it can; `is_turn`: only an earlier run has to end."""

    why: str
    is_turn: bool = False
    asks: bool = False  # the run before it waits for an approval


class SentMessage(NamedTuple):
    """A message as stored."""

    seq: int
    at: int  # µs UTC
    event_id: str
    recipient: str

    @property
    def age_s(self) -> float:
        """Return its age in seconds."""
        return time.time() - self.at / 1e6


def statuses_for(conversation: Conversation, seqs: Collection[int]) -> dict[int, DeliveryStatus]:
    """Return the statuses of these messages by event number, of the newest 60; other events are skipped."""
    sent = _sent(conversation, sorted(set(seqs))[-MAX_MESSAGES:])
    if not sent:
        return {}
    runs, posts = _runs(conversation, sent), _posts(conversation, sent)
    deliveries = deliver_messages.deliveries(conversation.pk, runs.values())
    answers = _answers(conversation, [*runs.values(), *(delivery.into for delivery in deliveries.values())])
    reasons: dict[str, DelayReason] = {}
    statuses: dict[int, DeliveryStatus] = {}
    for message in sent:
        on_bus = posts.get(message.seq) is True
        run = runs.get(message.seq)
        if run is None and message.seq <= (conversation.forked_at or 0):
            continue  # a copy: it was sent in the conversation that this one was forked from
        if run is None:
            statuses[message.seq] = _by_external_agent(conversation, message, posts.get(message.seq, False))
        elif run.status == "queued":
            if run.agent not in reasons:
                reasons[run.agent] = _hindrance(conversation, run.agent)
            statuses[message.seq] = _queued(message, run, reasons[run.agent], on_bus=on_bus)
        elif delivery := deliveries.get(run.id):
            statuses[message.seq] = _delivered(message, run, delivery, answers.get(delivery.into.id, 0))
        else:
            statuses[message.seq] = _status_of_run(message, run, answers.get(run.id, 0))
    return statuses


def _sent(conversation: Conversation, seqs: list[int]) -> list[SentMessage]:
    rows = Event.objects.filter(conversation=conversation, seq__in=seqs, kind="message", principal__startswith="user:")
    return [
        SentMessage(seq, at, event_id or "", _recipient(body))
        for seq, at, event_id, body in rows.order_by("seq").values_list("seq", "at", "event_id", "body")
    ]


def _recipient(body: str) -> str:
    try:
        return payload.parse(body.encode("utf-8", "replace")).recipient or ""
    except SwitchboardError:
        return ""


def _runs(conversation: Conversation, sent: list[SentMessage]) -> dict[int, Run]:
    """Return the newest run for each message."""
    rows = Run.objects.filter(conversation=conversation, kind="agent", parent_call=None, queued_seq__gt=sent[0].seq)
    rows = rows.filter(input_seq__in=[message.seq for message in sent]).order_by("queued_seq").defer("state")
    return {run.input_seq: run for run in rows}


def _posts(conversation: Conversation, sent: list[SentMessage]) -> dict[int, bool | None]:
    """Return for each message whether all its posts are on Redis; None if not yet."""
    agents = {message.recipient.removeprefix("agent:") for message in sent if message.recipient.startswith("agent:")}
    topics = {f"chat:{name}" for name in {conversation.key, *agents}}
    ids = [copy_id(message.event_id, n) for message in sent if message.event_id for n in (0, 1)]
    rows = Post.objects.filter(topic__in=topics, bus_id__in=ids, conversation=conversation)
    sent_by_seq: dict[int, bool | None] = {}
    for seq, sent_at in rows.values_list("event_seq", "sent_at"):
        if seq is not None:
            sent_by_seq[seq] = sent_at is not None and sent_by_seq.get(seq, True) is True
    if settings.CONFIG.redis_url and False in sent_by_seq.values():
        waiting = relay_start.unsent().filter(topic__in=topics, bus_id__in=ids).values_list("event_seq", flat=True)
        sent_by_seq |= {seq: None for seq in waiting if seq is not None}
    return sent_by_seq


def _answers(conversation: Conversation, runs: Iterable[Run]) -> dict[str, int]:
    """Return the event with the last output of each finished run."""
    condition = Q()
    for run in runs:
        if run.status == "done" and run.ended_seq:
            condition |= Q(run=run.id, seq__range=(run.ended_seq - LAST_WORDS, run.ended_seq))
    if not condition:
        return {}
    events = Event.objects.filter(condition, conversation=conversation, kind__in=("output", "message")).order_by("seq")
    return {str(run): seq for run, seq in events.values_list("run", "seq")}


def _hindrance(conversation: Conversation, agent: str) -> DelayReason:
    if conversation.owner:
        return DelayReason(f"{conversation_row.strip_prefix(conversation.owner)} took over this conversation")
    if conversation.state == "paused":
        return DelayReason("this conversation is paused")
    if not Agent.objects.filter(name=agent, served_until__gt=database_now()).exists():
        return DelayReason(f"{agent} is not available")
    busy = Run.objects.of(conversation).filter(status__in=LIVE).first()
    if busy is None:
        return DelayReason("")
    waits = busy.status == "waiting" and busy.reason == "approval"
    return DelayReason(
        f"{busy.agent} {'is waiting for an approval' if waits else 'is answering an earlier message'}",
        is_turn=True,
        asks=waits,
    )


def _queued(message: SentMessage, run: Run, hindrance: DelayReason, *, on_bus: bool) -> DeliveryStatus:
    """Return the status while a run waits for a worker: after a while with its age, as a warning unless only an earlier
    run has to end."""
    left_s = settings.CONFIG.late_s - message.age_s
    is_loud = left_s <= 0 and not hindrance.is_turn
    why = hindrance.why or ("no worker has started it" if is_loud else "")
    if run.at_next_step and not run.attempt and hindrance.is_turn:
        why = "delivered at its next step, after the approval" if hindrance.asks else "delivered at its next step"
    return DeliveryStatus(
        message.seq,
        "late" if is_loud else "waits",
        "Not picked up by" if is_loud else "On the bus, waiting for" if on_bus else "Stored, waiting for",
        richtext.inline(run.agent),
        detail=richtext.inline(why),
        since=to_datetime(message.at) if left_s <= 0 else None,
        again_s=LOOK_S if left_s <= 0 else max(0.5, min(LOOK_S, left_s + 0.2)),
        on_bus=on_bus,
    )


def _status_of_run(message: SentMessage, run: Run, answer: int) -> DeliveryStatus:
    agent = richtext.inline(run.agent)
    if run.status == "done":
        label = "Answered by" if answer else "Finished without a reply by"
        return DeliveryStatus(message.seq, "answered", label, agent, link=answer or run.ended_seq or 0)
    if run.status in ENDS:
        why = richtext.inline(FAILURE_REASONS.get(run.reason, run.reason))
        return DeliveryStatus(message.seq, "failed", "", agent, ENDS[run.status], why, run.ended_seq or 0, again=run.id)
    detail = richtext.inline(WAITS.get(run.reason, "paused") if run.status == "waiting" else "")
    return DeliveryStatus(message.seq, "picked", "Picked up by", agent, detail=detail)


def _delivered(message: SentMessage, run: Run, delivery: Delivery, answer: int) -> DeliveryStatus:
    """Return the status of a message that an active run took in at one of its steps: that run's own."""
    into, step = delivery.into, f"Delivered at step {delivery.step}" if delivery.step else "Delivered"
    taken = _status_of_run(message, into, answer)
    if taken.state == "picked":
        return replace(taken, words=f"{step} to", link=delivery.seq)
    if taken.state == "failed":
        return replace(taken, words=f"{step};", again=run.id)
    return replace(taken, words=f"{step}, {taken.words[:1].lower()}{taken.words[1:]}")


def _by_external_agent(conversation: Conversation, message: SentMessage, posted: bool | None) -> DeliveryStatus:
    """Return the status without a run of ours: an external agent may have started on it or answered it."""
    if message.recipient.startswith("agent:"):
        signs = _first_signs(conversation, message)
        if signs:
            state = next(kind for kind in ("answered", "picked") if kind in signs)
            sign = signs[state]
            label = "Answered by" if state == "answered" else "Picked up by"
            label = label if sign.is_signed else f"Probably {label[:1].lower()}{label[1:]}"
            agent = richtext.inline(conversation_row.strip_prefix(message.recipient))
            return DeliveryStatus(message.seq, state, label, agent, link=sign.seq, on_bus=posted is True)
    if posted is True:
        return DeliveryStatus(message.seq, "bus", "On the bus", on_bus=True)
    if posted is None:
        waiting = richtext.inline("waiting for the bus")
        return DeliveryStatus(
            message.seq, "stored", "Stored", detail=waiting, again_s=max(AGAIN_S, min(60, message.age_s / 4))
        )
    return DeliveryStatus(message.seq, "stored", "Stored")


def _other_agents(conversation: Conversation, name: str) -> bool:
    agents = Participant.objects.filter(conversation=conversation, kind="agent").values_list("name", flat=True)[:10]
    return any(conversation_row.strip_prefix(agent) != name for agent in agents)


def _first_signs(conversation: Conversation, message: SentMessage) -> Mapping[str, _Sign]:
    """Return the recipient's first event after a message, and its first words. Streamed text without a sender is
    probably the recipient's if the conversation has no other agent."""
    later = Event.objects.filter(conversation=conversation, seq__range=(message.seq + 1, message.seq + AFTERWARDS))
    later = later.exclude(principal__startswith="user:").annotate(size=Length("body")).filter(size__lt=LEGIBLE)
    signs: dict[str, _Sign] = {}
    recipient = conversation_row.strip_prefix(message.recipient)
    is_alone = not _other_agents(conversation, recipient)
    for seq, kind, body in later.order_by("seq").values_list("seq", "kind", "body"):
        try:
            speaker = payload.parse(body.encode("utf-8", "replace")).speaker or ""
        except SwitchboardError:
            continue
        if conversation_row.strip_prefix(speaker) == recipient or (is_alone and not speaker and kind in UNSIGNED):
            signs.setdefault("answered" if kind in ("message", "output") else "picked", _Sign(seq, bool(speaker)))
    return signs
