"""A conversation's model memory: the SDK's `Session` over rows, apart from the record (law F).

A run reads it once and collects what is new; `save` writes that in the transaction that ends or suspends the run,
so memory and record agree. A team's context is stored between the items, as rows of its own: as `CONTEXT` the newest,
and as `WAS` earlier ones, so that a fork continues with the context of its point.

    memory = session.load("conversation", newest=200, days=30)      # sync
    Runner.run_streamed(agent, words, session=memory)
    memory.save()                                                   # sync, inside a transaction
"""

import inspect
import json
import logging
from typing import Any, NamedTuple

from agents.items import TResponseInputItem
from agents.memory import SessionSettings
from django.db import connection
from django.db.models import Q

from agents_app.memory.interjections import MissedMessages
from agents_app.recorded_values import mask_value
from conversations.core.database_clock import database_now
from conversations.events.log import sql
from conversations.events.log.sql_blocks import execute_rows
from conversations.events.payload import clean_text
from conversations.models import SessionItem

logger = logging.getLogger(__name__)

OURS = '{"switchboard.'  # how a row begins that is not an item: a context, or
CONTEXT = f'{OURS}context":'
WAS = f'{OURS}was":'
HEARD = f'{OURS}heard":'  # up to which event it has heard what no run answers
DELIVERED = f'{OURS}delivered":'  # the messages after that one that reached a run at work
UNANSWERED = f'{OURS}unanswered":'  # the messages among the items whose runs all ended badly
DAY = 86_400_000_000  # µs
_TABLE = "conversations_sessionitem"
ROWS = f"""SELECT 0, seq, at, payload FROM (SELECT seq, at, payload FROM {_TABLE}
 WHERE conversation=%s AND payload NOT LIKE %s ORDER BY seq DESC LIMIT %s) AS newest
 UNION ALL SELECT 1, seq, at, payload FROM {_TABLE}
 WHERE conversation=%s AND (payload LIKE %s OR payload LIKE %s OR payload LIKE %s
 OR payload LIKE %s)"""
INSERT = f"INSERT INTO {_TABLE}(conversation,seq,at,payload) VALUES %s"
# As text: nearly each first run of a conversation asks this while it holds the write turn, and Django needs half a
# millisecond to write it.
ENDED = "SELECT ended_seq FROM conversations_run WHERE id=%s"
_Kept = tuple[Any, str]  # an item, and how it is kept


class StoredContext(NamedTuple):
    """A team's context as it was from a run's end on, at event `since`."""

    since: int
    text: str


class DjangoSession:
    """The SDK's Session protocol. Created by `load`."""

    session_settings: SessionSettings | None = None

    def __init__(self, conversation: str, stored: list[tuple[int, TResponseInputItem]], *, newest: int) -> None:
        self.session_id = conversation
        self._newest = newest
        self._stored = stored
        self._added: list[_Kept] = []  # an item, and how it is kept
        self._removed_seqs: list[int] = []
        self._is_cleared = False
        self._has_old = False  # whether rows are there that are too old
        self._last = max((seq for seq, _ in stored), default=0)
        self.context: dict[str, str] = {}  # team → its context as it was kept last
        self.last_heard_seq = 0  # up to which event
        self._new_heard_seq = 0  # as far as this run hears
        self.delivered: frozenset[int] = frozenset()  # messages that reached a run at work, after `last_heard_seq`
        self.unanswered: frozenset[int] = frozenset()  # messages among the items that no run has answered
        self._new_unanswered: frozenset[int] = frozenset()  # messages that this run adds to the items
        self._answers = 0  # the message that it answers
        self._meanwhile: list[_Kept] = []  # what it hears when it goes on

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest `limit` items, oldest first."""
        return self.items(limit)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items at the end."""
        self._added += [(item, _written(item)) for item in items]  # here: nobody waits for the database meanwhile
        self._new_unanswered |= {self._answers}

    for each in (get_items, add_items):  # the SDK asks for them four times a run, and reading one costs 60 µs
        each.__signature__ = inspect.signature(each)  # type: ignore[union-attr]

    def recall(self, items: list[TResponseInputItem]) -> None:
        """Fill an empty memory with items from the record."""
        self._added = [*((item, _written(item)) for item in items), *self._added]

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item and return it."""
        if self._added:
            item: TResponseInputItem = self._added.pop()[0]
            return item
        if not self._stored:
            return None
        seq, item = self._stored.pop()
        self._removed_seqs.append(seq)
        return item

    async def clear_session(self) -> None:
        """Remove everything."""
        self._stored, self._added, self._is_cleared = [], [], True

    def hear(self, missed: MissedMessages, *, answers: int, is_resumed: bool) -> None:
        """Add messages that no run answers: for a run that begins, those before its own message `answers`, and later
        ones together with it; for a run that continues, all."""
        self._answers, self._new_unanswered = answers, missed.seqs
        self._new_heard_seq = max(self.last_heard_seq, missed.upto)
        if is_resumed:
            self._meanwhile = [(item, _written(item)) for item in missed.all]
        else:
            self._added += [(item, _written(item)) for item in missed.before]

    def take_in(self, seq: int, item: TResponseInputItem) -> None:
        """Add a message that reaches the active run now, after everything it has done so far."""
        self._added.append((item, _written(item)))
        self.delivered |= {seq}
        self._new_unanswered |= {seq}

    def holds_unanswered(self, seq: int, words: str) -> bool:
        """Return whether a message is among the items and no run has answered it since: an agent that is run again is
        not given it twice."""
        if seq not in self.unanswered:
            return False
        content = json.loads(_written({"role": "user", "content": words}))["content"]
        return any(item.get("role") in ("user", "assistant") and item.get("content") == content
                   for _, item in self._stored)  # fmt: skip

    def items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest items, oldest first, as `to_input_list` would return them over all runs."""
        all_items = [item for _, item in self._stored] + [item for item, _ in self._new()]
        return all_items[-min(limit or self._newest, self._newest) :]

    def save(self, *, team: str = "", context: str | None = None, run: str = "", days: float = 30) -> None:
        """Write what changed, and a team's context at the end of a run that answered. Synchronous; call it in the
        transaction that ends the run, with the conversation locked. It changes only rows, so it may run again after a
        rollback; load anew after it."""
        now = database_now()
        if self._is_cleared or self._removed_seqs or self._has_old:
            self._forget(now - int(days * DAY))
        new = [text for _, text in self._new()]
        if self._new_heard_seq > self.last_heard_seq:
            SessionItem.objects.filter(conversation=self.session_id, payload__startswith=HEARD).delete()
            new.append(f"{HEARD}{self._new_heard_seq}}}")
        if after := sorted(seq for seq in self.delivered if seq > max(self._new_heard_seq, self.last_heard_seq)):
            SessionItem.objects.filter(conversation=self.session_id, payload__startswith=DELIVERED).delete()
            new.append(f"{DELIVERED}{json.dumps(after)}}}")
        unanswered = self.unanswered | self._new_unanswered if context is None else frozenset()
        if unanswered != self.unanswered:
            SessionItem.objects.filter(conversation=self.session_id, payload__startswith=UNANSWERED).delete()
            new += [f"{UNANSWERED}{json.dumps(sorted(unanswered))}}}"] if unanswered else []
        if context is not None and context != self.context.get(team):
            new += self._changed(team, context, run)
        rows = [(self.session_id, seq, now, payload) for seq, payload in enumerate(new, self._last + 1)]
        with connection.wrap_database_errors, connection.cursor() as cursor:
            execute_rows(cursor, INSERT, 4, [value for row in rows for value in row])

    def _changed(self, team: str, context: str, run: str) -> list[str]:
        """Return the rows of the earlier context, and of the one since the run's end."""
        with connection.cursor() as cursor:
            ended = next((seq for (seq,) in sql.rows_of(cursor, ENDED, [run])), None)
        rows = []
        if team in self.context:
            saved = SessionItem.objects.filter(conversation=self.session_id, payload__startswith=_row(CONTEXT, team))
            was = [json.loads(payload) for payload in saved.values_list("payload", flat=True)]
            rows = [_row(WAS, team, previous["context"], previous.get("since")) for previous in was]
            saved.delete()
        return [*rows, _row(CONTEXT, team, context, ended)]

    def _new(self) -> list[_Kept]:
        """Return what is new; interjections come first, except for outputs of earlier calls."""
        index = 0
        while index < len(self._added) and str(self._added[index][0].get("type")).endswith("_output"):
            index += 1
        return [*self._added[:index], *self._meanwhile, *self._added[index:]]

    def _forget(self, before: int) -> None:
        rows = SessionItem.objects.filter(conversation=self.session_id)
        marks = Q(payload__startswith=HEARD) | Q(payload__startswith=DELIVERED)
        rows.filter(at__lt=before).exclude(marks).delete()
        if self._is_cleared:
            rows.exclude(payload__startswith=OURS).delete()
        elif self._removed_seqs:
            rows.filter(seq__in=self._removed_seqs).delete()


def load(conversation: str, *, newest: int = 200, days: float = 30) -> DjangoSession:
    """Read a conversation's memory: its newest items that are not too old. Synchronous. A row that cannot be parsed is
    skipped and logged; it hides no other."""
    oldest = database_now() - int(days * DAY)
    with connection.cursor() as cursor:
        of_ours = [conversation, f"{CONTEXT}%", f"{HEARD}%", f"{DELIVERED}%", f"{UNANSWERED}%"]
        stored = sorted(sql.rows_of(cursor, ROWS, [conversation, f"{OURS}%", newest + 50, *of_ours]))
    rows = [(seq, at, payload) for is_ours, seq, at, payload in reversed(stored) if not is_ours]
    contexts = [(seq, payload) for is_ours, seq, _, payload in stored if is_ours]
    recent = [(seq, payload) for seq, at, payload in rows if at >= oldest]
    memory = DjangoSession(conversation, _readable(conversation, recent)[-newest:], newest=newest)
    memory._has_old = len(recent) < len(rows)
    memory._last = max((row[0] for row in (*rows[:1], *contexts)), default=0)
    memory.context = dict(filter(lambda pair: pair[0], (_context(payload) for _, payload in contexts)))
    memory.last_heard_seq = max((_heard_seq(payload) for _, payload in contexts), default=0)
    memory.delivered = frozenset(seq for _, payload in contexts for seq in _seqs(payload, DELIVERED))
    memory.unanswered = frozenset(seq for _, payload in contexts for seq in _seqs(payload, UNANSWERED))
    return memory


def _written(item: TResponseInputItem) -> str:
    """Return an item as text that a column can hold, with secrets masked: it is stored for weeks."""
    text = json.dumps(item, ensure_ascii=False, default=str)
    value = mask_value(item, text)
    return clean_text(text if value is item else json.dumps(value, ensure_ascii=False, default=str))


def _readable(conversation: str, newest_first: list[tuple[int, str]]) -> list[tuple[int, TResponseInputItem]]:
    items: list[tuple[int, Any]] = []
    for seq, payload in reversed(newest_first):
        try:
            item = json.loads(payload)
        except ValueError:
            item = None
        if isinstance(item, dict):
            items.append((seq, item))
        else:
            logger.warning("item %s of the agents' memory cannot be read", seq, extra={"conversation": conversation})
    return items


def contexts_of(conversation: str, team: str) -> list[StoredContext]:
    """Return a team's stored contexts and since when each applied, oldest first. Synchronous."""
    rows = SessionItem.objects.filter(conversation=conversation)
    rows = rows.filter(Q(payload__startswith=_row(WAS, team)) | Q(payload__startswith=_row(CONTEXT, team)))
    contexts = [json.loads(payload) for payload in rows.order_by("seq").values_list("payload", flat=True)]
    return [
        StoredContext(context["since"], context["context"]) for context in contexts if context.get("since") is not None
    ]


def _row(kind: str, team: str, context: str | None = None, since: int | None = None) -> str:
    """Return a context row; without a context, the prefix of such rows."""
    begins = f'{kind}{json.dumps(team)},"context":'
    return begins if context is None else f'{begins}{json.dumps(context)},"since":{json.dumps(since)}}}'


def _context(payload: str) -> tuple[str, str]:
    try:
        row: Any = json.loads(payload)
        return str(row["switchboard.context"]), str(row["context"])
    except (ValueError, KeyError, TypeError):
        return "", ""


def _heard_seq(payload: str) -> int:
    return int(json.loads(payload)["switchboard.heard"]) if payload.startswith(HEARD) else 0


def _seqs(payload: str, kind: str) -> list[int]:
    """Return the only field of a row of this kind; empty for a row of another one."""
    return list(*json.loads(payload).values()) if payload.startswith(kind) else []
