"""Export a conversation as a file: Markdown, plain text, JSON lines with hashes, or a trace. For the API and
`export`."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, get_args

from conversations.core.errors import NotFound
from conversations.events import log
from conversations.events.log import Stored, annotation_reads, timeline_reads
from conversations.events.log.annotation_reads import RecordedAnnotation
from conversations.import_export.export import export
from conversations.models import Conversation

FileFormat = Literal["jsonl", "markdown", "text", "trace"]
FORMATS: tuple[FileFormat, ...] = get_args(FileFormat)
Notes = dict[int, list[RecordedAnnotation]]  # by the events that they are about
Progress = Callable[[int, int], None]
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


class FileKind(NamedTuple):
    """A format's content type and file name suffix."""

    media_type: str
    ending: str


KINDS: dict[FileFormat, FileKind] = {
    "jsonl": FileKind("application/x-ndjson", "jsonl"),
    "markdown": FileKind("text/markdown; charset=utf-8", "md"),
    "text": FileKind("text/plain; charset=utf-8", "txt"),
    "trace": FileKind("application/json", "trace.json"),
}


def pieces(key: str, form: FileFormat, *, progress: Progress = lambda done, of: None) -> Iterator[bytes]:
    """Yield the file in pieces, up to the event that is the newest now. Raises NotFound before the first piece."""
    if form == "jsonl":
        yield from export(key, progress=progress)
        return
    conversation = Conversation.objects.visible().filter(key=key).first()
    if conversation is None:
        raise NotFound(f"there is no conversation {key!r}")
    if form == "trace":
        yield _trace(conversation)
        return
    from conversations.rendering import transcript_text  # here: JSON lines need no templates, nor a command that starts

    title = conversation.title or key
    notes: Notes = {}
    events = _events(conversation, progress, notes)
    drawn = transcript_text.pieces(title, key, conversation.head_seq, events, form, lambda seq: notes.get(seq, ()))
    for piece in drawn:
        yield piece.encode("utf-8", "replace")


def name_of(key: str, form: FileFormat) -> str:
    """Return a file name made of characters that every system and header accepts."""
    return f"{_UNFIT.sub('-', key)[:80].strip('-.') or 'conversation'}.{KINDS[form].ending}"


def _events(conversation: Conversation, progress: Progress, notes: Notes) -> Iterator[Stored]:
    """Read the events without tokens, page by page; `notes` holds the annotations of the current page."""
    seq = 0
    while page := log.read_told(conversation.key, seq):
        notes.clear()
        notes.update(annotation_reads.of_events(conversation.pk, [e.seq for e in page], conversation.head_seq))
        for event in page:
            if event.seq > conversation.head_seq:
                return
            yield event
        seq = page[-1].seq
        progress(seq, conversation.head_seq)


def _trace(conversation: Conversation) -> bytes:
    from conversations.rendering import chrome_trace, conversation_timeline

    read = timeline_reads.read(conversation.pk, conversation.key, conversation.head_seq)
    layout = conversation_timeline.layout(read)
    trace = chrome_trace.trace(conversation.title or conversation.key, conversation.key, read, layout)
    return json.dumps(trace, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
