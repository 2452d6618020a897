"""A conversation, its participants, and how far each person has read it."""

from collections.abc import Iterable

from django.db import connection, models
from django.db.models import F, Q

from conversations.models.people import User


class ConversationQuerySet(models.QuerySet["Conversation"]):
    """Queries of pages."""

    def visible(self) -> "ConversationQuerySet":
        """Leave out what an import is still staging."""
        return self.filter(is_staged=False)

    def published(self) -> "ConversationQuerySet":
        """Keep visible conversations, and those that were moved into another one: they are hidden, but their events are
        there."""
        return self.exclude(is_staged=True, key__startswith="staged:")

    def free(self) -> "ConversationQuerySet":
        """Keep those in which agents may work: neither paused nor taken over."""
        return self.filter(state="open", owner="")

    def newest_first(self) -> "ConversationQuerySet":
        """Order as the list: by the partial index, ties by id."""
        return self.order_by("-last_at", "-id")

    def titles(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the titles of those of these conversations that have one, by id."""
        return dict(self.filter(key__in=set(keys) - {""}).exclude(title="").values_list("key", "title"))

    def locked(self, pk: int = 0, *, key: str = "") -> "Conversation":
        """Return a conversation under its row lock, inside `write_transaction()`; on SQLite the transaction holds the
        whole file."""
        rows = self if connection.vendor == "sqlite" else self.select_for_update()
        return rows.get(key=key) if key else rows.get(pk=pk)


class Conversation(models.Model):
    """A history without gaps under a text id. Counters and captions are a fold of its events (law I)."""

    key = models.CharField(max_length=200, unique=True)
    key_salt = models.BinaryField(null=True, help_text="16 random bytes; none once the id is erased")
    key_digest = models.CharField(
        max_length=64,
        default="",
        db_default="",
        help_text="SHA-256 over salt and id; empty for those of before format 3",
    )
    title = models.CharField(max_length=200, default="")
    state = models.CharField(max_length=10, default="open", help_text="open or paused, whoever holds it")
    owner = models.CharField(max_length=160, default="", help_text="the principal who took it over; empty: agents")
    paused_seq = models.BigIntegerField(default=0, help_text="the event that paused it; 0: it is not paused")
    owned_seq = models.BigIntegerField(default=0, help_text="the event by which a person took it over; 0: nobody")
    handler = models.CharField(max_length=200, default="")
    is_demo = models.BooleanField(default=False)
    is_staged = models.BooleanField(default=False)
    head_seq = models.BigIntegerField(default=0)
    head_hash = models.CharField(max_length=64, default="")
    indexed_seq = models.BigIntegerField(default=0)
    last_at = models.BigIntegerField(default=0, help_text="µs UTC, commit time of the last event")
    last_sender = models.CharField(max_length=200, default="")
    last_by = models.CharField(max_length=160, default="", help_text="the person who said it under another's name")
    last_line = models.CharField(max_length=200, default="")
    messages = models.BigIntegerField(default=0)
    tool_calls = models.BigIntegerField(default=0)
    errors = models.BigIntegerField(default=0)
    repeatable = models.CharField(
        max_length=64, default="", help_text="SHA-256 of the output that is the last event: what an envelope may repeat"
    )
    preview_after = models.BigIntegerField(
        default=0, help_text="seq of the last output without a run: foreign tokens after it are a preview"
    )
    opened_by = models.CharField(max_length=160, default="", help_text="the principal of its first event")
    outside_seq = models.BigIntegerField(
        default=0, help_text="the first event of somebody who was not let in: only people let agents in since; 0: none"
    )
    activity = models.CharField(
        max_length=240,
        default="",
        db_default="",
        help_text="events of the hour before its last one (`core.recent_activity`)",
    )
    parent = models.ForeignKey("self", models.PROTECT, null=True, related_name="forks")
    forked_at = models.BigIntegerField(null=True)
    copied_seq = models.BigIntegerField(
        default=0, help_text="a fork's events up to here are its parent's, copied: history, no deeds of its own"
    )

    objects = ConversationQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(F("last_at").desc(), F("id").desc(), name="conversation_newest", condition=Q(is_staged=False)),
            models.Index(F("last_at").desc(), F("id").desc(), name="conversation_paused", condition=Q(state="paused")),
            models.Index("owner", F("last_at").desc(), name="conversation_owned", condition=~Q(owner="")),
            models.Index(F("last_at").desc(), F("id").desc(), name="conversation_person", condition=~Q(owner="")),
            models.Index(fields=["id"], name="conversation_staged", condition=Q(is_staged=True)),
            models.Index(
                fields=["id"],
                name="conversation_unindexed",
                condition=Q(indexed_seq__lt=F("head_seq"), is_staged=False),
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.key

    @property
    def is_held(self) -> bool:
        """Return whether agents have to wait: it is paused, or a person took over."""
        return self.state == "paused" or bool(self.owner)


class Participant(models.Model):
    """A sender or recipient in a conversation."""

    pk = models.CompositePrimaryKey("conversation_id", "name")
    conversation = models.ForeignKey(
        Conversation, models.CASCADE, db_index=False, db_constraint=False, related_name="participants"
    )
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=10, help_text="agent, person or system")
    is_named = models.BooleanField(
        default=False, help_text="somebody who may let it in spoke to it: then its own token may view the conversation"
    )

    is_reachable = models.BooleanField(
        default=False,
        db_default=False,
        help_text="it spoke from outside of our runs, or was spoken to: what is sent to it may be read",
    )
    asked_at = models.BigIntegerField(
        default=0,
        db_default=0,
        help_text="µs UTC of the first message of an agent that this person has not answered; 0: none",
    )

    class Meta:
        indexes = [
            models.Index(fields=["name", "conversation"], name="participant_by_name"),
            models.Index(fields=["name", "conversation"], name="participant_named", condition=Q(is_named=True)),
            models.Index(fields=["name", "asked_at"], name="participant_asked", condition=Q(asked_at__gt=0)),
            models.Index(fields=["conversation", "asked_at"], name="participant_waits", condition=Q(asked_at__gt=0)),
        ]


class ReadMarker(models.Model):
    """How far one person has read one conversation. Not a fold of events."""

    pk = models.CompositePrimaryKey("user_id", "conversation_id")
    user = models.ForeignKey(User, models.CASCADE, db_index=False)
    conversation = models.ForeignKey(Conversation, models.CASCADE, db_constraint=False)
    last_seq = models.BigIntegerField(default=0)
    messages_seen = models.BigIntegerField(default=0)
    seen_at = models.DateTimeField(auto_now=True)
