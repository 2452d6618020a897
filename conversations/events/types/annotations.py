"""What people say about events: a thumb, a note (§3.1)."""

from typing import Literal

from conversations.events.event_type import PEOPLE, Lane, Row, Search, event_type
from conversations.events.projections import event_annotations
from conversations.events.types.base import BaseEvent


@event_type(
    Row(view="annotated"), fold=event_annotations.annotated, authority=PEOPLE, author="principal",
    level="steps", lane=Lane("noted", "text"),
    search=Search(label="note", filter="Notes and thumbs", fields=("text", "speaker")),
    traits={"copied", "outlined", "shown_under_event"},
)  # fmt: skip
class EventAnnotated(BaseEvent):
    """A person's thumb or note on event `about`, which `speaker` said or did. A thumb replaces theirs, an empty one
    withdraws it; without one it stays. Notes add up. `by` did it."""

    event: Literal["event.annotated"] = "event.annotated"
    about: int
    thumb: Literal["up", "down", ""] | None = None
    text: str = ""
    speaker: str = ""
    by: str = ""
