"""The panel beside a transcript: facts about the conversation now, and about one event. Called by the conversation
page."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from conversations.access import permissions
from conversations.access.permissions import Who
from conversations.conversation import external_handling, spending
from conversations.conversation.annotate import NEVER_ANNOTATED
from conversations.core import principals
from conversations.core.errors import NotFound
from conversations.core.hidden_characters import spelled_out
from conversations.core.ids import new_id
from conversations.core.micros import to_datetime
from conversations.events import log
from conversations.events.log import Stored, annotation_reads, run_history
from conversations.models import Conversation, Event, Participant, Run
from conversations.rendering import event_rows, message_body, run_results, run_timeline
from conversations.rendering.participant_marks import mark_among, mark_for
from conversations.rendering.timestamps import moment, of_event
from conversations.runs.budgets import budget_requests

VOICES = 60  # of a conversation; a longer list ends in "+"
FORKS = 20  # of a conversation, the newest
RUNS = 5  # of a conversation, the newest
MODELS = 4  # of a conversation, the most used


class OwnAnnotation(NamedTuple):
    """The reader's own annotation of an event: their thumb, and the client id of their next one."""

    thumb: str
    client_id: str


def name_of(conversation: Conversation) -> str:
    """Return a conversation's title, or its id if it has none, with hidden characters spelled out."""
    return spelled_out(conversation.title or conversation.key)


def panel_context(conversation: Conversation) -> dict[str, Any]:
    """Return the panel's template context; all texts are escaped."""
    names = Participant.objects.filter(conversation=conversation).order_by("name").values_list("name", flat=True)
    first = (conversation.copied_seq or 0) + 1  # a fork begins where its copies end
    opened = Event.objects.filter(conversation=conversation, seq=first).values_list("at", flat=True).first()
    runs = run_history.newest_runs(conversation.id, RUNS + 1)
    return {
        "conversation": conversation,
        "timeline": _timeline(conversation, runs[:RUNS]),
        "results": _results(conversation, runs[0]) if runs else [],
        **_spent(conversation),
        "has_more_runs": len(runs) > RUNS,
        "comparable": [f"{conversation.key}@{run.id}" for run in runs if run.kind == "agent"][:2],
        "name": name_of(conversation),
        "key": spelled_out(conversation.key),
        "handler": mark_for(conversation.handler) if conversation.handler else None,
        "is_external": _is_external(conversation),
        "is_imported": principals.is_imported(conversation.opened_by) and conversation.forked_at is None,
        "voices": [mark_among(name, (conversation.opened_by, conversation.owner)) for name in names[: VOICES + 1]],
        "most_voices": VOICES,
        **_forks(conversation),
        "opened_at": to_datetime(opened) if opened else None,
    }


def _is_external(conversation: Conversation) -> bool:
    if not external_handling.may_be_external(conversation.opened_by, conversation.handler):
        return False
    agents = Participant.objects.filter(conversation=conversation, kind="agent").values_list("name", flat=True)
    return bool(external_handling.external({conversation.pk: list(agents)}))


def _forks(conversation: Conversation) -> dict[str, Any]:
    """Return the parent of a fork, and the newest forks of this conversation."""
    children = conversation.forks.visible().order_by("-id").values_list("key", "title", "forked_at", "copied_seq")
    forks = [
        (key, spelled_out(title or key), forked_at, copied) for key, title, forked_at, copied in children[: FORKS + 1]
    ]
    parent = conversation.parent
    named = (parent.key, spelled_out(parent.title or parent.key)) if parent and not parent.is_staged else None
    return {"forks": forks[:FORKS], "has_more_forks": len(forks) > FORKS, "forked_from": named}


def _results(conversation: Conversation, run: Run) -> list[run_results.RunResult]:
    return run_results.of_events(run_history.results_of_run(conversation.id, conversation.key, run.id))


def _spent(conversation: Conversation) -> dict[str, Any]:
    """Return the tokens and cost per model, the model with most turns first, the total cost as text, empty if only
    demo models ran, and how many tool calls there were, without requests for more budget."""
    lines, cost = spending.of_conversation(conversation.pk)
    calls = conversation.tool_calls - budget_requests.count(conversation.pk)
    named = [line._replace(model=spelled_out(line.model)) for line in lines if line.model]
    is_paid = any(not line.is_demo for line in lines)
    return {"spent": named[:MODELS], "cost": cost.words if is_paid else "", "tool_calls": calls}


def _timeline(conversation: Conversation, runs: Sequence[Run]) -> list[run_timeline.TimelineRun]:
    events = run_history.events_of_runs(conversation.id, conversation.key, runs)
    return run_timeline.lines([(run.id, run.kind, run.agent, run.status) for run in runs], events)


def event_facts(conversation: Conversation, seq: int, who: Who) -> dict[str, Any]:
    """Return what the record holds about one event, and how `who` may annotate it. Raises NotFound."""
    event = next(iter(log.read_after(conversation.key, seq - 1, 1)), None)
    link = Event.objects.filter(conversation=conversation, seq=seq).values_list("hash", flat=True).first()
    if event is None or link is None:
        raise NotFound(f"Event {seq} is not in this conversation.")
    parsed, body = event_rows.parse_event(event)[1:]
    counts = message_body.usage_counts(body.get("usage")) or {}
    texts = {
        "Kind": event.kind,
        "Principal": event.principal,
        "Sender": parsed.speaker,
        "Recipient": parsed.recipient or "",
        "Run": event.run or "",
        "Turn": "" if event.turn is None else str(event.turn),
        "Event ID": event.event_id or "",
        "Usage": ", ".join(f"{name} {number:,}" for name, number in counts.items()),
    }
    fields = {term: spelled_out(text) for term, text in texts.items() if text}
    times = of_event(event.at, event.principal, body)
    committed = moment(event.at)
    first = times.shown if committed is None or times.shown.iso != committed.iso else None
    about = {"conversation": conversation, "annotation": _annotation(conversation, event, who)}
    times_of = {"committed": committed, "first": first, "said": times.sent}
    return {"seq": seq, "facts": fields, "hash": link, **times_of, **about}


def _annotation(conversation: Conversation, event: Stored, who: Who) -> OwnAnnotation | None:
    """Return the reader's thumb and note for the form; None if they may not annotate."""
    if event.kind in NEVER_ANNOTATED or not permissions.has_permission(who, "annotate"):
        return None
    me = str(permissions.principal_of(who))
    return OwnAnnotation(annotation_reads.thumb_of(conversation.pk, event.seq, me), new_id())
