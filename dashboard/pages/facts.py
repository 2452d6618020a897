"""What is told beside a transcript: of the conversation now, and of one event. Called by the conversation page."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from conversations import log
from conversations.errors import NotFound
from conversations.fragments import faces, timeline
from conversations.fragments.hidden import spell
from conversations.fragments.times import moment, of_event
from conversations.fragments.who import who
from conversations.log import held
from conversations.models import Conversation, Event, Participant, Run

VOICES = 60  # of a conversation; a longer list ends in "+"
FORKS = 20  # of a conversation, the newest
RUNS = 5  # of a conversation, the newest


def of_conversation(found: Conversation) -> dict[str, Any]:
    """Answer what the panel's template asks for. Texts of strangers are fit for text and attributes."""
    names = Participant.objects.filter(conversation=found).order_by("name").values_list("name", flat=True)
    first = (found.copied_seq or 0) + 1  # a fork begins where its copies end
    opened = Event.objects.filter(conversation=found, seq=first).values_list("at", flat=True).first()
    runs = held.newest_runs(found.id, RUNS + 1)
    return {
        "conversation": found,
        "timeline": _timeline(found, runs[:RUNS]),
        "has_more_runs": len(runs) > RUNS,
        "name": spell(found.title or found.key),
        "key": spell(found.key),
        "handler": who(found.handler) if found.handler else None,
        "voices": [who(name) for name in names[: VOICES + 1]],
        "most_voices": VOICES,
        **_forks(found),
        "opened_at": datetime.fromtimestamp(opened / 1e6, UTC) if opened else None,
    }


def _forks(found: Conversation) -> dict[str, Any]:
    """Answer whose fork it is, and the newest of its own."""
    children = found.forks.visible().order_by("-id").values_list("key", "title", "forked_at", "copied_seq")
    forks = [(key, spell(title or key), forked_at, copied) for key, title, forked_at, copied in children[: FORKS + 1]]
    parent = found.parent
    named = (parent.key, spell(parent.title or parent.key)) if parent and not parent.is_staged else None
    return {"forks": forks[:FORKS], "has_more_forks": len(forks) > FORKS, "forked_from": named}


def _timeline(found: Conversation, runs: Sequence[Run]) -> list[timeline.Line]:
    told = held.of_runs(found.id, found.key, runs)
    return timeline.lines([(run.id, run.agent, run.status) for run in runs], told)


def of_one(found: Conversation, seq: int) -> dict[str, Any]:
    """Answer what the record holds about one event. Raises NotFound."""
    event = next(iter(log.read_after(found.key, seq - 1, 1)), None)
    link = Event.objects.filter(conversation=found, seq=seq).values_list("hash", flat=True).first()
    if event is None or link is None:
        raise NotFound(f"Event {seq} is not in this conversation.")
    said = faces.read(event).said
    texts = {
        "Kind": event.kind,
        "Principal": event.principal,
        "Sender": said.speaker,
        "Recipient": said.recipient or "",
        "Run": event.run or "",
        "Turn": "" if event.turn is None else str(event.turn),
        "Event id": event.event_id or "",
    }
    facts = {term: spell(text) for term, text in texts.items() if text}
    times = of_event(event.at, event.principal, faces.read(event).body)
    committed = moment(event.at)
    first = times.shown if committed is None or times.shown.iso != committed.iso else None
    return {"seq": seq, "facts": facts, "committed": committed, "first": first, "said": times.said, "hash": link}
