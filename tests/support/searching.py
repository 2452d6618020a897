"""What tests of search share: events in, indexed at once, and a scan that needs neither our index nor our words."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from conversations import search
from conversations.core import principals
from conversations.events import log
from conversations.events.log.records import Stored
from conversations.search import index_writer
from conversations.search.indexer import Indexer
from tests.support.unchecked import unchecked

ROBOT = principals.token_principal("robot")


def say(key: str, *payloads: dict[str, Any] | str, chained_as: Mapping[str, str] | None = None) -> list[Stored]:
    """Append payloads to a conversation; a text is a message."""
    return log.append(
        [_event(key, payload)._replace(starts_no_run=True) for payload in payloads], chained_as=chained_as or {}
    )


def _event(key: str, payload: dict[str, Any] | str) -> log.NewEvent:
    if isinstance(payload, str):
        payload = {"type": "message", "sender": "agent:Triage", "recipient": "user", "content": payload}
    return unchecked(key, payload, ROBOT, topic=f"{'stream' if 'event' in payload else 'chat'}:{key}")


def catch_up() -> Indexer:
    """Index all that is recorded, in this thread."""
    index_writer.begin()
    indexer = Indexer()
    while indexer.step():
        pass
    assert search.lag().events == 0
    return indexer


def search_all(q: str = "", **more: Any) -> list[tuple[str, int]]:
    """Search; answer conversation and seq of all hits, newest first, over as many pages as it takes."""
    limit = more.pop("limit", 200)
    hits, before = [], ""
    while True:
        page = search.find(search.read(q, **more), before=before, limit=limit)
        hits += [(hit.event.conversation, hit.event.seq) for hit in page.hits]
        if page.cursor is None:
            return hits
        assert page.hits
        before = page.cursor


def plain(text: str) -> str:
    """Fold a text for the scan: compatibility forms, case, accents and vowel points away; everything else a space."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    events = []
    for payload in folded:
        if unicodedata.category(payload) in ("Mn", "Cf") and not _is_letter(payload):
            continue
        events.append(payload if payload.isalnum() or unicodedata.category(payload)[0] == "M" else " ")
    return unicodedata.normalize("NFC", "".join(events))


def _is_letter(mark: str) -> bool:
    """Tell the vowels of scripts that write them as marks from accents and points."""
    name = unicodedata.name(mark, "")
    return unicodedata.category(mark) == "Mn" and not name.startswith(("COMBINING", "ARABIC", "HEBREW"))


UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "THAI", "LAO", "KHMER", "MYANMAR")


def words_of(text: str) -> list[str]:
    """Cut a folded text at its spaces, and where a script without spaces between words meets another one."""
    return [
        "".join(run)
        for word in plain(text).split()
        for _, run in itertools.groupby(word, lambda letter: unicodedata.name(letter, "").startswith(UNSPACED))
    ]


def holds(text: str, term: Sequence[str], *, is_prefix: bool = False) -> bool:
    """Return whether these words stand in a text side by side; texts are words with a space before and behind each."""
    return f" {' '.join(term)}{'' if is_prefix else ' '}" in text
