"""The log: `append`, the only function that stores events (law B), which actions call themselves; `WriterThreads`,
which call it for event loops; and every way to read."""

from conversations.core.write_transaction import asked_at, write_transaction
from conversations.events.log.append import append
from conversations.events.log.call_events import STEPS, TooManyBytes, call_ids, calls_of, ended_by
from conversations.events.log.fork_copy import ForkCopy
from conversations.events.log.import_staging import StagedBatch, discard_staged, is_needed, remove
from conversations.events.log.reads import (
    EventWindow,
    head,
    heads,
    keys_of,
    neighbours,
    newest_page,
    page_after,
    page_around,
    page_before,
    page_to_copy,
    past_page,
    preview_before,
    read_after,
    read_before,
    read_told,
    rows_and_heads,
)
from conversations.events.log.records import (
    CallEvents,
    NewEvent,
    Stored,
    from_bus,
    from_internal,
    from_people,
    spoken_text,
)
from conversations.events.log.writer_threads import WriterThreads
