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
Place = TypeVar("Place")


@dataclass(frozen=True, slots=True)
class ListExport(Generic[Filters, Place]):
    """A list that can leave as a file. `reader` makes of filters what reads the items behind a place, and where to go
    on; None at the end."""

    file: str  # its name
    verb: str  # of the audit entry
    columns: Sequence[str]
    reader: Callable[[Filters], Callable[[Place | None], tuple[Sequence[Mapping[str, Any]], Place | None]]]

    def stream(self, filters: Filters, form: Form, by: Principal) -> AsyncIterator[bytes]:
        """Return the file in pieces, as long as `by` may export."""
        check = partial(permissions.require, by, "export")
        return file_export.stream_pages(check, self.head(form), self.pieces(filters, form))

    def head(self, form: Form) -> bytes:
        """Return what stands before the first line."""
        return file_export.head(form, self.columns)

    def pieces(self, filters: Filters, form: Form) -> Callable[[Place | None], tuple[bytes, Place | None]]:
        """Return what reads the lines behind a place, and where to go on."""
        read = self.reader(filters)

        def piece(place: Place | None) -> tuple[bytes, Place | None]:
            items, after = read(place)
            return file_export.lines(items, form, self.columns), after

        return piece


def begin_export(by: Who, export: ListExport[Filters, Any], filters: Filters, form: Form) -> None:
    """Enter that somebody exports what matches; of the audit log this entry, too. Raises `NotAllowed`."""
    target = f"{export.file}.{form}"
    with audited_action(by, export.verb, target, right="export") as principal:
        chain.enter(principal, export.verb, target, correlation={"query": filters.query})
