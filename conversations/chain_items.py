"""The items of a response and of those it went on from, oldest first: inputs and outputs in order, at any depth. Read
from the record each time. Used by `/v1/responses/compact`."""

import msgspec
from django.db import connection

from conversations.responses import Json

_CHAIN = """WITH RECURSIVE chain(id,previous,conversation_id,in_seq,out_seq,depth) AS (
SELECT id,previous,conversation_id,in_seq,out_seq,0 FROM conversations_response WHERE id=%s
UNION ALL SELECT r.id,r.previous,r.conversation_id,r.in_seq,r.out_seq,c.depth+1
FROM conversations_response r JOIN chain c ON r.id=c.previous)
SELECT e.kind,e.body FROM chain c JOIN conversations_event e
ON e.conversation_id=c.conversation_id AND e.seq IN (c.in_seq,c.out_seq) ORDER BY c.depth DESC,e.seq"""


def of(response: str) -> list[Json]:
    """Answer the items, those of `response` last."""
    with connection.cursor() as cursor:
        cursor.execute(_CHAIN, [response])
        rows = cursor.fetchall()
    found: list[Json] = []
    for kind, body in rows:
        told = msgspec.json.decode(body)
        found += told.get("input" if kind == "response.received" else "output") or ()
    return found
