"""Count pending approval requests, for the navigation of every page and the frames of the state topics.

The result is the same for everybody: how many can be decided, how many are escalated to which role, and how many each
person may not decide because they wrote the run's input (four eyes). Each browser selects the numbers for its person.
"""

import json
from collections import Counter
from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.db.models import Count, Min, OuterRef, Q, Subquery

from conversations.core.micros import to_datetime
from conversations.events.log import bounded_reads
from conversations.models import Approval, Event
from conversations.runs.approvals import auto_approval_rules, input_authors, request_terms
from conversations.runs.policy import evaluate

MAX_REQUESTS = 500  # approval requests whose authors are looked up


def pending_counts() -> dict[str, Any]:
    """Return how many are `waiting`, in the `demo` of these, `escalated` (by role) and `barred` (by principal); and
    since when the `oldest` one waits, in ISO 8601, null if none does."""
    open_approvals = Approval.objects.open()
    escalated = open_approvals.exclude(escalated_seq=None).order_by().values_list("escalated_to")
    in_demo = Count("id", filter=Q(conversation__is_demo=True))
    number, demo, asked_at = open_approvals.aggregate(number=Count("id"), demo=in_demo, oldest=Min("asked_at")).values()
    return {
        "waiting": number,
        "demo": demo,
        "oldest": None if asked_at is None else to_datetime(asked_at).isoformat(),
        "escalated": dict(escalated.annotate(Count("id"))),
        "barred": dict(Counter(who for people in excluded_approvers().values() for who in people)),
    }


def excluded_approvers(approvals: Collection[str] | None = None) -> dict[str, set[str]]:
    """Return who may not decide which open request (of these, or of all), by its id, because of four eyes under the
    current policy."""
    rows = evaluate.rows()
    if not settings.CONFIG.four_eyes and not any(row.four_eyes for row in rows.values()):
        return {}
    requests = Event.objects.filter(conversation=OuterRef("conversation"), seq=OuterRef("asked_seq")).values("body")
    open_approvals = Approval.objects.open().order_by("-id")
    open_approvals = open_approvals if approvals is None else open_approvals.filter(id__in=approvals)
    barred_ids = []
    rows_asked = open_approvals.annotate(asked=Subquery(requests[:1])).values_list("id", "asked")[:MAX_REQUESTS]
    for id_, body in rows_asked.iterator(bounded_reads.FETCHED):
        call = auto_approval_rules.call_of(json.loads(body))
        if request_terms.of_call(evaluate.matching(rows, call.agent, call.tool)).four_eyes:
            barred_ids.append(id_)
    return _deciding_authors(barred_ids)


def _deciding_authors(approvals: list[str]) -> dict[str, set[str]]:
    """Return who is behind the input of the runs of these open requests, of those who could decide at all."""
    runs = dict(Approval.objects.open().filter(id__in=approvals).values_list("id", "run"))
    authors = input_authors.of_runs(set(runs.values()))
    able = {id_: {who for who in authors[run] if who.startswith(("user:", "token:"))} for id_, run in runs.items()}
    return {id_: people for id_, people in able.items() if people}
