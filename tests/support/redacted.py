"""Words taken out of the record, as the format has it: a tombstone, and the event that names it."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from conversations.core.principals import user_principal
from conversations.events import log
from conversations.events.log import hash_chain
from conversations.models import Conversation, Event


def redact(key, seq, *, body="{}", by="user:ida", named=None):
    """Put `body` in place of an event's; `named`: what the event of it names instead of that."""
    rows = Event.objects.filter(conversation__key=key, seq=seq)
    rows.update(body=body, salt=None, erased_by=by)
    digest = hash_chain.tombstone_digest(seq, by, body if named is None else named)
    payload = {"event": "event.redacted", "events": [{"seq": seq, "digest": digest}], "reason": "asked for", "by": by}
    log.append([log.from_internal(key, payload, user_principal(by.partition(":")[2]))])


def to_format_1(key, upto):
    """Chain the first events of a conversation again as releases before format 2 did, those after them as releases
    before format 3 did, which had its id in the chain."""
    Conversation.objects.filter(key=key).update(key_salt=None, key_digest="")
    conversation = Conversation.objects.get(key=key)
    prev = hash_chain.seed(key)
    for e in Event.objects.filter(conversation=conversation).order_by("seq"):
        if e.seq <= upto:
            prev = hash_chain.link_v1(prev, key, e.seq, e.kind, e.at, e.principal, e.event_id, e.digest)
        else:
            columns = (e.seq, e.kind, e.at, e.principal, e.run, e.turn, e.event_id, e.digest, e.erased_by)
            prev = hash_chain.link(prev, key, *columns)
        Event.objects.filter(pk=e.pk).update(hash=prev)
    Conversation.objects.filter(pk=conversation.pk).update(head_hash=prev)


def stored_files(data_dir: Path) -> Iterator[bytes]:
    """Yield the bytes of every file of a data directory. A server at work replaces small ones each second, so a draft
    that was listed may have its place taken by now."""
    for path in data_dir.rglob("*"):
        if path.is_file():
            with suppress(FileNotFoundError):
                yield path.read_bytes()
