"""The schemas of annotations, for the OpenAPI document."""

from typing import Annotated as Typed
from typing import Literal

from pydantic import BaseModel, Field

from dashboard.api.schemas.core import Paged, Seq, Shape


class ToAnnotate(BaseModel):
    """A thumb, a note or both on event `about`. An empty thumb withdraws yours, null leaves it unchanged."""

    about: Typed[int, Field(ge=1, le=2**53, description="the event that it is about")]
    thumb: Literal["up", "down", ""] | None = None
    text: Typed[str, Field(max_length=2000, description="the note")] = ""
    client_id: Typed[str, Field(min_length=1, max_length=100, description="the same id returns the same annotation")]


class AnnotationStored(Shape):
    """The annotation was stored as event `seq`."""

    seq: Seq
    about: Seq
    url: str


class AnnotationShown(Shape):
    """A person's annotation of an event. `thumb` is up, down, withdrawn, or empty if it was not changed."""

    seq: Seq
    about: Seq
    by: str
    at: int
    thumb: str
    text: str


class Annotations(Paged[AnnotationShown]):
    """Annotations, newest first; `cursor` is the `before` of the next page, null at the end."""
