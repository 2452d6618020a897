"""What goes over the bus: Redis streams and how far they are read, and posts on topics without a conversation."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from markupsafe import Markup

from conversations.fragments import hidden, jsontree
from conversations.models import Post, RedisPosition

MOST_STREAMS = 20  # drawn; the rest is found by name
RECENT = 200  # posts without a conversation that are looked at
MOST_TOPICS = 12  # drawn of them
MOST_EACH = 3  # messages of one topic
LONGEST = 4_000  # characters of a message drawn here
LINE = 160  # characters of it before it is opened


class Stream(NamedTuple):
    """One Redis stream. `last` is its last entry's own time, None where the id tells none."""

    name: str
    last_id: str
    last: datetime | None
    entries_read: int


class Message(NamedTuple):
    """One message of a topic: its row, in one line, opened, and whether the relay has put it on Redis."""

    number: int
    line: str
    html: Markup
    is_sent: bool


class Topic(NamedTuple):
    """A topic whose messages name no conversation, with its newest. `seen`: how many of the newest 200 are its own."""

    name: str
    seen: int
    messages: Sequence[Message]


def streams(words: str = "") -> list[Stream]:
    """Answer the streams that were read last, those whose name holds `words`."""
    found = RedisPosition.objects.filter(stream__icontains=words) if words else RedisPosition.objects.all()
    rows = found.order_by("-last_id", "stream").values_list("stream", "last_id", "entries_read")[:MOST_STREAMS]
    return [Stream(hidden.spell(name), last_id, _moment(last_id), read) for name, last_id, read in rows]


def topics() -> list[Topic]:
    """Answer the topics of the newest 200 messages that name no conversation, the last used first."""
    by_topic: dict[str, list[Message]] = {}
    counts: dict[str, int] = {}
    posts = Post.objects.filter(conversation=None).order_by("-id")
    for number, topic, body, sent_at in posts.values_list("pk", "topic", "body", "sent_at")[:RECENT]:
        counts[topic] = counts.get(topic, 0) + 1
        shown = by_topic.setdefault(topic, [])
        if len(shown) < MOST_EACH and len(by_topic) <= MOST_TOPICS:
            shown.append(_message(number, body or "", sent_at is not None))
    return [Topic(hidden.spell(name), counts[name], shown) for name, shown in list(by_topic.items())[:MOST_TOPICS]]


def _message(number: int, body: str, is_sent: bool) -> Message:
    line = hidden.spell(" ".join(body[:LINE].split())) + ("…" if len(body) > LINE else "")
    html = jsontree.draw(body) if len(body) <= LONGEST else jsontree.draw_verbatim(body[:LONGEST] + "…")
    return Message(number, line, html, is_sent)


def _moment(last_id: str) -> datetime | None:
    milliseconds = last_id.partition("-")[0]
    if not (milliseconds.isascii() and milliseconds.isdecimal()) or not 0 < int(milliseconds) < 253_402_300_800_000:
        return None
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
