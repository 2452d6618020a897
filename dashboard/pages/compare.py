"""Compare two conversations or two runs side by side, and where they diverge. Read-only."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from markupsafe import Markup

from conversations.conversation import compare as moves
from conversations.conversation.compare import ComparedSide, ComparedStep, StepPair
from conversations.core import hidden_characters
from conversations.core.errors import NotFound
from conversations.events import epoch
from conversations.models import Run
from conversations.rendering import richtext
from conversations.rendering.participant_marks import ParticipantMark, mark_for
from dashboard.pages.base_context import render_page
from dashboard.pages.require_permission import require_permission

SHOWN = 6_000  # characters of one text
RUNS = 30  # of a conversation, offered
WORDS = {"said": "says", "call": "calls", "decision": "decided", "handoff": "hands off to", "end": "ended"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One step of a side, rendered."""

    seq: int
    kind: str
    mark: ParticipantMark | None
    word: str
    name: Markup
    words: Markup
    outcome: Markup | None
    is_long: bool  # so that it scrolls in itself


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """Two steps beside each other; equal steps are drawn once. `is_first`: the sides diverge here."""

    cells: tuple[Cell | None, Cell | None]
    is_same: bool
    is_first: bool
    parts: str


@require_safe
@require_permission("view")
def compare(request: HttpRequest) -> HttpResponse:
    """Compare `?a=` and `?b=`, each `CONVERSATION` or `CONVERSATION@RUN`; without both, show the form to choose
    them."""
    names = [request.GET.get(name, "").strip()[:400] for name in "ab"]
    if not all(names):
        return _asking(request, names)
    try:
        left, right = (moves.side_of(name) for name in names)
    except NotFound as error:
        return _asking(request, names, error)
    diff = moves.compare(left, right)
    return render_page(
        request, "compare.html", epoch=epoch.current(), found=diff, rows=list(_rows(diff.pairs)), asked=names,
        sides=[_side(left), _side(right)], swapped=(right.name, left.name),
    )  # fmt: skip


def _asking(request: HttpRequest, names: list[str], error: NotFound | None = None) -> HttpResponse:
    return render_page(
        request,
        "compare.html",
        status=404 if error else 200,
        epoch=epoch.current(),
        found=None,
        asked=[hidden_characters.spelled_out(name) for name in names],
        error=hidden_characters.spelled_out(error.sentence) if error else "",
    )


def _rows(pairs: list[StepPair]) -> list[ComparisonRow]:
    rows: list[ComparisonRow] = []
    is_parted = False
    for pair in pairs:
        is_first = not pair.is_same and not is_parted
        is_parted = is_parted or is_first
        rows.append(
            ComparisonRow((_cell(pair.first), _cell(pair.second)), pair.is_same, is_first, ", ".join(pair.parts))
        )
    return rows


def _cell(move: ComparedStep | None) -> Cell | None:
    if move is None:
        return None
    mark = mark_for(move.who) if move.who else None
    name = mark_for(move.name).name if move.kind in ("said", "handoff") and move.name else move.name
    outcome = richtext.plain(_clipped(move.outcome)) if move.outcome else None
    text = richtext.plain(_clipped("" if move.words == "{}" else move.words))
    return Cell(move.seq, move.kind, mark, WORDS[move.kind], richtext.inline(name[:400]), text, outcome, _is_long(move))


def _is_long(move: ComparedStep) -> bool:
    return any(len(text) > 600 or text.count("\n") > 8 for text in (move.words, move.outcome))


def _clipped(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text):,} characters)"


def _side(side: ComparedSide) -> dict[str, Any]:
    """Return what is shown of a side, with the other runs of its conversation to choose from."""
    conversation = side.conversation
    runs = Run.objects.filter(conversation=conversation, parent_call=None).exclude(status="delivered")
    runs = runs.order_by("-queued_seq")[:RUNS]
    offered = [(conversation.key, "all of it")]
    offered += [
        (f"{conversation.key}@{run.id}", hidden_characters.spelled_out(f"run of {run.agent} at event {run.queued_seq}"))
        for run in runs
    ]
    if side.run is not None and side.name not in dict(offered):
        offered.append(
            (side.name, hidden_characters.spelled_out(f"run of {side.run.agent} at event {side.run.queued_seq}"))
        )
    return {
        "key": conversation.key,
        "name": hidden_characters.spelled_out(conversation.title or conversation.key),
        "hint": hidden_characters.spelled_out(conversation.key),
        "is_fork": bool(conversation.copied_seq or conversation.parent_id),
        "chosen": side.name,
        "offered": offered,
    }
