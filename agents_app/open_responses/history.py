"""The history of a request: inputs and outputs of the responses it continues, oldest first. Synchronous.

It is read from the record each time, within a limit, so it survives a restart.
"""

import json
from typing import NamedTuple

from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from agents_app.open_responses.request import Item, RunRequest, Unfit, objects
from conversations.core import principals
from conversations.models import Conversation, Event, Response
from conversations.runs.responses.response_chain import CHAIN, MAX_LINKS

MAX_SIZE = 16 << 20  # characters of a chain's events, all of which are decoded at once

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
    resolved: list[Item] = []
    for item in items:
        if not is_reference(item):
            resolved.append(item)
        elif str(item.get("id")) not in seen_ids:  # what is in the chain stands in its place
            seen_ids.add(str(item["id"]))
            resolved.append(_referred(str(item["id"]), conversation))
    return resolved


def is_reference(item: Item) -> bool:
    """Return whether an item only refers to another one."""
    return item.get("type") == "item_reference" or (item.keys() <= {"type", "id"} and "id" in item)


def _items(kind: str, body: str) -> list[Item]:
    fields = json.loads(body)
    return objects(fields.get("input" if kind == "response.received" else "output"))


def _referred(id_: str, conversation: str) -> Item:
    """Return the newest item with this id in the conversation's responses; claims do not count."""
    row = Conversation.objects.get(key=conversation)
    answered = Q(kind="response.completed", run__isnull=False)
    received = Q(Exists(_responses(row).filter(in_seq=OuterRef("seq"))), kind="response.received")
    events = Event.objects.filter(answered | received, conversation=row, body__contains=json.dumps(id_))
    for kind, principal, body in events.order_by("-seq").values_list("kind", "principal", "body"):
        if kind == "response.completed" and not principals.is_ours(principal):
            continue
        for item in _items(kind, body):
            if item.get("id") == id_ and not is_reference(item):
                return item
    raise Unfit("invalid_request", f"There is no item {id_} in this conversation.")


def _responses(row: Conversation) -> QuerySet[Response]:
    """Return a conversation's responses; for a fork also its parents', as far as they were copied."""
    places, at, parent = Q(conversation=row), row.copied_seq, row.parent
    while parent is not None and at:
        places |= Q(conversation=parent, in_seq__lte=at)
        at, parent = min(at, parent.copied_seq), parent.parent
    return Response.objects.filter(places)
