"""Files of other programs, imported: what the record has of them, to hold against a count of the file by itself."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings

from conversations.core import principals
from conversations.import_export.detect_format import recordings
from conversations.import_export.dry_run import DryRun
from conversations.import_export.import_file import import_recordings
from conversations.import_export.import_report import ImportReport
from conversations.import_export.staged_import import StagedImport
from conversations.models import Conversation, Event, Participant, ToolCall, Turn

FRAMEWORKS = (
    Path(__file__).resolve().parents[1] / "samples" / "frameworks"
)  # recorded by us, from the programs themselves
THEIRS = Path(settings.SAMPLES_DIR)
PRINCIPAL = principals.import_principal("test")


class Counts(NamedTuple):
    """What a conversation shows, or what a file says that it should."""

    messages: int = 0
    calls: int = 0
    errors: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


def bring(path: Path, *, is_update: bool = False, is_strict: bool = True) -> list[str]:
    """Import a file and answer what was reported of it. Before, a dry run has to say the same as the import then."""
    dry = [] if is_update else _import(path, DryRun(), [], is_strict=is_strict)
    problems: list[str] = []
    items = _import(path, StagedImport(PRINCIPAL), problems, is_strict=is_strict, is_update=is_update)
    assert is_update or dry == items
    return problems


def _import(path: Path, receiver: Any, problems: list[str], *, is_strict: bool, is_update: bool = False) -> Any:
    report = ImportReport(problems.append, is_strict=is_strict)
    return import_recordings(recordings(path, report), receiver, report, is_update=is_update, progress=lambda *_: None)


def stored() -> dict[str, Counts]:
    """Count each conversation of the record."""
    return {row.key: _counts(row) for row in Conversation.objects.visible()}


def _counts(row: Conversation) -> Counts:
    turns = Turn.objects.filter(conversation=row)
    spent = (sum(turns.values_list(name, flat=True)) for name in ("input_tokens", "output_tokens"))
    return Counts(row.messages, row.tool_calls, row.errors, *spent)


def total() -> Counts:
    """Count the whole record."""
    return Counts(*(sum(numbers) for numbers in zip(*stored().values(), strict=True)))


def agents(key: str) -> set[str]:
    """Return the agents of a conversation."""
    names = Participant.objects.filter(conversation__key=key, kind="agent").values_list("name", flat=True)
    return {name.removeprefix("agent:") for name in names}


def calls(key: str) -> list[tuple[str, str]]:
    """Return the calls of a conversation, with how they ended."""
    return list(ToolCall.objects.filter(conversation__key=key).order_by("called_seq").values_list("name", "status"))


def record() -> dict[str, tuple[Counts, set[str], list[str]]]:
    """Return what is told in each conversation: its counts, its agents and the ids of its events."""
    ids: dict[str, list[str]] = {}
    for key, event_id in Event.objects.values_list("conversation__key", "event_id"):
        ids.setdefault(key, []).append(event_id or "")
    return {key: (counts, agents(key), sorted(ids[key])) for key, counts in stored().items()}


def forget() -> None:
    """Empty the record."""
    for model in (Event, ToolCall, Turn, Participant, Conversation):
        model.objects.all().delete()


def is_the_same_record(path: Path, *others: Path) -> None:
    """Import a file twice, then from nothing after each of these other forms of it (a half of it, another order)."""
    bring(path)
    whole = record()
    bring(path, is_update=True)
    assert record() == whole
    for other in others:
        forget()
        bring(other)
        bring(path, is_update=True)
        assert (other.name, record()) == (other.name, whole)
    forget()


def unpacked(name: str, folder: Path) -> Path:
    """Unpack one of our recorded samples."""
    path = folder / name.removesuffix(".gz")
    path.write_bytes(gzip.decompress((FRAMEWORKS / name).read_bytes()))
    return path


def written(path: Path, value: Any) -> Path:
    """Write a JSON document."""
    path.write_text(json.dumps(value))
    return path


def in_lines(path: Path, values: list[Any]) -> Path:
    """Write a JSON value on each line; texts as they are."""
    path.write_text("".join((value if isinstance(value, str) else json.dumps(value)) + "\n" for value in values))
    return path


def document(path: Path) -> Any:
    """Read a JSON document, packed or not."""
    text = path.read_bytes()
    return json.loads(gzip.decompress(text) if path.suffix == ".gz" else text)
