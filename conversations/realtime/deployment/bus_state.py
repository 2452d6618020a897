"""What goes over the bus: Redis streams and how far they are read, and posts on topics without a conversation."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from markupsafe import Markup

from conversations.core import hidden_characters
from conversations.models import Post, RedisPosition
from conversations.rendering import json_tree
from conversations.transport import entry_ids

MAX_STREAMS = 20  # drawn; the rest is found by name
RECENT = 200  # posts without a conversation that are looked at
MAX_TOPICS = 12  # drawn of them
MAX_EACH = 3  # messages of one topic
MAX_MESSAGE = 4_000  # characters of a message drawn here
LINE = 160  # characters of it before it is opened


class RedisStream(NamedTuple):
    """One Redis stream. `last` is its last entry's own time, None where the id tells none."""

    name: str
    last_id: str
    last: datetime | None
    entries_read: int


class OutgoingBusMessage(NamedTuple):
    """One message of a topic: its row, in one line, opened, and whether the relay has put it on Redis."""

    number: int
    line: str
    html: Markup
    is_sent: bool


class Topic(NamedTuple):
    """A topic whose messages name no conversation, with its newest. `recent_count`: its own of the newest 200."""

    name: str
    recent_count: int
    messages: Sequence[OutgoingBusMessage]


def streams(text: str = "") -> list[RedisStream]:
    """Return the streams that were read last, those whose name holds `text`."""
    positions = RedisPosition.objects.filter(stream__icontains=text) if text else RedisPosition.objects.all()
    rows = positions.order_by("-last_id", "stream").values_list("stream", "last_id", "entries_read")[:MAX_STREAMS]
    return [
        RedisStream(hidden_characters.spelled_out(name), last_id, entry_ids.moment(last_id), read)
        for name, last_id, read in rows
    ]


def topics() -> list[Topic]:
    """Return the topics of the newest 200 messages that name no conversation, the last used first."""
    by_topic: dict[str, list[OutgoingBusMessage]] = {}
    counts: dict[str, int] = {}
    posts = Post.objects.filter(conversation=None).order_by("-id")
    for number, topic, body, sent_at in posts.values_list("pk", "topic", "body", "sent_at")[:RECENT]:
        counts[topic] = counts.get(topic, 0) + 1
        shown = by_topic.setdefault(topic, [])
        if len(shown) < MAX_EACH and len(by_topic) <= MAX_TOPICS:
            shown.append(_message(number, body or "", sent_at is not None))
    return [
        Topic(hidden_characters.spelled_out(name), counts[name], shown)
        for name, shown in list(by_topic.items())[:MAX_TOPICS]
    ]


def _message(number: int, body: str, is_sent: bool) -> OutgoingBusMessage:
    line = hidden_characters.spelled_out(" ".join(body[:LINE].split())) + ("…" if len(body) > LINE else "")
    html = json_tree.draw(body) if len(body) <= MAX_MESSAGE else json_tree.draw_verbatim(body[:MAX_MESSAGE] + "…")
    return OutgoingBusMessage(number, line, html, is_sent)
