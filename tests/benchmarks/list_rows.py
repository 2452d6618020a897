"""Many conversations as the log would have folded them, written straight into the tables. Called by `list` alone.

Through the log and the models, 200,000 take many times as long.
"""

import random
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.core.write_transaction import write_transaction
from conversations.events.log.sql_blocks import execute_rows
from conversations.models import Approval, Conversation, Run
from conversations.search import title_index
from tests.benchmarks.seed import fill, message

BEGAN = 1_790_000_000_000_000  # µs UTC; a second between two conversations
SPOKEN = 10_000  # of them, the newest, have their events, ten each
BLOCK = 5_000
WORDS = (
    *("agent", "tool", "search", "file", "error", "result", "plan", "step", "query", "index", "user", "model", "run"),
    *("call", "output", "ticket", "road", "lamp"),
)

_CONVERSATIONS = """WITH made(id,key,title,last_line,last_at,messages,state,owner) AS (VALUES %s)
INSERT INTO conversations_conversation(id,key,title,last_line,last_at,messages,state,owner,last_sender,head_seq,
indexed_seq,head_hash,handler,last_by,repeatable,opened_by,is_demo,is_staged,paused_seq,owned_seq,tool_calls,errors,
preview_after,outside_seq,copied_seq,activity) SELECT id,key,title,last_line,last_at,messages,state,owner,'agent:A1',
10,10,'','agent:A1','','','',FALSE,FALSE,0,0,2,0,0,0,0,
'3,0,0,12,4,0,0,1,2,0,40' FROM made"""
_PARTICIPANTS = """INSERT INTO conversations_participant(conversation_id,name,kind,is_named)
SELECT id,{},{},{} FROM conversations_conversation WHERE {} ORDER BY id"""
_EVENTS = """INSERT INTO conversations_event(conversation_id,seq,kind,at,principal,run,turn,event_id,body,salt,digest,
hash) SELECT c.id,e.seq,e.kind,c.last_at,e.principal,e.run,e.turn,e.event_id,e.body,e.salt,e.digest,e.hash
FROM conversations_conversation c,conversations_event e
WHERE c.id>%s AND e.conversation_id=(SELECT id FROM conversations_conversation WHERE key='pattern')"""
_RUNS = """INSERT INTO conversations_run(id,conversation_id,kind,agent,status,reason,input_seq,queued_seq,attempt,
worker,stop) SELECT 'r'||id,id,'agent','A1',CASE WHEN title LIKE 'marker%%' THEN 'waiting' ELSE 'done' END,
CASE WHEN title LIKE 'marker%%' THEN 'approval' ELSE '' END,1,2,1,'','' FROM conversations_conversation"""


def store(count: int) -> None:
    """Fill the tables, and the index as the indexer does."""
    fill(message("pattern", number) for number in range(10))
    base = Conversation.objects.get(key="pattern").pk + 1
    with write_transaction(), connection.cursor() as cursor:
        _store_conversations(cursor, base, count)
    with write_transaction(), connection.cursor() as cursor:
        _store_participants(cursor, base, count)
        cursor.execute(_EVENTS, [base + count - min(SPOKEN, count)])
        cursor.execute(_RUNS, [])
        _store_approvals()
    Conversation.objects.filter(key="pattern").update(indexed_seq=10, last_at=1)
    _index()


def _store_conversations(cursor: CursorWrapper, base: int, count: int) -> None:
    dice = random.Random(9)
    for at in range(0, count, BLOCK):
        some = range(at, min(count, at + BLOCK))
        execute_rows(cursor, _CONVERSATIONS, 8, [value for n in some for value in (base + n, *_made(n, count, dice))])


def _made(n: int, count: int, dice: random.Random) -> tuple[Any, ...]:
    """Make a conversation: captions of a falling frequency, some held or paused."""
    rare = f"marker{n // 2_000} " if n % 2_000 == 3 else ""
    early = "archived " if n < count // 20 else ""  # many, and all of them old
    title = f"{rare}{early}{' '.join(dice.choices(WORDS, k=4))} {n % 977}"
    line = f"{' '.join(dice.choices(WORDS, k=14))} {'refund ' * (n % 3 == 0)}{n * 7919 % 100_003}"
    state, owner = "paused" if n % 100 == 7 else "open", f"user:p{n % 5}" if n % 150 == 11 else ""
    return f"conversation-{n}", title, line, BEGAN + n * 1_000_000, n % 90, state, owner


def _store_participants(cursor: CursorWrapper, base: int, count: int) -> None:
    """Let take part, and be named by somebody else: A1 everywhere and in half, Few in a few, Seldom, who speaks
    everywhere, in ten, Old in many old ones."""
    n = f"(id-{base})"
    for name, kind, is_named, where in (
        ("'agent:A1'", "'agent'", f"{n}%%2=0", "TRUE"),
        ("'user'", "'person'", "TRUE", "TRUE"),
        (f"'agent:B'||({n}%%40)", "'agent'", "TRUE", "TRUE"),
        ("'agent:Few'", "'agent'", "TRUE", f"{n}%%5000=17"),
        ("'agent:Seldom'", "'agent'", f"{n}%%20000=19", "TRUE"),
        ("'agent:Old'", "'agent'", "TRUE", f"{n}<{count // 20}"),
    ):
        cursor.execute(_PARTICIPANTS.format(name, kind, is_named, f"id>={base} AND {where}"), [])


def _store_approvals() -> None:
    """Let each run that waits do so for a person."""
    waiting = Run.objects.filter(status="waiting").values_list("id", "conversation_id")
    Approval.objects.bulk_create(
        Approval(id=f"a{id_}", conversation_id=id_, tool_call=f"t{id_}", run=run, asked_seq=1, asked_at=1)
        for run, id_ in waiting
    )


def _index() -> None:
    """Fill the index of captions; PostgreSQL builds its own at the end, many times as fast as row by row."""
    is_postgresql, definition = connection.vendor == "postgresql", ""
    with connection.cursor() as cursor:
        if is_postgresql:
            cursor.execute("SELECT pg_get_indexdef(CAST('conversations_captiontext_grams' AS regclass))")
            definition = cursor.fetchone()[0]
            cursor.execute("DROP INDEX conversations_captiontext_grams")
        called = Conversation.objects.order_by("id").values_list("id", "key", "title", "last_line")
        for at in range(0, called.count(), BLOCK):
            some = {id_: title_index.indexed_text(*texts) for id_, *texts in called[at : at + BLOCK]}
            with write_transaction():
                title_index.store(cursor, some)
        if is_postgresql:
            cursor.execute(definition)
            cursor.execute("VACUUM (ANALYZE)")  # as autovacuum leaves it, which is off so that it does not disturb
            cursor.execute("CHECKPOINT")  # nor does what filling left to be written
