"""How a conversation stands: who steers it and since when, what looks stuck, and what the reader can do about it."""

import json
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest
from django.urls import reverse
from markupsafe import Markup

from conversations.access import permissions
from conversations.conversation import conversation_row
from conversations.core.micros import to_datetime
from conversations.models import Conversation, Event, Run
from conversations.rendering import richtext
from conversations.rendering.participant_marks import ParticipantMark, mark_for
from conversations.runs import stuck_detection


@dataclass(frozen=True, slots=True)
class StateSince:
    """Who did it, when, why, at which event."""

    face: ParticipantMark
    at: datetime
    reason: Markup
    seq: int


@dataclass(frozen=True, slots=True)
class ControlButton:
    """A button. `asks`: the sentence over the field for a reason, empty when none is asked for."""

    action: str
    words: str
    glyph: str
    key: str = ""
    tone: str = ""
    asks: str = ""
    is_reason_needed: bool = False


@dataclass(frozen=True, slots=True)
class ControlPanel:
    """What the bar over a transcript is drawn from. `waits` counts what is said and not answered yet."""

    action: str
    shown: str
    word: str
    owned: StateSince | None
    paused: StateSince | None
    is_mine: bool
    work: str
    waits: int
    alarm: Markup | None
    verbs: list[ControlButton]


PAUSE = ControlButton("pause", "Pause", "pause", "p")
RESUME = ControlButton("resume", "Resume", "play", "p")
TAKE_OVER = ControlButton(
    "take_over", "Take over", "hand", "t", asks="Agents wait until you hand back. Reason for taking over:"
)
HAND_BACK = ControlButton("hand_back", "Hand back", "agent", "t", "primary")
STOP = ControlButton("stop", "Stop after this turn", "stop", "s", "danger")
STOP_WAITING = ControlButton("stop", "Stop", "stop", "s", "danger")
ABORT = ControlButton(
    *("abort", "Abort", "x", "Shift+S", "danger"),
    "A call in progress may still take effect; it will be marked unknown. Reason for aborting:",
)


def of(request: HttpRequest, conversation: Conversation) -> ControlPanel:
    """Return how it stands, with the verbs of this reader."""
    runs = list(Run.objects.of(conversation).values_list("status", "reason", "agent", "stop"))
    me = str(permissions.principal_of(request.user))
    alarm = (
        stuck_detection.alarms([conversation.pk]).get(conversation.pk)
        if any(run[0] == "running" for run in runs)
        else None
    )
    shown = "person" if conversation.owner else conversation.state
    return ControlPanel(
        action=reverse("api-control", args=[conversation.key]),
        shown=shown,
        word=conversation_row.STATES[shown],
        owned=_since(conversation, conversation.owned_seq),
        paused=_since(conversation, conversation.paused_seq),
        is_mine=conversation.owner == me,
        work=_work(runs),
        waits=sum(run[0] == "queued" for run in runs),
        alarm=richtext.inline(f"{alarm.agent} {alarm.words}") if alarm else None,
        verbs=_verbs(conversation, runs, me) if permissions.has_permission(request.user, "control") else [],
    )


_Runs = list[tuple[str, str, str, str]]  # status, reason, agent, what was asked of it


def _verbs(conversation: Conversation, runs: _Runs, me: str) -> list[ControlButton]:
    verbs = [RESUME if conversation.state == "paused" else PAUSE]
    if not conversation.owner:
        verbs.append(TAKE_OVER)
    elif conversation.owner == me:
        verbs.append(HAND_BACK)
    else:
        asks = (
            f"{conversation_row.strip_prefix(conversation.owner)} took over. Reason for handing back on their behalf:"
        )
        verbs.append(ControlButton("hand_back", "Hand back", "agent", "t", asks=asks, is_reason_needed=True))
    is_running = any(run[0] == "running" for run in runs)
    requested = {run[3] for run in runs if run[0] == "running"}
    if runs and not requested & {"stop", "cancel", "abort"}:
        verbs.append(STOP if is_running else STOP_WAITING)
    if is_running and "abort" not in requested:
        verbs.append(ABORT)
    return verbs


ASKED = {
    "pause": "is finishing its turn, then pauses",
    "stop": "is finishing its turn, then stops",
    "cancel": "is being stopped",
    "abort": "is being aborted",
}


def _work(runs: _Runs) -> str:
    for status, reason, agent, stop in runs:
        if status == "running":
            return f"{agent} {ASKED.get(stop, 'is working')}"
        if status == "waiting":
            return f"{agent} is waiting for approval" if reason == "approval" else f"{agent} is paused"
    return ""


def _since(conversation: Conversation, seq: int) -> StateSince | None:
    event = Event.objects.filter(conversation=conversation, seq=seq).first() if seq else None
    if event is None:
        return None
    body = json.loads(event.body)
    by = body.get("by") or event.principal
    face = mark_for(by, by)
    return StateSince(face, to_datetime(event.at), richtext.inline(body.get("reason") or ""), seq)
