"""Annotations: the line of an annotation event, and what is shown below the event it is about.

Called by `event_renderer`, and by pages with what `annotation_reads` returned. The line contains what is shown below
the event, so a live page inserts it there by itself (`static/js/annotations.js`).
"""

from collections.abc import Iterable
from typing import NamedTuple

from markupsafe import Markup

from conversations.core import hidden_characters, principals
from conversations.events.log.annotation_reads import LETTERS, RecordedAnnotation
from conversations.rendering import event_rows, message_body, richtext
from conversations.rendering.event_rows import ParsedEvent, Repeat, view
from conversations.rendering.jinja_environment import macro
from conversations.rendering.participant_marks import mark_for

_FIELDS = message_body.ENVELOPE | frozenset({"about", "thumb", "text", "speaker", "by"})
_THUMBS = {"up": "up", "down": "down", "": "withdrawn"}


class Note(NamedTuple):
    """One annotation, ready to draw. `author` is escaped for an attribute; equal authors are one person."""

    seq: int
    about: int
    author: str
    name: Markup
    thumb: str
    text: Markup | None


@view
def annotated(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw who annotated which event. A claim from outside says that it is one, and is shown below no event."""
    note = _read(read)
    fields = event_rows.row(read, sender=note.author, principal=note.author)
    fields = fields._replace(is_claim=event_rows.is_claim(read))
    return event_rows.render("annotation", fields, note, message_body.more(read.body, _FIELDS))


def item_of(read: ParsedEvent) -> Markup | None:
    """Draw the part of an annotation that is shown below its event; None for a claim."""
    note = _read(read)
    if not note.about or event_rows.is_claim(read):
        return None
    return macro("macros/annotation.html", "item")(note, True)


def under(annotations: Iterable[RecordedAnnotation]) -> Markup:
    """Draw all annotations below an event."""
    return macro("macros/annotation.html", "under")([_note(annotation) for annotation in annotations])


def _read(read: ParsedEvent) -> Note:
    event, body = read.event, read.body
    about, thumb, text = body.get("about"), body.get("thumb"), body.get("text")
    return _note(
        RecordedAnnotation(
            event.seq,
            about if type(about) is int and 0 < about < event.seq else 0,
            principals.doer(event.principal, event_rows.line(body.get("by"))),
            _THUMBS.get(thumb, "") if isinstance(thumb, str) else "",
            event.at,
            text[:LETTERS] if isinstance(text, str) else "",
        )
    )


def _note(annotation: RecordedAnnotation) -> Note:
    author = annotation.author
    text = richtext.inline(annotation.text) if annotation.text else None
    name = event_rows.named(mark_for(author, author))
    key = hidden_characters.spelled_out(author)
    return Note(annotation.seq, annotation.about, key, name, annotation.thumb, text)
