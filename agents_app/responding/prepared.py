"""What a run that answers a request needs from the database besides any run's opening. Sync, one thread's work."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from django.db import connection

from agents_app.responding import chain, items, returned
from agents_app.responding.asked import Asked, Item, Unfit
from conversations.actions.runs import Claim
from conversations.compaction import text_of
from conversations.models import Event

OWN = "SELECT 1 FROM conversations_response WHERE id=%s AND run=%s"


class Prepared(NamedTuple):
    """`items` is what the model is given; empty where the request is `unfit`.

    `is_own`: the response is this run's to end; one run again by a person is not. `said` and `made` are of the run's
    earlier attempts: texts by turn, and how many calls were entered.
    """

    items: list[Item]
    unfit: Unfit | None
    is_own: bool
    said: Mapping[int, str]
    made: int


def prepare(claim: Claim, asked: Asked) -> Prepared:
    """Read the chain, and close the calls that the request has outputs of. Raises Fenced."""
    links = chain.links(asked)
    said, made = _earlier(claim) if claim.attempt > 1 else ({}, 0)
    is_own = _is_own(claim, asked)
    try:
        given = items.for_model(chain.whole(links, claim.conversation), text_of)
    except Unfit as unfit:
        return Prepared([], unfit, is_own, said, made)
    returned.close(claim, asked, links[:-1])
    return Prepared(given, None, is_own, said, made)


def _is_own(claim: Claim, asked: Asked) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(OWN, [asked.response_id, claim.run])
        return cursor.fetchone() is not None


def _earlier(claim: Claim) -> tuple[dict[int, str], int]:
    said: dict[int, str] = {}
    made = 0
    events = Event.objects.filter(conversation__key=claim.conversation, run=claim.run, kind__in=("output", "tool_step"))
    for kind, body in events.order_by("seq").values_list("kind", "body"):
        told = json.loads(body)
        if told.get("parent_call"):
            continue
        if kind == "output" and not told.get("is_partial"):
            said[int(told["turn"])] = str(told["text"])
        made += kind == "tool_step" and told.get("status") == "start"
    return said, made
