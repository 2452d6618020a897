"""What a run that answers a request reads from the database besides its input. Synchronous, one piece of work."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from django.db import connection

from agents_app.open_responses import client_tool_calls, history, model_items
from agents_app.open_responses.request import Item, RunRequest, Unfit
from agents_app.open_responses.response_builder import Spoken
from conversations.conversation.compaction import text_of
from conversations.events.response_ids import CLIENT_ORIGIN
from conversations.models import Event, ToolCall
from conversations.runs.claims import Claim

OWN = "SELECT 1 FROM conversations_response WHERE id=%s AND run=%s"


class Prepared(NamedTuple):
    """`items` is the model's input; empty if the request is `unfit`.

    `is_own`: this run ends the response; a run that a person started again does not. `spoken`, `call_count` and
    `output_tokens` are from the run's earlier attempts: texts by turn, how many calls its models made of tools that are
    not the client's, and how many tokens they answered with.
    """

    items: list[Item]
    unfit: Unfit | None
    is_own: bool
    spoken: Mapping[int, Spoken]
    call_count: int
    output_tokens: int


def prepare(claim: Claim, request: RunRequest) -> Prepared:
    """Read the chain, and close the calls for which the request has outputs. Raises Fenced."""
    earlier = (_spoken(claim), _call_count(claim), _output_tokens(claim)) if claim.attempt > 1 else ({}, 0, 0)
    is_own = _is_own(claim, request)
    try:
        links = history.links(request)
        items = model_items.for_model(history.whole(links, claim.conversation), text_of)
    except Unfit as unfit:
        return Prepared([], unfit, is_own, *earlier)
    client_tool_calls.close(claim, request, links[:-1])
    return Prepared(items, None, is_own, *earlier)


def _is_own(claim: Claim, request: RunRequest) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(OWN, [request.response_id, claim.run])
        return cursor.fetchone() is not None


def _spoken(claim: Claim) -> dict[int, Spoken]:
    spoken: dict[int, Spoken] = {}
    outputs = Event.objects.filter(conversation__key=claim.conversation, run=claim.run, kind="output")
    for body in outputs.order_by("seq").values_list("body", flat=True):
        fields = json.loads(body)
        if not fields.get("parent_call") and not fields.get("is_partial"):
            phase, thoughts = str(fields.get("phase") or ""), int(fields.get("thoughts") or 0)
            spoken[int(fields["turn"])] = Spoken(str(fields["text"]), phase, thoughts)
    return spoken


def _call_count(claim: Claim) -> int:
    """Count calls as they are limited: those, too, that a person was asked about or that a policy refused, which have
    not started."""
    calls = ToolCall.objects.filter(run=claim.run).exclude(origin=CLIENT_ORIGIN)
    events = Event.objects.filter(conversation__key=claim.conversation, seq__in=calls.values("called_seq"))
    return sum(not json.loads(body).get("parent_call") for body in events.values_list("body", flat=True))


def _output_tokens(claim: Claim) -> int:
    """Count the output tokens of the turns of the run's own agents; of a turn whose tokens are unknown none."""
    turns = Event.objects.filter(conversation__key=claim.conversation, run=claim.run, kind="model.turn")
    usages = [
        fields.get("usage") or {}
        for fields in map(json.loads, turns.values_list("body", flat=True))
        if not fields.get("parent_call")
    ]
    return sum(int(usage.get("output_tokens") or 0) for usage in usages)
