"""The history of a request: inputs and outputs of the responses it continues, oldest first. Synchronous.

It is read from the record each time, within a limit, so it survives a restart.
"""

import json
from collections.abc import Collection
from typing import NamedTuple

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from agents_app.open_responses.request import Item, RunRequest, Unfit, objects
from conversations.events.log import bounded_reads
from conversations.events.response_ids import input_items, is_reference
from conversations.models import Conversation, Event, Response
from conversations.runs.responses.response_chain import CHAIN, MAX_LINKS

MAX_SIZE = 16 << 20  # characters of events: of a chain, which is decoded at once, and that references are sought in

_EVENTS = """FROM chain c JOIN conversations_event e
 ON e.conversation_id=c.conversation_id AND (e.seq=c.in_seq OR e.seq=c.out_seq)"""
_SIZE = f"{CHAIN} SELECT COALESCE(SUM(LENGTH(e.body)),0), COALESCE(MAX(c.depth),0) {_EVENTS}"
_LINKS = f"{CHAIN} SELECT c.id, c.run, c.conversation_id, e.kind, e.body {_EVENTS} ORDER BY c.depth DESC, e.seq"


class ChainLink(NamedTuple):
    """One response of the chain."""

    response_id: str
    run: str
    conversation: int
    items: list[Item]
    """its input, then its output"""


def links(request: RunRequest) -> list[ChainLink]:
    """Return the chain that ends with a request, oldest first, the request itself last. Raises Unfit if it is too
    long."""
    with connection.cursor() as cursor:
        cursor.execute(_SIZE, [request.response_id, MAX_LINKS])
        size, depth = cursor.fetchone()
        if size > MAX_SIZE or depth >= MAX_LINKS:
            raise Unfit(
                "invalid_request",
                f"The responses that this one continues have more than {MAX_SIZE:,} characters, or there are more than"
                f" {MAX_LINKS:,}: compact them first.",
            )
        cursor.execute(_LINKS, [request.response_id, MAX_LINKS])
        rows = cursor.fetchall()
    links_by_response: dict[str, ChainLink] = {}
    for response_id, run, conversation, kind, body in rows:
        link = links_by_response.setdefault(response_id, ChainLink(response_id, run, conversation, []))
        link.items.extend(_items(kind, body))
    own = links_by_response.pop(request.response_id, ChainLink(request.response_id, "", 0, []))
    return [*links_by_response.values(), own._replace(items=list(request.items))]


def whole(chain: list[ChainLink], conversation: str) -> list[Item]:
    """Return the items of a chain in order, with references resolved. Raises Unfit for a reference to nothing."""
    items = [item for link in chain for item in link.items]
    seen_ids = {str(item["id"]) for item in items if item.get("id") and not is_reference(item)}
    ids = [str(item["id"]) for item in items if is_reference(item)]
    referred = _referred({id_ for id_ in ids if id_ not in seen_ids}, conversation)  # in the chain it has its place
    resolved: list[Item] = []
    for item in items:
        if not is_reference(item):
            resolved.append(item)
        elif (referred_item := referred.pop(str(item["id"]), None)) is not None:
            resolved.append(referred_item)
    return resolved


def _items(kind: str, body: str) -> list[Item]:
    fields = json.loads(body)
    if kind == "response.received":
        return input_items(str(fields.get("response_id") or ""), fields.get("input"))
    return objects(fields.get("output"))


def _referred(ids: Collection[str], conversation: str) -> dict[str, Item]:
    """Return the newest items with these ids in the conversation's responses; claims do not count. Reads at most
    `MAX_SIZE` characters. Raises Unfit for a reference to nothing."""
    items_by_id: dict[str, Item] = {}
    left = MAX_SIZE
    for kind, body in _bodies(conversation).iterator(bounded_reads.FETCHED) if ids else ():
        left -= len(body)
        if left < 0 or len(items_by_id) == len(ids):
            break
        for item in _items(kind, body):
            if item.get("id") in ids and not is_reference(item):
                items_by_id.setdefault(str(item["id"]), item)
    if missing := sorted({*ids} - items_by_id.keys()):
        raise Unfit("invalid_request", f"There is no item {missing[0]} in this conversation.")
    return items_by_id


def _bodies(conversation: str) -> QuerySet[Event, tuple[str, str]]:
    """Return type and body of the events that have the items of a conversation's responses, newest first."""
    row = Conversation.objects.get(key=conversation)
    answered = Q(kind="response.completed", run__isnull=False)  # a claim has no run
    received = Q(Exists(_responses(row).filter(in_seq=OuterRef("seq"))), kind="response.received")
    events = Event.objects.filter(answered | received, conversation=row)
    return events.order_by("-seq").values_list("kind", "body")


def _responses(row: Conversation) -> QuerySet[Response]:
    """Return a conversation's responses; for a fork also its parents', as far as they were copied."""
    places, at, parent = Q(conversation=row), row.copied_seq, row.parent
    while parent is not None and at:
        places |= Q(conversation=parent, in_seq__lte=at)
        at, parent = min(at, parent.copied_seq), parent.parent
    return Response.objects.filter(places)
