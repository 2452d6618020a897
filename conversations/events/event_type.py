"""What is known of one event type, declared in one place: by `@event_type(...)` on its schema, in `types/`.

Everybody reads it through `registry`, which knows all types; only the fold, once for every event, looks into `TYPES`.
What is drawn is named here as data (a template, words, a level of detail): the functions that draw are above this
package.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from pydantic.fields import FieldInfo

from conversations.core import principals
from conversations.core.json_values import Converter

if TYPE_CHECKING:
    from conversations.events.projections.row_changes import Fold
    from conversations.events.types.base import BaseEvent

Schema = TypeVar("Schema", bound="BaseEvent")
Level = Literal["chat", "steps", "all"]
Author = Literal["payload", "principal"]

ANYBODY: Collection[str] | None = None
OURS: Collection[str] = principals.OURS
PEOPLE: Collection[str] = principals.PEOPLE
PEOPLE_AND_IMPORTS: Collection[str] = (*principals.PEOPLE, "import")

Trait = Literal[
    "call_step",  # a step of a tool call: drawn in the call's block
    "opens_call",  # a step that a call may begin with
    "wakes_worker",  # a queued run may be claimed after it
    "tools_may_publish",  # a tool of a run may publish it, unchecked and not as the run's own event
    "copied",  # in a fork's copy it is folded as in the parent
    "speech",  # a message, an output or a posted response: its text is what a participant said
    "agent_input",  # speech that an agent may be run on, as a person may send it; never an output
    "names_handler",  # may name the agent that answers
    "holds_run",  # tells who holds a run from then on
    "no_progress",  # it does not count as progress of a running run
    "remembered",  # a fork's agents remember it
    # also drawn under the event `about`, from the row of `Annotation` that its fold makes; in text files only there
    "shown_under_event",
    "outlined",  # a line of the outline beside a transcript
    # work within a run: pages need not bring a conversation's state up to date after it; `static/js/state-events.js`
    # lists the same types, as `make check` sees to
    "leaves_state",
    "no_activity",  # the conversation keeps its place in the list that is sorted by last activity
    "unsigned",  # external agents may stream it without their name
]


class Row(NamedTuple):
    """How a page draws an event of the type.

    `template` of templates/events is given the row, `fields` (what the schema declares, as text that is safe to show)
    and `extra` (all other fields but those that every row shows). Where more than that is drawn, `view` names the
    function under `@view` that draws it, with the `glyph` and `words` that some views draw. Views are in
    the modules of `conversations/rendering/` that `event_renderer.ROWS` lists: a new module is added there.
    """

    template: str = ""
    view: str = ""
    glyph: str = ""
    words: str = ""


class Lane(NamedTuple):
    """How a lane's card shows an event: a verb, and the payload field that holds its text. No field: what was said."""

    verb: str = ""
    field: str = ""


class Search(NamedTuple):
    """Whether its texts are searched, whether it is found as an error, what a hit is called, what the search page's
    filter for this type is called (empty: it has none), and which fields alone are searched (none: those that say
    something)."""

    is_indexed: bool = True
    is_error: bool = False
    label: str = ""
    filter: str = ""
    fields: tuple[str, ...] = ()


SEARCHED = Search()


class RunEnd(NamedTuple):
    """That an event ends its run; of a bad end, why it withdraws open approval requests and why it ends open calls."""

    request_reason: str = ""
    call_reason: str = ""


@dataclass(frozen=True, slots=True)
class EventType:
    """One event type. `name` is the event's kind, or begins with a dot: what kinds of teams' own end with."""

    name: str
    schema: type[BaseEvent]
    row: Row
    fold: Fold | None = None
    authority: Collection[str] | None = ANYBODY  # kinds of principals whose events take effect; others' are claims
    author: Author = "payload"  # shown as its author: the payload's `sender` or `agent`, or always the principal
    level: Level = "all"  # the least detail at which it is seen
    state: str = ""  # the look of its row: running, waiting, failed …
    lane: Lane | None = None  # None: drawn as a kind that is not known
    search: Search = SEARCHED
    run_end: RunEnd | None = None
    closes_request: str = ""  # the state in which it leaves one that nobody decided
    alarm: str = ""  # the kind of alarm that it raises where it is ours
    alarm_cause: str = ""  # what such an alarm says; empty: what the event's reason says
    speaker: str = ""  # shown as its author where the payload names nobody
    done_verb: str = ""  # "user:ada paused it at …": told to whoever does the same too late
    traits: frozenset[Trait] = frozenset()
    strict_schema: Converter[msgspec.Struct] | None = None  # of payloads that we write; None: a team's own kind
    is_copied: bool = field(init=False)  # a fork's copy of it is folded
    is_activity: bool = field(init=False)  # it moves its conversation up in the list that is sorted by last activity

    def __post_init__(self) -> None:
        """Look up once what the fold asks for every event."""
        object.__setattr__(self, "is_copied", "copied" in self.traits)
        object.__setattr__(self, "is_activity", "no_activity" not in self.traits)

    def check(self, payload: Mapping[str, object]) -> None:
        """Raise ValueError unless a payload that we write fits the schema, with no other field."""
        try:
            if self.strict_schema is not None:
                self.strict_schema.convert(payload)
        except msgspec.ValidationError as error:
            raise ValueError(f"{self.name}: {error}") from None

    @property
    def fields(self) -> frozenset[str]:
        """Return the names of the payload's fields that the schema declares."""
        return frozenset(_fields_of(self.schema))

    def may_be_said_by(self, principal: str) -> bool:
        """Return whether this principal's events of the type have an effect; anybody else's are claims (law I)."""
        return self.authority is None or principal.partition(":")[0] in self.authority

    def author_of(self, principal: str, by: str) -> str:
        """Return who said an event of the type, where that is its principal, or the token that `by` names; empty where
        its text names the author, as that of a claim does."""
        is_principal = self.author == "principal" and self.may_be_said_by(principal)
        return principals.doer(principal, by) if is_principal else ""


TYPES: dict[str, EventType] = {}


def event_type(
    row: Row,
    *,
    name: str = "",
    fold: Fold | None = None,
    authority: Collection[str] | None = ANYBODY,
    author: Author = "payload",
    level: Level = "all",
    state: str = "",
    lane: Lane | None = None,
    search: Search = SEARCHED,
    run_end: RunEnd | None = None,
    closes_request: str = "",
    alarm: str = "",
    alarm_cause: str = "",
    speaker: str = "",
    done_verb: str = "",
    traits: Collection[Trait] = (),
) -> Callable[[type[Schema]], type[Schema]]:
    """Declare the event type of a schema, by the schema's own name where none is given. Raises ValueError when there is
    one already."""

    def declare(schema: type[Schema]) -> type[Schema]:
        kind = name or schema.kind()
        if kind in TYPES:
            raise ValueError(f"there are two event types {kind}")
        TYPES[kind] = EventType(
            kind, schema, row, fold, authority, author, level, state, lane, search, run_end, closes_request, alarm,
            alarm_cause, speaker, done_verb, frozenset(traits), None if name else _struct(schema),
        )  # fmt: skip
        return schema

    return declare


def _struct(schema: type[BaseEvent]) -> Converter[msgspec.Struct]:
    """Return the schema for msgspec, which takes a fifth of pydantic's time and looks into no JSON that may be any.
    Raises ValueError for a limit such as `Field(ge=1)`, which msgspec would not see."""
    for name, info in _fields_of(schema).items():
        if info.metadata:
            raise ValueError(f"{schema.__name__}.{name}: {info.metadata} is not checked; say the limit by Literal")
    fields = [(name, _shallow(info.annotation), *(() if info.is_required() else (None,)))
              for name, info in _fields_of(schema).items()]  # fmt: skip
    struct = msgspec.defstruct(
        schema.__name__,
        fields,
        kw_only=True, forbid_unknown_fields=True, gc=False,
    )  # fmt: skip
    return Converter(struct)


@cache
def _fields_of(schema: type[BaseEvent]) -> dict[str, FieldInfo]:
    """Return what a schema declares, by the names that a payload has."""
    return {info.alias or name: info for name, info in schema.model_fields.items()}


def _shallow(annotation: Any) -> Any:  # of any type
    """Return an annotation without what an object or a list of any JSON holds."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return Union[tuple(_shallow(part) for part in parts)]  # noqa: UP007 - of a tuple
    return origin if origin is dict or (origin is list and parts[0] is not str) else annotation
