"""How a conversation stands: who steers it and since when, what looks stuck, and what the reader can do about it."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from django.http import HttpRequest
from django.urls import reverse
from markupsafe import Markup

from conversations import fleet, rights, stuck
from conversations.fragments import richtext
from conversations.fragments.who import Who, who
from conversations.models import Conversation, Event, Run


@dataclass(frozen=True, slots=True)
class Since:
    """Who did it, when, why, at which event."""

    face: Who
    at: datetime
    reason: Markup
    seq: int


@dataclass(frozen=True, slots=True)
class Verb:
    """A button. `asks`: the sentence over the field for a reason, empty when none is asked for."""

    action: str
    words: str
    glyph: str
    key: str = ""
    tone: str = ""
    asks: str = ""
    is_reason_needed: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """What the bar over a transcript is drawn from. `waits` counts what is said and not answered yet."""

    action: str
    shown: str
    word: str
    owned: Since | None
    paused: Since | None
    is_mine: bool
    work: str
    waits: int
    alarm: Markup | None
    verbs: list[Verb]


PAUSE = Verb("pause", "Pause", "pause", "p")
RESUME = Verb("resume", "Resume", "play", "p")
TAKE_OVER = Verb(
    "take_over", "Take over", "hand", "t", asks="Agents wait until you hand it back. Why do you take over?"
)
HAND_BACK = Verb("hand_back", "Hand back", "agent", "t", "primary")
STOP = Verb("stop", "Stop after this turn", "stop", "s", "danger")
STOP_WAITING = Verb("stop", "Stop", "stop", "s", "danger")
ABORT = Verb(
    *("abort", "Abort", "x", "a", "danger"),
    "A call that has begun may or may not have its effect: it is marked unknown. Why now?",
)


def of(request: HttpRequest, found: Conversation) -> Standing:
    """Answer how it stands, with the verbs of this reader."""
    runs = list(Run.objects.of(found).values_list("status", "reason", "agent", "stop"))
    me = str(rights.principal_of(request.user))
    alarm = stuck.alarms([found.pk]).get(found.pk) if any(run[0] == "running" for run in runs) else None
    shown = "person" if found.owner else found.state
    return Standing(
        action=reverse("api-control", args=[found.key]),
        shown=shown,
        word=fleet.STATES[shown],
        owned=_since(found, found.owned_seq),
        paused=_since(found, found.paused_seq),
        is_mine=found.owner == me,
        work=_work(runs),
        waits=sum(run[0] == "queued" for run in runs),
        alarm=richtext.inline(f"{alarm.agent} {alarm.words}") if alarm else None,
        verbs=_verbs(found, runs, me) if rights.may(request.user, "control") else [],
    )


_Runs = list[tuple[str, str, str, str]]  # status, reason, agent, what was asked of it


def _verbs(found: Conversation, runs: _Runs, me: str) -> list[Verb]:
    verbs = [RESUME if found.state == "paused" else PAUSE]
    if not found.owner:
        verbs.append(TAKE_OVER)
    elif found.owner == me:
        verbs.append(HAND_BACK)
    else:
        asks = f"{fleet.bare(found.owner)} holds it. Why do you hand it back for them?"
        verbs.append(Verb("hand_back", "Hand back", "agent", "t", asks=asks, is_reason_needed=True))
    is_running = any(run[0] == "running" for run in runs)
    asked = {run[3] for run in runs if run[0] == "running"}
    if runs and not asked & {"stop", "cancel", "abort"}:
        verbs.append(STOP if is_running else STOP_WAITING)
    if is_running and "abort" not in asked:
        verbs.append(ABORT)
    return verbs


ASKED = {
    "pause": "ends its turn, then waits",
    "stop": "ends its turn, then stops",
    "cancel": "is being stopped",
    "abort": "is being aborted",
}


def _work(runs: _Runs) -> str:
    for status, reason, agent, asked in runs:
        if status == "running":
            return f"{agent} {ASKED.get(asked, 'is working')}"
        if status == "waiting":
            return f"{agent} waits for a decision" if reason == "approval" else f"{agent} was put aside"
    return ""


def _since(found: Conversation, seq: int) -> Since | None:
    event = Event.objects.filter(conversation=found, seq=seq).first() if seq else None
    if event is None:
        return None
    body = json.loads(event.body)
    by = body.get("by") or event.principal
    face = who(by, by)
    return Since(face, datetime.fromtimestamp(event.at / 1e6, UTC), richtext.inline(body.get("reason") or ""), seq)
