"""The event in whose row a token is drawn: links to the token lead there. Called by the conversation page."""

from django.db import connection

from conversations.events.log.reads import PREVIEW, preview_before
from conversations.models import Conversation

_EVENTS = "FROM conversations_event WHERE conversation_id=%s AND seq BETWEEN %s AND %s"


def row_of(conversation: Conversation, seq: int, upto: int) -> int:
    """Return the output that a token belongs to; while there is none, the first token of its turn. Any other event is
    returned as it is. Nothing after event `upto` counts, nor what is more than 5,000 events away."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT kind,run,turn {_EVENTS}", [conversation.pk, seq, seq])
        event = cursor.fetchone()
        if event is None or event[0] != "token":
            return seq
        _, run, turn = event
        whose, values = ("run IS NULL", []) if run is None else ("run=%s AND turn IS NOT DISTINCT FROM %s", [run, turn])
        last = min(upto, seq + PREVIEW)
        output = f"{_EVENTS} AND NOT kind='token' AND kind='output' AND {whose} ORDER BY seq LIMIT 1"
        cursor.execute(f"SELECT seq {output}", [conversation.pk, seq, last, *values])
        if row := cursor.fetchone():
            return int(row[0])
        start = preview_before(conversation.key, seq) + 1 if run is None else max(1, seq - PREVIEW)
        first = f"{_EVENTS} AND kind='token' AND {whose} ORDER BY seq LIMIT 1"
        cursor.execute(f"SELECT seq {first}", [conversation.pk, start, seq, *values])
        return int(cursor.fetchone()[0])
