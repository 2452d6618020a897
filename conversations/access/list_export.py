"""Lists as files: right and audit entry before the first line is sent, and the right again before each page."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from conversations.access import permissions
from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.principals import Principal
from conversations.listing import file_export
from conversations.listing.file_export import Form
from conversations.listing.url_filters import UrlFilters

Filters = TypeVar("Filters", bound=UrlFilters)
Position = TypeVar("Position")


@dataclass(frozen=True, slots=True)
class ListExport(Generic[Filters, Position]):
    """A list that can be exported as a file. For given filters, `reader` returns a function that reads the items after
    a position, and returns the next position, None at the end."""

    file: str  # its name
    verb: str  # of the audit entry
    columns: Sequence[str]
    reader: Callable[[Filters], Callable[[Position | None], tuple[Sequence[Mapping[str, Any]], Position | None]]]

    def stream(self, filters: Filters, form: Form, by: Principal) -> AsyncIterator[bytes]:
        """Return the file in pieces, as long as `by` may export."""
        check = partial(permissions.require, by, "export")
        return file_export.stream_pages(check, self.head(form), self.pieces(filters, form))

    def head(self, form: Form) -> bytes:
        """Return what comes before the first line."""
        return file_export.head(form, self.columns)

    def pieces(self, filters: Filters, form: Form) -> Callable[[Position | None], tuple[bytes, Position | None]]:
        """Return a function that returns the lines after a position, and the next position."""
        read = self.reader(filters)

        def piece(position: Position | None) -> tuple[bytes, Position | None]:
            items, after = read(position)
            return file_export.lines(items, form, self.columns), after

        return piece


def begin_export(by: Who, export: ListExport[Filters, Any], filters: Filters, form: Form) -> None:
    """Audit the export of everything that matches; in an export of the audit log this entry is included. Raises
    NotAllowed."""
    target = f"{export.file}.{form}"
    with audited_action(by, export.verb, target, right="export") as principal:
        chain.add_entry(principal, export.verb, target, correlation={"query": filters.query})
