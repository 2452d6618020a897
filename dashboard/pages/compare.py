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
from conversations.models.approval import DECISION_WORDS
from conversations.rendering import diff_rows, richtext
from conversations.rendering.diff_rows import Pieces
from conversations.rendering.participant_marks import ParticipantMark, mark_for
from dashboard.pages.base_context import render_page
from dashboard.require_permission import require_permission

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
    words: Pieces
    outcome: Pieces
    is_long: bool  # so that it scrolls in itself
    is_edited: bool


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
        rows.append(ComparisonRow(_cells(pair), pair.is_same, is_first, ", ".join(pair.parts)))
    return rows


def _cells(pair: StepPair) -> tuple[Cell | None, Cell | None]:
    """Render both steps; what differs in the texts of two steps of a kind is marked."""
    first, second = pair.first, pair.second
    if pair.is_same or first is None or second is None or first.kind != second.kind:
        return _cell(first), _cell(second)
    words = diff_rows.draw_texts(_text(first), _text(second))
    outcomes = diff_rows.draw_texts(_clipped(first.outcome), _clipped(second.outcome))
    return _cell(first, words[0], outcomes[0]), _cell(second, words[1], outcomes[1])


def _text(move: ComparedStep) -> str:
    return _clipped("" if move.words == "{}" else move.words)


def _whole(text: str) -> Pieces:
    return [(richtext.inline(text), False)] if text else []


def _cell(move: ComparedStep | None, words: Pieces | None = None, outcome: Pieces | None = None) -> Cell | None:
    if move is None:
        return None
    mark = mark_for(move.who, move.principal) if move.who else None
    name = mark_for(move.name).name if move.kind in ("said", "handoff") and move.name else move.name
    word = WORDS[move.kind]
    if move.kind == "decision" and move.name in DECISION_WORDS:
        word, name = DECISION_WORDS[move.name], ""
    return Cell(
        move.seq, move.kind, mark, word, richtext.inline(name[:400]),
        _whole(_text(move)) if words is None else words,
        _whole(_clipped(move.outcome)) if outcome is None else outcome,
        _is_long(move), move.is_edited,
    )  # fmt: skip


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
    offered += [(f"{conversation.key}@{run.id}", _run_label(run)) for run in runs]
    if side.run is not None and side.name not in dict(offered):
        offered.append((side.name, _run_label(side.run)))
    return {
        "key": conversation.key,
        "name": hidden_characters.spelled_out(conversation.title or conversation.key),
        "hint": hidden_characters.spelled_out(conversation.key),
        "is_fork": bool(conversation.copied_seq or conversation.parent_id),
        "chosen": side.name,
        "offered": offered,
    }


def _run_label(run: Run) -> str:
    kind = "replay" if run.kind == "replay" else "run"
    return hidden_characters.spelled_out(f"{kind} of {run.agent} at event {run.queued_seq}")
