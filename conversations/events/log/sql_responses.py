"""Write responses and forks to their tables, as the fold computed them."""

from typing import Any

from django.db.backends.utils import CursorWrapper

from conversations.events.projections import RowChanges
from conversations.events.response_ids import DELETED

_RESPONSE = """INSERT INTO conversations_response(id,conversation_id,previous,run,in_seq,out_seq,status,store,socket)
VALUES (%s,%s,%s,%s,%s,%s,%s,%s,%s) ON CONFLICT (id) DO UPDATE SET
previous=excluded.previous,run=excluded.run,in_seq=excluded.in_seq,out_seq=excluded.out_seq,status=excluded.status,
store=excluded.store,socket=excluded.socket
WHERE conversations_response.conversation_id=excluded.conversation_id"""
_ANSWERED = """UPDATE conversations_response SET out_seq=%s,status=CASE WHEN status=%s THEN status ELSE %s END
WHERE id=%s AND conversation_id=%s"""
_DELETED = "UPDATE conversations_response SET status=%s WHERE id=%s AND conversation_id=%s"
_FORK = """UPDATE conversations_conversation SET forked_at=%s,copied_seq=%s,
parent_id=(SELECT id FROM conversations_conversation WHERE key=%s) WHERE id=%s"""


def write(cursor: CursorWrapper, changes: RowChanges) -> None:
    """Write created, ended and deleted responses, and the parent of a forked conversation."""
    for r in changes.responses.values():
        row: list[Any] = [r.id, r.conversation_id, r.previous, r.run, r.in_seq, r.out_seq, r.status, r.store, r.socket]
        cursor.execute(_RESPONSE, row)
    for (conversation, response), (out_seq, status) in changes.answered.items():
        cursor.execute(_ANSWERED, [out_seq, DELETED, status, response, conversation])
    for conversation, response in changes.deleted:
        cursor.execute(_DELETED, [DELETED, response, conversation])
    for conversation, (parent, forked_at, copied_seq) in changes.forks.items():
        cursor.execute(_FORK, [forked_at, copied_seq, parent, conversation])
