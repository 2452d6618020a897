"""The log: the only writer of history (`append`), the thread behind it (`Writer`), and every way to read it."""

from conversations.log.append import append
from conversations.log.calls import STEPS, call_ids, calls_of, ended_by
from conversations.log.copying import Copied
from conversations.log.events import Call, NewEvent, Stored, of_ours, of_payload, words
from conversations.log.pages import (
    Page,
    head,
    heads,
    newest_page,
    page_after,
    page_around,
    page_before,
    preview_before,
    read_after,
    read_before,
    read_told,
)
from conversations.log.staging import Batch, discard_staged, remove
from conversations.log.writer import Writer
from conversations.log.writing import writing

__all__ = [
    "STEPS",
    "Batch",
    "Call",
    "Copied",
    "NewEvent",
    "Page",
    "Stored",
    "Writer",
    "append",
    "call_ids",
    "calls_of",
    "discard_staged",
    "ended_by",
    "head",
    "heads",
    "newest_page",
    "of_ours",
    "of_payload",
    "page_after",
    "page_around",
    "page_before",
    "preview_before",
    "read_after",
    "read_before",
    "read_told",
    "remove",
    "words",
    "writing",
]
