"""What became of messages that people sent: stored, on the bus, waiting, picked up, answered, failed. For pages.

A fold of rows and events by the messages' seqs, so that a reload tells the same. What an agent of another process does
with a message is known by its events alone: the first one after it counts as picking it up.
"""

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Length

from conversations import envelopes, fleet, relayed
from conversations.errors import SwitchboardError
from conversations.fragments import richtext
from conversations.models import Agent, Conversation, Event, Post, Run
from conversations.models.run import LIVE
from conversations.nodes import database_time

MOST = 60  # messages of one answer
AFTERWARDS = 50  # events after a message in which an agent of another process is looked for
LEGIBLE = 20_000  # characters of such an event
LAST_WORDS = 20  # events before a run's end in which its answer is looked for
AGAIN_S = 2.0  # seconds until it is worth asking again for what no event tells

LOOK_S = 15.0  # the same while something waits: a worker ends without a word
ENDS = {
    "failed": "failed",
    "cancelled": "was stopped",
    "interrupted": "was interrupted",
    "incompatible": "could not go on",
}
STEPS = {"stored": 1, "bus": 2, "waits": 1, "late": 1, "picked": 3, "answered": 4, "failed": 3}
REASONS = {"hop_limit": "too many hops", "error": ""}


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of one message. `state` is one of `STEPS`; `link` the event that answers it or tells of its end.

    It reads: `words` `agent` `verb`, then for how long, then `detail`. `since` is set while nobody began with it for
    long; `again` names the run that may be asked for again; `again_s` tells when to look again although no event came
    (0: not).
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
        """How far it came, of 4."""
        return max(STEPS[self.state], 2 if self.on_bus else 0)

    @property
    def is_settled(self) -> bool:
        """Tell whether nothing more can become of it by itself."""
        return self.state == "answered"


class Hindrance(NamedTuple):
    """Why an agent begins with nothing here now, empty when it may; `is_turn`: only something earlier has to end."""

    why: str
    is_turn: bool = False


class Sent(NamedTuple):
    """A message as it was stored."""

    seq: int
    at: int  # µs UTC
    event_id: str
    recipient: str

    @property
    def age_s(self) -> float:
        """How old it is."""
        return time.time() - self.at / 1e6


def of(found: Conversation, seqs: Collection[int]) -> dict[int, Delivery]:
    """Answer what became of these messages of a conversation, the newest 60; other events are left out."""
    sent = _sent(found, sorted(set(seqs))[-MOST:])
    if not sent:
        return {}
    runs, posts = _runs(found, sent), _posts(found, sent)
    answers = _answers(found, runs.values())
    reasons: dict[str, Hindrance] = {}
    told: dict[int, Delivery] = {}
    for one in sent:
        on_bus = posts.get(one.seq) is True
        run = runs.get(one.seq)
        if run is None and one.seq <= (found.forked_at or 0):
            continue  # a copy: it was sent in the conversation that this one was forked from
        if run is None:
            told[one.seq] = _elsewhere(found, one, posts.get(one.seq, False))
        elif run.status == "queued":
            if run.agent not in reasons:
                reasons[run.agent] = _hindrance(found, run.agent)
            told[one.seq] = _queued(one, run, reasons[run.agent], on_bus=on_bus)
        else:
            told[one.seq] = _taken(one, run, answers.get(run.id, 0))
    return told


def _sent(found: Conversation, seqs: list[int]) -> list[Sent]:
    rows = Event.objects.filter(conversation=found, seq__in=seqs, kind="message", principal__startswith="user:")
    return [
        Sent(seq, at, event_id or "", _recipient(body))
        for seq, at, event_id, body in rows.order_by("seq").values_list("seq", "at", "event_id", "body")
    ]


def _recipient(body: str) -> str:
    try:
        return envelopes.read(body.encode("utf-8", "replace")).recipient or ""
    except SwitchboardError:
        return ""


def _runs(found: Conversation, sent: list[Sent]) -> dict[int, Run]:
    """Answer the newest run on each message."""
    rows = Run.objects.filter(conversation=found, kind="agent", parent_call=None, queued_seq__gt=sent[0].seq)
    rows = rows.filter(input_seq__in=[one.seq for one in sent]).order_by("queued_seq").defer("state")
    return {run.input_seq: run for run in rows}


def _posts(found: Conversation, sent: list[Sent]) -> dict[int, bool | None]:
    """Tell of each message whether all its posts are on Redis; None: it will be, and is not yet."""
    agents = {one.recipient.removeprefix("agent:") for one in sent if one.recipient.startswith("agent:")}
    topics = {f"chat:{name}" for name in {found.key, *agents}}
    ids = [f"{one.event_id}{n}" for one in sent if one.event_id for n in ("", "1")]
    rows = Post.objects.filter(topic__in=topics, bus_id__in=ids, conversation=found)
    told: dict[int, bool | None] = {}
    for seq, sent_at in rows.values_list("event_seq", "sent_at"):
        if seq is not None:
            told[seq] = sent_at is not None and told.get(seq, True) is True
    if settings.CONFIG.redis_url and False in told.values():
        waiting = relayed.unsent().filter(topic__in=topics, bus_id__in=ids).values_list("event_seq", flat=True)
        told |= {seq: None for seq in waiting if seq is not None}
    return told


def _answers(found: Conversation, runs: Iterable[Run]) -> dict[str, int]:
    """Answer the event in which each run that is done said its last words."""
    wanted = Q()
    for run in runs:
        if run.status == "done" and run.ended_seq:
            wanted |= Q(run=run.id, seq__range=(run.ended_seq - LAST_WORDS, run.ended_seq))
    if not wanted:
        return {}
    said = Event.objects.filter(wanted, conversation=found, kind__in=("output", "message")).order_by("seq")
    return {str(run): seq for run, seq in said.values_list("run", "seq")}


def _hindrance(found: Conversation, agent: str) -> Hindrance:
    if found.owner:
        return Hindrance(f"{fleet.bare(found.owner)} holds this conversation")
    if found.state == "paused":
        return Hindrance("this conversation is paused")
    if not Agent.objects.filter(name=agent, served_until__gt=database_time()).exists():
        return Hindrance(f"no worker serves {agent}")
    busy = Run.objects.of(found).filter(status__in=LIVE).first()
    if busy is None:
        return Hindrance("")
    waits = busy.status == "waiting" and busy.reason == "approval"
    return Hindrance(f"{busy.agent} {'waits for a decision' if waits else 'answers something earlier'}", is_turn=True)


def _queued(one: Sent, run: Run, hindrance: Hindrance, *, on_bus: bool) -> Delivery:
    """A run waits for a worker: after a while its age is told, loudly unless only its turn has to come."""
    left_s = settings.CONFIG.late_s - one.age_s
    is_loud = left_s <= 0 and not hindrance.is_turn
    why = hindrance.why or ("it was not picked up" if is_loud else "")
    return Delivery(
        one.seq,
        "late" if is_loud else "waits",
        "Never started by" if is_loud else "On the bus, waits for" if on_bus else "Stored, waits for",
        richtext.inline(run.agent),
        detail=richtext.inline(why),
        since=datetime.fromtimestamp(one.at / 1e6, UTC) if left_s <= 0 else None,
        again_s=LOOK_S if left_s <= 0 else max(0.5, min(LOOK_S, left_s + 0.2)),
        on_bus=on_bus,
    )


def _taken(one: Sent, run: Run, answer: int) -> Delivery:
    agent = richtext.inline(run.agent)
    if run.status == "done":
        words = "Answered by" if answer else "Done, without words, by"
        return Delivery(one.seq, "answered", words, agent, link=answer or run.ended_seq or 0)
    if run.status in ENDS:
        why = richtext.inline(REASONS.get(run.reason, run.reason))
        return Delivery(one.seq, "failed", "", agent, ENDS[run.status], why, run.ended_seq or 0, again=run.id)
    waits = "it waits for a decision" if run.reason == "approval" else "it was put aside"
    detail = richtext.inline(waits if run.status == "waiting" else "")
    return Delivery(one.seq, "picked", "Picked up by", agent, detail=detail)


def _elsewhere(found: Conversation, one: Sent, posted: bool | None) -> Delivery:
    """No run of ours: an agent of another process may have begun with it or answered it."""
    if one.recipient.startswith("agent:"):
        heard = _heard(found, one)
        if heard:
            state = next(kind for kind in ("answered", "picked") if kind in heard)
            words = "Answered by" if state == "answered" else "Picked up by"
            agent = richtext.inline(fleet.bare(one.recipient))
            return Delivery(one.seq, state, words, agent, link=heard[state], on_bus=posted is True)
    if posted is True:
        return Delivery(one.seq, "bus", "On the bus", on_bus=True)
    if posted is None:
        waiting = richtext.inline("waits for the bus")
        return Delivery(one.seq, "stored", "Stored", detail=waiting, again_s=max(AGAIN_S, min(60, one.age_s / 4)))
    return Delivery(one.seq, "stored", "Stored")


def _heard(found: Conversation, one: Sent) -> Mapping[str, int]:
    """Answer the seqs of the first sign of the recipient after a message, and of its first words."""
    later = Event.objects.filter(conversation=found, seq__range=(one.seq + 1, one.seq + AFTERWARDS))
    later = later.exclude(principal__startswith="user:").annotate(size=Length("body")).filter(size__lt=LEGIBLE)
    heard: dict[str, int] = {}
    for seq, kind, body in later.order_by("seq").values_list("seq", "kind", "body"):
        try:
            speaker = envelopes.read(body.encode("utf-8", "replace")).speaker or ""
        except SwitchboardError:
            continue
        if fleet.bare(speaker) == fleet.bare(one.recipient):
            heard.setdefault("answered" if kind in ("message", "output") else "picked", seq)
    return heard
