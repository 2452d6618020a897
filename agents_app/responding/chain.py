"""What was said before a request: the inputs and outputs of the responses it goes on from, oldest first. Sync.

It is read from the record each time, at any depth, in one query; so it is there after a restart as well.
"""

import json
from typing import NamedTuple

from django.db import connection

from agents_app.responding.asked import Asked, Item, Unfit, objects
from conversations.models import Event

LINKS = """WITH RECURSIVE chain(id, previous, conversation_id, run, in_seq, out_seq, depth) AS (
 SELECT id, previous, conversation_id, run, in_seq, out_seq, 0 FROM conversations_response WHERE id=%s
 UNION ALL SELECT r.id, r.previous, r.conversation_id, r.run, r.in_seq, r.out_seq, c.depth+1
 FROM conversations_response r JOIN chain c ON r.id=c.previous)
SELECT c.id, c.run, c.conversation_id, e.kind, e.body FROM chain c JOIN conversations_event e
 ON e.conversation_id=c.conversation_id AND (e.seq=c.in_seq OR e.seq=c.out_seq) ORDER BY c.depth DESC, e.seq"""


class Link(NamedTuple):
    """A response of the chain."""

    response_id: str
    run: str
    conversation: int
    items: list[Item]
    """its input, then its output"""


def links(asked: Asked) -> list[Link]:
    """Answer the chain that ends with a request, the oldest first, the request itself last."""
    with connection.cursor() as cursor:
        cursor.execute(LINKS, [asked.response_id])
        rows = cursor.fetchall()
    found: dict[str, Link] = {}
    for response_id, run, conversation, kind, body in rows:
        link = found.setdefault(response_id, Link(response_id, run, conversation, []))
        link.items.extend(_items(kind, body))
    own = found.pop(asked.response_id, Link(asked.response_id, "", 0, []))
    return [*found.values(), own._replace(items=list(asked.items))]


def whole(chain: list[Link], conversation: str) -> list[Item]:
    """Answer the items of a chain in order, references resolved. Raises Unfit for one that nothing has."""
    items = [item for link in chain for item in link.items]
    known = {str(item["id"]) for item in items if item.get("id") and not is_reference(item)}
    made: list[Item] = []
    for item in items:
        if not is_reference(item):
            made.append(item)
        elif str(item.get("id")) not in known:  # what is in the chain stands in its place
            known.add(str(item["id"]))
            made.append(_referred(str(item["id"]), conversation))
    return made


def is_reference(item: Item) -> bool:
    """Tell whether an item only names another one."""
    return item.get("type") == "item_reference" or (item.keys() <= {"type", "id"} and "id" in item)


def _items(kind: str, body: str) -> list[Item]:
    told = json.loads(body)
    return objects(told.get("input" if kind == "response.received" else "output"))


def _referred(id_: str, conversation: str) -> Item:
    kinds = ("response.received", "response.completed")
    events = Event.objects.filter(conversation__key=conversation, kind__in=kinds, body__contains=json.dumps(id_))
    for kind, body in events.order_by("-seq").values_list("kind", "body"):
        for item in _items(kind, body):
            if item.get("id") == id_ and not is_reference(item):
                return item
    raise Unfit("invalid_request", f"There is no item {id_} in this conversation.")
