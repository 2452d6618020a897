"""A conversation as text to keep or to send: Markdown, or plain. Messages and actions, event by event, without a page.

Messages are quoted (Markdown) or indented (plain), so that nothing in them can pass for another event.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

import msgspec

from conversations.core import hidden_characters
from conversations.core.json_values import text_of
from conversations.core.plain_text import counted
from conversations.events import registry
from conversations.events.log.annotation_reads import RecordedAnnotation
from conversations.events.log.records import Stored
from conversations.rendering import event_rows, lane_cards, lane_words, timestamps
from conversations.rendering.event_renderer import RepeatWatch
from conversations.rendering.event_rows import ParsedEvent
from conversations.rendering.participant_marks import mark_for

Form = Literal["markdown", "text"]
LEVELS = ("chat", "steps")  # of detail; the rest is in the record alone
ANNOTATIONS = registry.names_with("shown_under_event")
SPOKEN = registry.names_with("speech")
_MARKS = re.compile(r"([\\`*_\[\]<>#|~])")
_BACKTICKS = re.compile(r"`+")
_THUMBS = {"up": "thumbs up", "down": "thumbs down", "": ""}
_ENDED = {"error": "failed", "timeout": "timed out"}


NotesOf = Callable[[int], Iterable[RecordedAnnotation]]  # of an event, by its seq


class TextEntry(NamedTuple):
    """An event in words: when, sender and recipient, what they did, the text, what is code, and that it is
    redacted."""

    day: str
    clock: str
    seq: int
    sender: str
    recipient: str
    did: str
    words: str
    code: str
    mark: str


def pieces(
    title: str, key: str, head: int, events: Iterable[Stored], form: Form, notes: NotesOf = lambda seq: ()
) -> Iterator[str]:
    """Yield the text: a heading, then each event in order with its annotations (`notes`)."""
    style = _MARKDOWN if form == "markdown" else _PLAIN
    yield style.heading(_line(title), f"{_line(key)}, {counted(head, 'event')}. Times are UTC.")
    day, repeats = "", RepeatWatch()
    waiting: dict[str, str] = {}  # the tools of calls that wait for approval, by request
    for event in events:
        entry = _entry(event, repeats, waiting)
        if entry is None:
            yield from _notes(style, notes(event.seq), f"on event {event.seq}")
            continue
        if entry.day != day:
            day = entry.day
            yield style.day(day)
        yield style.entry(entry)
        yield from _notes(style, notes(event.seq))


def plain(event: Stored, repeats: RepeatWatch) -> str | None:
    """Return the next event as plain text, its clock with its zone, as it has no heading; None for one without text of
    its own, or only at the full level of detail."""
    entry = _entry(event, repeats, {})
    return None if entry is None else _PLAIN.entry(entry._replace(clock=f"{entry.clock} UTC"))


def _entry(event: Stored, repeats: RepeatWatch, waiting: dict[str, str]) -> TextEntry | None:
    """Return the next event as an entry; None for one without text of its own, or only at the full level of detail."""
    read, is_repeat = event_rows.parse_event(event), bool(repeats.of(event))
    if event_rows.level_of(event.kind) not in LEVELS:
        return None
    if event.kind in ANNOTATIONS and (known := registry.declared(event.kind)) and known.may_be_said_by(event.principal):
        return None  # it stands under its event
    if is_repeat:
        return None
    sender, recipient = lane_cards.ends(event, None)
    when = timestamps.of_event(event.at, event.principal, read.body).shown
    did, words, code = _words_of(read, waiting)
    to = "everyone" if event_rows.is_to_all(read) else recipient.title if recipient else ""
    mark = " · redacted" if event_rows.is_redacted(read) else ""
    return TextEntry(when.iso[:10], when.clock, event.seq, sender.title, to, did, words, code, mark)


def _notes(style: "_Style", notes: Iterable[RecordedAnnotation], place: str = "") -> Iterator[str]:
    """Yield the annotations of an event; with its `place` if the event itself is not shown."""
    for note in notes:
        when = timestamps.of_event(note.at, "", {}).shown
        about = " ".join(filter(None, [_THUMBS[note.thumb], place]))
        about = " · ".join(filter(None, [about, f"{when.iso[:10]} {when.clock}", str(note.seq)]))
        yield style.note(_line(mark_for(note.author, note.author).title), about, note.text)


def _words_of(read: ParsedEvent, waiting: dict[str, str]) -> tuple[str, str, str]:
    kind = read.event.kind
    if kind in SPOKEN:
        return "", read.payload.words, ""
    if kind == "tool_step":
        return _step(read)
    if kind == "approval.requested" and not lane_words.is_for_budget(read):
        name = waiting[str(read.body.get("approval_id"))] = _line(read.payload.name or "unnamed tool")
        return f"requested approval for {name}", "", read.payload.args_raw or _json(read.payload.args)
    event_type = registry.find(kind)
    lane = event_type.lane if event_type else None
    if lane is None:
        return _line(kind), "", ""
    did = _line(lane_words.verb(read, lane))
    if kind == "approval.decided" and (name := waiting.pop(str(read.body.get("approval_id")), "")):
        did = f"{did} {name}" if read.body.get("decision") in ("approve", "reject") else f"{did}: {name}"
    return did, lane_words.text(read, lane), text_of(read.body.get("args_raw")) or ""


def _step(read: ParsedEvent) -> tuple[str, str, str]:
    """Return a step of a tool call: its arguments, or its result."""
    step = read.payload
    name = _line(step.name or "unnamed tool")
    came = step.error if step.error is not None else step.output if step.output is not None else step.result_summary
    if step.status == "start" or (step.status is None and came is None):
        return f"called {name}", "", step.args_raw or _json(step.args)
    took = timestamps.duration(step.duration_ms)
    word = _ENDED.get(step.status or "", "failed" if step.error is not None else "returned")
    return f"{name} {word}{f' after {took}' if took else ''}", "", _json(came)


def _json(raw: msgspec.Raw | None) -> str:
    """Return a JSON value for reading; a text as it is."""
    if raw is None:
        return ""
    text = bytes(raw).decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _line(text: str) -> str:
    return " ".join(hidden_characters.spelled_out(text[:400]).split())


class _Style(NamedTuple):
    """How the parts are written."""

    heading: Callable[[str, str], str]
    day: Callable[[str], str]
    entry: Callable[[TextEntry], str]
    note: Callable[[str, str, str], str]


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)


def _markdown_entry(entry: TextEntry) -> str:
    who = f"**{_escaped(_line(entry.sender))}**"
    if entry.recipient:
        who += f" to **{_escaped(_line(entry.recipient))}**"
    did = f" {_escaped(entry.did)}" if entry.did else ""
    parts = [f"{who}{did} · {entry.clock} · {entry.seq}{entry.mark}"]
    if entry.words:
        parts.append(_prefixed("> ", hidden_characters.spelled_out(entry.words)))
    if entry.code:
        parts.append(_fenced(entry.code))
    return "\n\n".join(parts) + "\n\n"


def _fenced(code: str) -> str:
    """Put text in a fence that is longer than any within it."""
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(code)), default=0))
    return f"{fence}\n{hidden_characters.spelled_out(code)}\n{fence}"


def _plain_entry(entry: TextEntry) -> str:
    who = _line(entry.sender) + (f" to {_line(entry.recipient)}" if entry.recipient else "")
    first = f"[{entry.seq}] {entry.clock} {who}{f' {entry.did}' if entry.did else ''}{entry.mark}"
    texts = [_prefixed("    ", hidden_characters.spelled_out(text)) for text in (entry.words, entry.code) if text]
    return "\n".join([first, *texts]) + "\n\n"


def _markdown_note(author: str, thumb: str, text: str) -> str:
    head = f"- **{_escaped(author)}** · {thumb}"
    quoted = f"\n\n{_prefixed('  > ', hidden_characters.spelled_out(text))}" if text else ""
    return f"{head}{quoted}\n\n"


def _plain_note(author: str, thumb: str, text: str) -> str:
    head = f"    Note by {author}: {thumb}"
    return "\n".join([head, *([_prefixed("        ", hidden_characters.spelled_out(text))] if text else [])]) + "\n\n"


def _prefixed(mark: str, text: str) -> str:
    return "\n".join(f"{mark}{line}".rstrip() for line in text.strip("\n").splitlines())


_MARKDOWN = _Style(
    heading=lambda title, about: f"# {_escaped(title)}\n\n{_escaped(about)}\n\n",
    day=lambda day: f"## {day}\n\n",
    entry=_markdown_entry,
    note=_markdown_note,
)
_PLAIN = _Style(
    heading=lambda title, about: f"{title}\n{about}\n\n",
    day=lambda day: f"{day}\n\n",
    entry=_plain_entry,
    note=_plain_note,
)
