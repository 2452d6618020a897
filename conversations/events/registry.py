"""All event types: the one table that others are derived from. A type is declared in `types/`, with its schema.

`types/__init__` names the modules that declare some; importing this one loads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from conversations.events.event_type import TYPES, EventType, Trait
from conversations.events.types.base import BaseEvent

# Families of kinds are reserved as a whole: a later release may fold more of them. With words, one is a filter of the
# search page.
FAMILIES = {
    "approval": "Approvals",
    "run": "Runs",
    "conversation": "Titles and control",
    "operator": "",
    "event": "",
}


def declared(kind: str) -> EventType | None:
    """Return the type of this name; None for a kind that is not ours."""
    return TYPES.get(kind)


def find(kind: str) -> EventType | None:
    """Return the type of a kind, which may be of a team's own with an ending that is known, such as `.stage`."""
    return TYPES.get(kind) or (TYPES.get(kind[kind.rindex(".") :]) if "." in kind else None)


def types() -> tuple[EventType, ...]:
    """Return every type, in the order of the declarations, those of teams' own kinds (`.stage`) included."""
    return tuple(TYPES.values())


def names() -> list[str]:
    """Return every name, in the order of the declarations."""
    return [name for name in TYPES if not name.startswith(".")]


def names_with(*traits: Trait) -> tuple[str, ...]:
    """Return the names of the types with any of these traits."""
    return tuple(name for name in names() if TYPES[name].traits.intersection(traits))


def run_ends() -> tuple[str, ...]:
    """Return the names of the types that end a run."""
    return tuple(name for name in names() if TYPES[name].run_end is not None)


def bad_run_ends() -> tuple[str, ...]:
    """Return the names of the types that end a run badly: its open calls end, too."""
    return tuple(name for name in run_ends() if (end := TYPES[name].run_end) is not None and end.call_reason)


def schemas() -> tuple[type[BaseEvent], ...]:
    """Return the schema of every named type."""
    return tuple(TYPES[name].schema for name in names())


def search_filters() -> dict[str, str]:
    """Return what the search page can be narrowed to: types and families, and what each is called there."""
    types = {name: TYPES[name].search.filter for name in names()}
    return {name: words for name, words in (types | FAMILIES).items() if words}


def check(kind: str, payload: Mapping[str, object]) -> None:
    """Raise ValueError unless a payload that we write fits the schema of its type, with no other field. A kind that is
    not ours has none."""
    if (known := TYPES.get(kind)) is not None:
        known.check(payload)


def is_reserved(kind: str) -> bool:
    """Return whether a kind is ours or of a family of ours, such as `run.*`."""
    family, dot, _ = kind.partition(".")
    if family in FAMILIES or (not dot and kind in TYPES):
        return True
    return any(name.startswith(f"{family}.") for name in TYPES)


if TYPE_CHECKING:
    Known = BaseEvent
else:  # one tagged union, for the OpenAPI document
    Known = Annotated[Union[schemas()], Field(discriminator="event")]  # noqa: UP007 - of a tuple
