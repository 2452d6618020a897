"""Find the ids of a batch that are already stored: looked up under the lock, after an IntegrityError or inside an
action."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from django.db.backends.utils import CursorWrapper

from conversations.events.log import sql
from conversations.events.log.records import NewEvent
from conversations.events.projections import ConversationHead

_POSTS = """SELECT p.topic,p.bus_id,p.conversation_id,p.event_seq,p.body,e.salt,e.digest FROM conversations_post p
LEFT JOIN conversations_event e ON e.conversation_id=p.conversation_id AND e.seq=p.event_seq
WHERE p.topic=%s AND p.bus_id IN ({})"""


class ExistingEvent(NamedTuple):
    """The place of an existing event, whether another payload arrived under its id, and whether this post is stored
    too."""

    seq: int
    clashes: bool
    is_posted: bool


class _Place(NamedTuple):
    conversation: int | None
    seq: int
    salt: bytes | None
    digest: str
    body: str | None = None

    def holds(self, body: str) -> bool:
        """Return whether the payload is the same, by its salted digest. A tombstone (no salt) counts as the same
        (§3.6)."""
        return self.salt is None or sha256(bytes(self.salt) + body.encode()).hexdigest() == self.digest


@dataclass
class ExistingIds:
    """The ids known so far, from the tables and from earlier in the batch."""

    events: dict[tuple[int, str], _Place] = field(default_factory=dict)
    posts: dict[tuple[str, str], _Place] = field(default_factory=dict)

    def find(self, conversation: int, event: NewEvent) -> ExistingEvent | None:
        """Find an event by its post, else by its own id."""
        post = self.posts.get((event.topic, event.bus_id or "")) if event.topic else None
        if post is not None:
            return ExistingEvent(post.seq, post.conversation != conversation or not post.holds(event.body), True)
        stored = self.events.get((conversation, event.event_id or "")) if event.event_id else None
        return ExistingEvent(stored.seq, not stored.holds(event.body), False) if stored else None

    def find_post(self, event: NewEvent) -> str | None:
        """Find the body of a post that belongs to no conversation."""
        post = self.posts.get((event.topic, event.bus_id or ""))
        return (post.body or "") if post else None

    def add(self, conversation: int, event: NewEvent, seq: int, salt: bytes, digest: str) -> None:
        """Add an event of this batch."""
        if event.event_id:
            self.events[conversation, event.event_id] = _Place(conversation, seq, salt, digest)

    def add_part(self, token: NewEvent, conversation: int, seq: int, salt: bytes, digest: str) -> None:
        """Add a token of this batch that was merged with others."""
        self.posts[token.topic, token.bus_id or ""] = _Place(conversation, seq, salt, digest)

    def add_post(self, event: NewEvent, conversation: int, seq: int) -> None:
        """Add a post of this batch, with the place of its event."""
        stored = self.events.get((conversation, event.event_id or ""))
        if stored is not None:
            self.posts[event.topic, event.bus_id or ""] = stored._replace(seq=seq)

    def add_post_only(self, event: NewEvent) -> None:
        """Add a post of this batch that belongs to no conversation."""
        self.posts[event.topic, event.bus_id or ""] = _Place(None, 0, None, "", event.body)


def load_existing(cursor: CursorWrapper, batch: Sequence[NewEvent], heads: dict[str, ConversationHead]) -> ExistingIds:
    """Load what is stored under the batch's ids, by conversation and by topic, so that the unique indexes are used."""
    existing = ExistingIds()
    ids: dict[int, list[str]] = {}
    bus_ids: dict[str, list[str]] = {}
    for event in batch:
        if event.event_id and event.conversation is not None:
            ids.setdefault(heads[event.conversation].id, []).append(event.event_id)
        if event.topic and event.bus_id:
            bus_ids.setdefault(event.topic, []).append(event.bus_id)
    for conversation, lookup_ids in ids.items():
        cursor.execute(
            "SELECT event_id,seq,salt,digest FROM conversations_event"
            f" WHERE conversation_id=%s AND event_id IN ({sql.marks(len(lookup_ids))})",
            [conversation, *lookup_ids],
        )
        for event_id, seq, salt, digest in cursor.fetchall():
            existing.events[conversation, event_id] = _Place(conversation, seq, salt, digest)
    for topic, lookup_ids in bus_ids.items():
        cursor.execute(_POSTS.format(sql.marks(len(lookup_ids))), [topic, *lookup_ids])
        for _, bus_id, conversation, seq, body, salt, digest in cursor.fetchall():
            is_part = conversation is not None and body is not None  # a merged token: its own digest is kept
            existing.posts[topic, bus_id] = _Place(
                conversation, seq or 0, salt, (body if is_part else digest) or "", body
            )
    return existing
