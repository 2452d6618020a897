"""Find the people behind the input of runs, for four eyes: who wrote or sent it, or started the run again, including
messages delivered at one of its steps, and those before its newest start that no run has answered: it hears them, or
remembers them from a run that ended badly or from the history that its fork was made with. Of an external agent's call:
its token, and who wrote in its conversation since its last output. Used where a decision is refused, and by the pages
that say so beforehand.

If an agent's run sent the input, in the same conversation, the people behind that run are behind this one, too: nobody
gets around four eyes by asking one agent to ask another, nor by a token (`access.four_eyes`).
"""

import json
from collections.abc import Collection

from django.db import connection

from conversations.access import four_eyes
from conversations.events.log.sql import marks

_STARTS = """SELECT s.seq FROM conversations_event s WHERE s.conversation_id=r.conversation_id AND s.seq>r.queued_seq
 AND s.seq<COALESCE(r.ended_seq, 9223372036854775807) AND NOT s.kind='token' AND s.kind='run.started' AND s.run=r.id
 ORDER BY s.seq"""
STARTED = f"CASE WHEN r.attempt=1 THEN ({_STARTS} LIMIT 1) ELSE ({_STARTS} DESC LIMIT 1) END"
"""The newest start of the run `r`, which hears nothing that was said after it. The only one is near where it was
queued."""

_READ = "e.principal, e.run, CASE WHEN e.principal='system' THEN e.body ELSE '{{}}' END"
_INPUTS = f"""SELECT r.id, {_READ} FROM conversations_run r
JOIN conversations_run i ON i.conversation_id=r.conversation_id AND i.queued_seq>=r.queued_seq
AND (i.id=r.id OR i.delivered_to=r.id)
JOIN conversations_event e ON e.conversation_id=r.conversation_id AND e.seq IN (i.input_seq, i.queued_seq)
WHERE r.id IN ({{runs}})"""
_HEARS = """r.kind='agent' AND r.parent_call IS NULL AND NOT EXISTS (SELECT 1 FROM conversations_response p
WHERE p.conversation_id=r.conversation_id AND p.in_seq=r.input_seq)"""
# `at`: the run's start; `done_at`: that of the newest run before it that ended well, and so answered what it had heard:
# a run there, or one of the history that a fork was made with, whose events have the same numbers there.
_COPIED_DONE = f"""SELECT r.id FROM conversations_conversation c JOIN conversations_event e ON e.conversation_id=c.id
AND e.seq<=c.copied_seq AND e.kind='run.done' AND NOT e.kind='token' JOIN conversations_run r ON r.id=e.run
WHERE c.id=started.conversation_id AND r.status='done' AND {_HEARS} ORDER BY e.seq DESC LIMIT 1"""
_COPIED_INPUT = """SELECT 1 FROM conversations_event q JOIN conversations_run o ON o.id=q.run AND o.input_seq=e.seq
WHERE q.conversation_id=e.conversation_id AND q.seq>e.seq AND q.seq<=c.copied_seq AND q.kind='run.queued'
AND NOT q.kind='token'"""
_UNANSWERED = f"""WITH started AS MATERIALIZED (SELECT r.id, r.conversation_id, {STARTED} AS at FROM conversations_run r
WHERE r.id IN ({{runs}}) AND r.attempt>0 AND {_HEARS}),
latest AS MATERIALIZED (SELECT started.*, COALESCE((SELECT r.id FROM conversations_run r
WHERE r.conversation_id=started.conversation_id AND r.status='done' AND r.ended_seq<started.at AND {_HEARS}
ORDER BY r.queued_seq DESC LIMIT 1), ({_COPIED_DONE})) AS done FROM started),
b AS MATERIALIZED (SELECT latest.*, COALESCE(r.input_seq, 0) AS answered, COALESCE({STARTED}, 0) AS done_at
FROM latest LEFT JOIN conversations_run r ON r.id=latest.done)
SELECT b.id, {_READ} FROM b JOIN conversations_conversation c ON c.id=b.conversation_id
JOIN conversations_event e ON e.conversation_id=b.conversation_id
AND e.seq>b.answered AND e.seq<b.at AND e.kind='message' AND NOT e.kind='token'
WHERE (e.seq>b.done_at AND (e.principal LIKE 'user:%%' OR EXISTS ({_COPIED_INPUT}))
OR EXISTS (SELECT 1 FROM conversations_run o WHERE o.conversation_id=e.conversation_id AND o.queued_seq>e.seq
AND o.queued_seq<b.at AND o.input_seq=e.seq AND o.ended_seq>b.done_at))
AND NOT EXISTS (SELECT 1 FROM conversations_run o WHERE o.conversation_id=e.conversation_id AND o.queued_seq>e.seq
AND o.queued_seq<b.at AND o.input_seq=e.seq AND (o.ended_seq IS NULL OR o.ended_seq>=b.at OR o.status='done'
OR EXISTS (SELECT 1 FROM conversations_run d WHERE d.id=o.delivered_to AND d.status='done')))"""
# What an external agent heard is for it to say; so everybody counts who wrote where it works.
_EXTERNAL = f"""SELECT r.id, {_READ} FROM conversations_run r
JOIN conversations_event i ON i.conversation_id=r.conversation_id AND i.seq=r.input_seq
JOIN conversations_event e ON e.conversation_id=r.conversation_id AND e.seq<r.input_seq
AND e.seq>COALESCE((SELECT o.seq FROM conversations_event o WHERE o.conversation_id=r.conversation_id
AND o.seq<r.input_seq AND o.kind='output' AND NOT o.kind='token' AND o.principal=i.principal
ORDER BY o.seq DESC LIMIT 1), 0)
WHERE r.id IN ({{runs}}) AND r.kind='external' AND e.kind='message' AND NOT e.kind='token'
AND (e.principal LIKE 'user:%%' OR e.principal LIKE 'token:%%' AND e.principal<>i.principal)"""


def of_runs(runs: Collection[str]) -> dict[str, set[str]]:
    """Return the principals behind each of these runs, by its id; of what the system wrote for a token, the token. Of
    a token, whoever made it is among them."""
    authors: dict[str, set[str]] = {}
    senders: dict[str, set[str]] = {}  # the runs that sent a run what it heard
    unread = set(runs)
    while unread:
        authors |= {run: set() for run in unread}
        senders |= {run: set() for run in unread}
        for run, principal, sender, body in _messages_of([*unread]):
            authors[run].add(str(json.loads(body).get("by") or principal))
            senders[run] |= {sender} if sender else set()
        unread = {sender for run in unread for sender in senders[run]} - authors.keys()
    behind = four_eyes.people_behind({who for people in authors.values() for who in people})
    return {
        run: {each for other in _reached(run, senders) for who in authors[other] for each in behind[who]}
        for run in runs
    }


def _messages_of(runs: list[str]) -> list[tuple[str, str, str | None, str]]:
    """Return the events behind these runs: the run, the event's principal and run, and its body if the system wrote
    it."""
    messages: list[tuple[str, str, str | None, str]] = []
    with connection.cursor() as cursor:
        for select in (_INPUTS, _UNANSWERED, _EXTERNAL):
            cursor.execute(select.format(runs=marks(len(runs))), runs)
            messages += cursor.fetchall()
    return messages


def _reached(run: str, senders: dict[str, set[str]]) -> set[str]:
    reached, fresh = {run}, {run}
    while fresh:
        fresh = {sender for each in fresh for sender in senders[each]} - reached
        reached |= fresh
    return reached
