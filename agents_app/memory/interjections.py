"""Messages from people that no run answered: sent as an agent, or to nobody in particular after they took over. They
are added to the agents' memory, so that the next answer takes them into account (law F). Also messages to an active
run, which gets them at its next step (`runs.deliver_messages`).

A run gets them when it begins, in order around the message it answers; a run that was suspended gets them when it
continues. How far they were read is stored with the memory (`session`).
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

from agents.run_config import CallModelData, ModelInputData
from django.conf import settings
from django.db import connection

from agents_app.run_scope import current_scope
from conversations.events import log, payload
from conversations.events.log import sql
from conversations.events.redacted_events import is_redacted
from conversations.runs.approvals.input_authors import STARTED
from conversations.runs.claims import Claim

Item = Any  # one of the many shapes that the SDK knows
Deliver = Callable[[str], Awaitable[Sequence[Item]]]  # agent → what reaches it now

# Words are an input once a run that was begun, or may begin, answers them: its own memory has them then. Those of a run
# that was stopped in the queue are nobody's; those that were delivered to another are in the memory if that was kept.
# Other words count when a person said them: agents remember their own; what comes over the bus is for those it names.
# What is said once it has begun waits for its next start: four eyes know from the record what a run heard.
SAID = f"""WITH b AS MATERIALIZED (SELECT r.conversation_id, {STARTED} AS at FROM conversations_run r WHERE r.id=%s)
 SELECT e.seq, e.body, e.erased_by, e.principal FROM b JOIN conversations_event e
 ON e.conversation_id=b.conversation_id AND e.seq>%s AND e.seq<b.at WHERE e.kind='message' AND NOT e.kind='token'
 AND NOT EXISTS (SELECT 1 FROM conversations_run r WHERE r.conversation_id=e.conversation_id AND r.queued_seq>e.seq
  AND r.queued_seq<b.at AND r.input_seq=e.seq
  AND NOT (r.status IN ('cancelled', 'delivered') AND r.attempt=0 AND r.ended_seq<b.at))
 AND (e.principal LIKE 'user:%%' OR EXISTS (SELECT 1 FROM conversations_run r WHERE
  r.conversation_id=e.conversation_id AND r.queued_seq>e.seq AND r.queued_seq<b.at AND r.input_seq=e.seq))
 ORDER BY e.seq DESC LIMIT %s"""
# Whatever the newest answered run of the conversation `c` heard before its input was kept with how far it heard.
ANSWERED = """SELECT COALESCE((SELECT r.input_seq FROM conversations_run r
 WHERE r.conversation_id=c.id AND r.kind='agent' AND r.parent_call IS NULL AND r.status='done'
 ORDER BY r.queued_seq DESC LIMIT 1), 0)"""


class MissedMessages(NamedTuple):
    """Messages, oldest first: before the one to answer, and after it; their seqs. `upto` is the newest seq that was
    read; 0 for none."""

    before: list[Item]
    after: list[Item]
    upto: int = 0
    seqs: frozenset[int] = frozenset()

    @property
    def all(self) -> list[Item]:
        """Return all messages."""
        return [*self.before, *self.after]


NOTHING = MissedMessages([], [])


class Interjection(NamedTuple):
    """Messages that a run got when it continued, and before which item of the model's input they belong; None if not
    placed yet."""

    at: int | None
    item: Item


def missed_messages(claim: Claim, since: int, delivered: Collection[int] = ()) -> MissedMessages:
    """Return the messages after `since`, up to which the memory has read, and before a run's newest start, without
    those delivered to an earlier active run. Synchronous."""
    with connection.cursor() as cursor:
        rows = sql.rows_of(cursor, SAID, [claim.run, since, settings.CONFIG.session_items])[::-1]
    new = [
        (seq, item_of(body)) for seq, body, *erasure in rows if seq not in delivered and not is_redacted(body, *erasure)
    ]
    before = [item for seq, item in new if seq < claim.input_seq]
    after = [item for seq, item in new if seq > claim.input_seq]
    return MissedMessages(before, after, rows[-1][0] if rows else 0, frozenset(seq for seq, _ in new))


class InterjectionFilter:
    """Inserts interjections into a model's input on every call: the SDK's own state of a run that was suspended, or is
    active, accepts none. Passed to the SDK as `call_model_input_filter`; stored once more with the state. `deliver`
    returns what waits for the agent's next step; a run's first call has none."""

    def __init__(
        self, saved: Sequence[Interjection], new: Sequence[Item], deliver: Deliver | None = None, *, has_begun: bool
    ) -> None:
        self.all = [*saved, *(Interjection(None, item) for item in new)]
        self._deliver, self._has_begun = deliver, has_begun

    async def __call__(self, call_data: CallModelData[Any]) -> ModelInputData:
        """Return the input with the interjections, at the position where the model first saw them."""
        model_input, scope = call_data.model_data, current_scope()
        if scope is not None and scope.parent_call is not None:
            return model_input  # a run inside a tool
        length = len(model_input.input)
        if self._deliver is not None and self._has_begun:
            self.all += [Interjection(None, item) for item in await self._deliver(call_data.agent.name)]
        self._has_begun = True
        if not self.all:
            return model_input
        self.all = [
            Interjection(length if interjection.at is None else interjection.at, interjection.item)
            for interjection in self.all
        ]
        return ModelInputData([*self._placed(model_input.input)], model_input.instructions)

    def _placed(self, items: Sequence[Any]) -> Iterator[Any]:
        for index, item in enumerate(items):
            yield from (interjection.item for interjection in self.all if interjection.at == index)
            yield item
        yield from (
            interjection.item
            for interjection in self.all
            if interjection.at is not None and interjection.at >= len(items)
        )


def item_of(body: str) -> Item:
    """Return a message as model input: an agent's is an assistant's, all others a user's."""
    sender: Any = payload.decoded(body).get("sender")
    is_agents = isinstance(sender, str) and sender.startswith("agent:")
    return {"role": "assistant" if is_agents else "user", "content": log.spoken_text(body)}
