"""Two conversations or two runs side by side: where they part. GET and HEAD only; nothing is run or asked for."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from markupsafe import Markup

from conversations import epoch, moves
from conversations.errors import NotFound
from conversations.fragments import hidden, richtext
from conversations.fragments.who import Who, who
from conversations.models import Run
from conversations.moves import Move, Pair, Side
from dashboard.pages.allowed import takes
from dashboard.pages.frame import page as draw

SHOWN = 6_000  # characters of one text
RUNS = 30  # of a conversation, offered
WORDS = {"said": "says", "call": "calls", "decision": "decided", "handoff": "hands over to", "end": "ended"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One move, drawn."""

    seq: int
    kind: str
    face: Who | None
    word: str
    name: Markup
    words: Markup
    outcome: Markup | None
    is_long: bool  # so that it scrolls in itself


@dataclass(frozen=True, slots=True)
class Row:
    """Two moves beside each other, of which equal ones are drawn once. `is_first`: the two sides part here."""

    cells: tuple[Cell | None, Cell | None]
    is_same: bool
    is_first: bool
    parts: str


@require_safe
@takes("view")
def compare(request: HttpRequest) -> HttpResponse:
    """Compare `?a=` and `?b=`, each `CONVERSATION` or `CONVERSATION@RUN`; without both, ask for them."""
    asked = [request.GET.get(name, "").strip()[:400] for name in "ab"]
    if not all(asked):
        return _asking(request, asked)
    try:
        left, right = (moves.side_of(name) for name in asked)
    except NotFound as error:
        return _asking(request, asked, error)
    found = moves.compare(left, right)
    return draw(
        request, "compare.html", epoch=epoch.current(), found=found, rows=list(_rows(found.pairs)), asked=asked,
        sides=[_side(left), _side(right)], swapped=(right.name, left.name),
    )  # fmt: skip


def _asking(request: HttpRequest, asked: list[str], error: NotFound | None = None) -> HttpResponse:
    return draw(
        request, "compare.html", status=404 if error else 200, epoch=epoch.current(), found=None,
        asked=[hidden.spell(one) for one in asked], error=hidden.spell(error.message) if error else "",
    )  # fmt: skip


def _rows(pairs: list[Pair]) -> list[Row]:
    rows: list[Row] = []
    is_parted = False
    for pair in pairs:
        is_first = not pair.is_same and not is_parted
        is_parted = is_parted or is_first
        rows.append(Row((_cell(pair.left), _cell(pair.right)), pair.is_same, is_first, ", ".join(pair.parts)))
    return rows


def _cell(move: Move | None) -> Cell | None:
    if move is None:
        return None
    face = who(move.who) if move.who else None
    name = who(move.name).name if move.kind in ("said", "handoff") and move.name else move.name
    outcome = richtext.plain(_clipped(move.outcome)) if move.outcome else None
    words = richtext.plain(_clipped("" if move.words == "{}" else move.words))
    return Cell(
        move.seq, move.kind, face, WORDS[move.kind], richtext.inline(name[:400]), words, outcome, _is_long(move)
    )


def _is_long(move: Move) -> bool:
    return any(len(text) > 600 or text.count("\n") > 8 for text in (move.words, move.outcome))


def _clipped(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text):,} characters)"


def _side(side: Side) -> dict[str, Any]:
    """Answer what is told of a side, and what else of its conversation can be compared."""
    found = side.conversation
    runs = Run.objects.filter(conversation=found, parent_call=None).order_by("-queued_seq")[:RUNS]
    offered = [(found.key, "all of it")]
    offered += [
        (f"{found.key}@{run.id}", hidden.spell(f"run of {run.agent} at event {run.queued_seq}")) for run in runs
    ]
    if side.run is not None and side.name not in dict(offered):
        offered.append((side.name, hidden.spell(f"run of {side.run.agent} at event {side.run.queued_seq}")))
    return {
        "key": found.key,
        "name": hidden.spell(found.title or found.key),
        "hint": hidden.spell(found.key),
        "is_fork": bool(found.copied_seq or found.parent_id),
        "chosen": side.name,
        "offered": offered,
    }
