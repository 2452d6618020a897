"""Read what came after a place in many conversations at once: one query, however many there are."""

from collections.abc import Mapping

from django.db import connection

from conversations.log.events import Stored

EVENTS = 2000  # of one read, all conversations together
LEAST = 20  # events of each
SIZE = 4 << 20  # characters of one read, or one event


def read(places: Mapping[str, int]) -> tuple[dict[str, list[Stored]], bool]:
    """Answer the events after each place (key → seq), in order, and whether all that was asked for was read.

    Of each conversation at most its share of 2,000; past 4 MiB the rest is left for another read. The range is closed
    on both sides, which seqs without gaps allow, so that no conversation is read to its end.
    """
    share = max(LEAST, EVENTS // len(places))
    asked = ",".join(["(CAST(%s AS text),CAST(%s AS bigint),CAST(%s AS bigint))"] * len(places))
    values = [value for key, after in places.items() for value in (key, after, after + share)]
    found: dict[str, list[Stored]] = {}
    size = 0
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH asked(key,after,upto) AS (VALUES {asked})"
            " SELECT c.key,e.seq,e.kind,e.at,e.principal,e.run,e.turn,e.event_id,e.body"
            " FROM asked a JOIN conversations_conversation c ON c.key=a.key"
            " JOIN conversations_event e ON e.conversation_id=c.id AND e.seq>a.after AND e.seq<=a.upto"
            " ORDER BY e.conversation_id,e.seq",
            values,
        )
        for row in cursor:
            if size > SIZE:
                return found, False
            found.setdefault(row[0], []).append(Stored(*row))
            size += len(row[8])
    return found, True
