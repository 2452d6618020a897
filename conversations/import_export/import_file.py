"""Import a file: its recordings become conversations, all of them or none."""

from collections.abc import Callable, Iterable

from conversations.core.bounded_groups import bounded_groups
from conversations.core.errors import Invalid
from conversations.events.payload import clean_text
from conversations.import_export.import_lines import ImportedConversation, LineReceiver, end, lines_of
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import Recording

CHUNK = 200  # lines handed over at a time
CHUNK_BYTES = 1 << 20

Progress = Callable[[int, int], None]  # conversations and events so far


def import_recordings(
    recordings: Iterable[Recording],
    receiver: LineReceiver,
    report: ImportReport,
    *,
    key: str = "",
    is_update: bool = False,
    progress: Progress,
) -> list[ImportedConversation]:
    """Pass every recording to `receiver`; return what they have become. With `key` the first gets that id, the next
    `key-2`, `key-3` and so on. An update adds what is new to imported conversations.

    Raises ImportRefused at the first bad line if strict, Conflict if a conversation exists, Invalid for a file without
    any event. After any error nothing of the file appears.
    """
    try:
        count = events = 0
        for recording in recordings:
            name = key_of(recording, key, count + 1)
            line_count = 0
            lines = lines_of(recording, name, report, is_update=is_update)
            for chunk in bounded_groups(lines, len, most_items=CHUNK, most_bytes=CHUNK_BYTES):
                receiver.receive(chunk)
                line_count += len(chunk)
                progress(count + 1, events + line_count - 1)
            count, events = count + bool(line_count), events + max(0, line_count - 1)
        if not count:
            raise Invalid("this file contains no events")
        receiver.receive([end(count)])
        return receiver.finish()
    except BaseException:
        receiver.discard()
        raise


def key_of(recording: Recording, key: str, number: int) -> str:
    """Return the id of the `number`-th conversation of a file."""
    name = recording.name if not key else key if number == 1 else f"{key}-{number}"
    return clean_text(name)
