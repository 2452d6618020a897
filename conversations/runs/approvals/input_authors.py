"""Find the people behind the input of runs, for four eyes: who wrote or sent it, or started the run again, including
messages delivered at one of its steps. Used where a decision is refused, and by the pages that say so beforehand.

If an agent's run sent the input, in the same conversation, the people behind that run are behind this one, too: nobody
gets around four eyes by asking one agent to ask another, nor by a token (`access.four_eyes`).
"""

import json
from collections.abc import Collection

from django.db import connection

from conversations.access import four_eyes
from conversations.events.log.sql import marks

_INPUTS = """JOIN conversations_run r ON r.id=b.run
JOIN conversations_run i ON i.conversation_id=r.conversation_id AND i.queued_seq>=r.queued_seq
AND (i.id=r.id OR i.delivered_to=r.id)
JOIN conversations_event e ON e.conversation_id=r.conversation_id"""
_AUTHORS = f"""WITH RECURSIVE behind(asking, run) AS (
SELECT id, id FROM conversations_run WHERE id IN ({{runs}})
UNION SELECT b.asking, e.run FROM behind b {_INPUTS} AND e.seq=i.input_seq WHERE e.run IS NOT NULL)
SELECT b.asking, e.principal, CASE WHEN e.principal='system' THEN e.body ELSE '{{{{}}}}' END
FROM behind b {_INPUTS} AND e.seq IN (i.input_seq, i.queued_seq)"""


def of_runs(runs: Collection[str]) -> dict[str, set[str]]:
    """Return the principals behind each of these runs, by its id; of what the system wrote for a token, the token. Of
    a token, whoever made it is among them."""
    authors: dict[str, set[str]] = {run: set() for run in runs}
    if runs:
        with connection.cursor() as cursor:
            cursor.execute(_AUTHORS.format(runs=marks(len(runs))), [*runs])
            for run, principal, body in cursor.fetchall():
                authors[run].add(str(json.loads(body).get("by") or principal))
    behind = four_eyes.people_behind({who for people in authors.values() for who in people})
    return {run: {each for who in people for each in behind[who]} for run, people in authors.items()}
