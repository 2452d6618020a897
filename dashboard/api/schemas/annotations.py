"""What requests about annotations take and answer, as the OpenAPI document says it."""

from typing import Annotated as Typed
from typing import Literal

from pydantic import BaseModel, Field

from dashboard.api.schemas.core import Paged, Seq, Shape


class ToAnnotate(BaseModel):
    """A thumb, a note or both about event `about`. An empty thumb withdraws yours, null leaves it as it is."""

    about: Typed[int, Field(ge=1, le=2**53, description="the event that it is about")]
    thumb: Literal["up", "down", ""] | None = None
    text: Typed[str, Field(max_length=2000, description="the note")] = ""
    client_id: Typed[str, Field(min_length=1, max_length=100, description="the same id returns the same annotation")]


class AnnotationStored(Shape):
    """It is stored as event `seq`."""

    seq: Seq
    about: Seq
    url: str


class AnnotationShown(Shape):
    """What a person said about an event. `thumb` is up, down, withdrawn, or empty where it was left as it was."""

    seq: Seq
    about: Seq
    by: str
    at: int
    thumb: str
    text: str


class Annotations(Paged[AnnotationShown]):
    """Annotations, newest first; `cursor` is the `before` of the next page, null at the end."""
