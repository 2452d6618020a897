"""The state of a conversation: who controls it and since when, what looks stuck, and which control actions the reader
has."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest
from django.urls import reverse
from markupsafe import Markup

from conversations.access import permissions
from conversations.conversation import attention, conversation_row, live_state
from conversations.conversation.attention import Owned
from conversations.conversation.live_state import LiveState, OpenRun
from conversations.core import hidden_characters
from conversations.core.micros import to_datetime
from conversations.events import payload, registry
from conversations.events.log import hash_chain, run_history
from conversations.models import Approval, Conversation, Event, Run
from conversations.models.run import UNFINISHED
from conversations.rendering import richtext
from conversations.runs import stuck_detection
from conversations.runs.approvals import pending_counts
from conversations.runs.stuck_detection import StuckRun


@dataclass(frozen=True, slots=True)
class ShownState:
    """One state of a conversation in words: since when, set by which event, for which reason."""

    glyph: str
    words: str
    since: datetime | None
    seq: int
    reason: Markup


@dataclass(frozen=True, slots=True)
class ControlButton:
    """A button. `asks`: the sentence above the field for a reason; empty if no reason is asked for."""

    action: str
    words: str
    glyph: str
    key: str = ""
    tone: str = ""
    asks: str = ""
    is_reason_needed: bool = False
    is_folded: bool = False  # behind the menu where the head is narrow


@dataclass(frozen=True, slots=True)
class ControlPanel:
    """What the head of a conversation shows. `states`: the most urgent first, never empty; `waits`: how many messages
    are unanswered; `request`: the event of the oldest open approval request, 0 for none; `folded`: the verbs that move
    into the menu where the head is narrow; `erased_id`: the id that the conversation has once its own is erased."""

    action: str
    shown: str
    states: list[ShownState]
    is_working: bool
    waits: int
    request: int
    alarm: Markup | None
    verbs: list[ControlButton]
    folded: list[ControlButton]
    erased_id: str


LOOKED_AT = 20  # events, the newest, that are searched for one by an external agent
ACTIVE_FOR = 30  # seconds after its last event for which an external agent is called active; it tells of no run

PAUSE = ControlButton("pause", "Pause", "pause", "p")
RESUME = ControlButton("resume", "Resume", "play", "p")
TAKE_OVER = ControlButton(
    "take_over", "Take over", "hand", "t", asks="Agents wait until you hand back. Reason for taking over:"
)
HAND_BACK = ControlButton("hand_back", "Hand back", "agent", "t", "primary")
STOP = ControlButton("stop", "Stop after this turn", "stop", "s", "danger", is_folded=True)
STOP_WAITING = ControlButton("stop", "Stop", "stop", "s", "danger", is_folded=True)
ABORT = ControlButton(
    *("abort", "Abort", "x", "Shift+S", "danger"),
    "A call in progress may still take effect; it will be marked unknown. Reason for aborting:",
    is_folded=True,
)


def panel_of(request: HttpRequest, conversation: Conversation) -> ControlPanel:
    """Return the panel of a conversation, with the verbs this reader may use."""
    columns = ("id", "kind", "parent_call", "status", "reason", "agent", "stop", "queued_seq")
    unfinished = Run.objects.filter(conversation=conversation, status__in=UNFINISHED).order_by("queued_seq")
    all_runs = list(unfinished.only(*columns))  # of replays and of external agents too: they ask as well
    runs = [run for run in all_runs if run.kind == "agent" and run.parent_call is None]
    me = str(permissions.principal_of(request.user))
    stuck = stuck_detection.stuck_runs([conversation.pk]) if any(run.status == "running" for run in runs) else {}
    stuck_run = stuck.get(conversation.pk)
    may_control = permissions.has_permission(request.user, "control")
    verbs = _verbs(conversation, runs, me) if may_control else []
    open_request = _open_request(conversation, all_runs)
    facts = _facts(request, conversation, runs, me, stuck, open_request)
    return ControlPanel(
        action=reverse("api-control", args=[conversation.key]),
        shown="person" if conversation.owner else conversation.state,
        states=[_shown(state) for state in live_state.states(facts)],
        is_working=bool(facts.active_agent) or any(run.status in ("running", "waiting") for run in runs),
        waits=sum(run.status == "queued" for run in runs),
        request=open_request,
        alarm=richtext.inline(f"{stuck_run.agent} {stuck_run.words}") if stuck_run else None,
        verbs=[verb for verb in verbs if not verb.is_folded],
        folded=[verb for verb in verbs if verb.is_folded],
        erased_id=hash_chain.erased_key(conversation.key_digest) if conversation.key_digest else "",
    )


def _facts(
    request: HttpRequest, conversation: Conversation, runs: Sequence[Run], me: str, stuck: Mapping[int, StuckRun],
    open_request: int,
) -> live_state.LiveStateFacts:  # fmt: skip
    owned = [Owned(*(getattr(conversation, name) for name in Owned._fields))] if conversation.owner else []
    needs = attention.attention_of(
        waiting=[conversation.pk] if open_request else [],
        failed=[] if runs else [conversation.pk],
        owned=owned,
        with_questions=[conversation.pk],
        stuck=stuck,
    )
    need = needs.get(conversation.pk)
    return live_state.LiveStateFacts(
        me=me,
        can_decide=need is not None and need.reason == "approval" and _can_decide(request, conversation, me),
        need=need,
        owned=live_state.hold_at(conversation, conversation.owned_seq, conversation.owner),
        paused=live_state.hold_at(conversation, conversation.paused_seq),
        runs=[_open(conversation, run) for run in runs],
        request=open_request,
        active_agent="" if runs else _active_agent(conversation),
    )


def _active_agent(conversation: Conversation) -> str:
    """Return the external agent that was active here within the last seconds; empty for none, or if its run has ended.
    Our own agents have runs."""
    since = time.time_ns() // 1000 - ACTIVE_FOR * 1_000_000
    if conversation.last_at < since:
        return ""
    newest = Event.objects.filter(conversation=conversation, seq__gt=conversation.head_seq - LOOKED_AT)
    for event in newest.order_by("-seq"):  # a person, or the system, may have said something meanwhile
        if event.at < since or event.kind in registry.run_ends():
            return ""
        speaker = payload.parse(event.body.encode("utf-8", "replace")).speaker
        if speaker.startswith("agent:") and (conversation.is_demo or event.principal.startswith(("token:", "bus:"))):
            return conversation_row.strip_prefix(speaker)
    return ""


def _open_request(conversation: Conversation, runs: Sequence[Run]) -> int:
    """Return the event of the oldest open approval request, 0 for none; recorded runs of an import do not count."""
    if not conversation.is_demo and not _has_approval_request(runs):
        return 0
    requests = Approval.objects.open().filter(conversation=conversation).order_by("asked_seq")
    return requests.values_list("asked_seq", flat=True).first() or 0


def _has_approval_request(runs: Sequence[Run]) -> bool:
    return any(run.status == "waiting" and run.reason == "approval" for run in runs)


def _open(conversation: Conversation, run: Run) -> OpenRun:
    agent = run.agent if run.status == "queued" else run_history.working_agent(conversation.pk, run)
    return OpenRun(run.status, run.reason, agent, run.stop)


def _can_decide(request: HttpRequest, conversation: Conversation, me: str) -> bool:
    """Return whether the reader may decide at least one of the open approval requests."""
    if not permissions.has_permission(request.user, "decide"):
        return False
    requests = list(Approval.objects.open().filter(conversation=conversation).values_list("id", flat=True))
    excluded = pending_counts.excluded_approvers(requests)
    return any(me not in excluded.get(id_, ()) for id_ in requests)


def _shown(state: LiveState) -> ShownState:
    since = to_datetime(state.since) if state.since else None
    words = hidden_characters.spelled_out(state.words)
    return ShownState(state.glyph, words, since, state.seq, richtext.inline(state.reason))


def _verbs(conversation: Conversation, runs: Sequence[Run], me: str) -> list[ControlButton]:
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
    is_running = any(run.status == "running" for run in runs)
    requested = {run.stop for run in runs if run.status == "running"}
    if runs and not requested & {"stop", "cancel", "abort"}:
        verbs.append(STOP if is_running else STOP_WAITING)
    if is_running and "abort" not in requested:
        verbs.append(ABORT)
    return verbs
