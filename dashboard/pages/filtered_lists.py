"""Lists with filters in the address: their pages, the filters in force, and the export of everything that matches."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from django.http import HttpRequest, StreamingHttpResponse
from django.urls import reverse
from markupsafe import Markup

from conversations.access import permissions
from conversations.access.list_export import ListExport, begin_export
from conversations.core import hidden_characters
from conversations.core.errors import Invalid, NotFound
from conversations.listing.file_export import TYPES, Form
from conversations.listing.page import FAR, WALK, ListPage
from conversations.listing.url_filters import FIELDS, TIME_SPANS, UrlFilters, to_iso
from conversations.rendering import richtext

PAGE = 50  # rows
Chip = tuple[str, Markup, str]

Filters = TypeVar("Filters", bound=UrlFilters)
Row = TypeVar("Row")
Position = TypeVar("Position")


@dataclass(frozen=True, slots=True)
class FilteredList(Generic[Filters, Row, Position]):
    """One such list. Lengths in characters."""

    route: str
    filters: type[Filters]
    newest: Callable[..., ListPage[Row, Position]]
    position_of: Callable[[str], Position | None]
    names: Mapping[str, str]  # of filters, for reading
    as_typed: Sequence[str]  # names in the address that are shown as they were typed
    max_typed: int
    max_value: int  # of a value that is offered
    parts: Mapping[str, str] = field(default_factory=dict)  # filters → those that only say more about them

    def page(
        self, request: HttpRequest, filters: Filters, wrong: dict[str, str], position: Position | None = None
    ) -> ListPage[Row, Position]:
        """Return the rows after a position, by default the one in the address; no rows if a filter or the cursor is
        invalid."""
        try:
            filters, cursor = filters.of_page(request.GET.get("before", ""))
            position = position or self.position_of(cursor)
        except Invalid as error:
            wrong["before"] = error.message
        walk = FAR if request.GET.get("look") == "far" else WALK
        if wrong:
            return ListPage([])
        return replace(self.newest(filters, before=position, limit=PAGE, walk=walk), begins=filters.since)

    def page_context(self, filters: Filters, wrong: Mapping[str, str], page: ListPage[Row, Position]) -> dict[str, Any]:
        """Return the template context of the rows."""
        return {
            "filters": filters,
            "wrong": _spelled_out(wrong),
            "chips": self._chips(filters),
            "newest_href": self.href(filters),
            "older_href": self.href(filters, filters.cursor(page.after, page.begins)) if page.after else "",
            "looked_at": page.looked_at,
            "names": self.names,
        }

    def facets_context(self, request: HttpRequest, filters: Filters, wrong: Mapping[str, str]) -> dict[str, Any]:
        """Return the template context of the filter form."""
        times = (("from", filters.since), ("to", filters.until))
        return {
            "entered": {name: request.GET.get(name, "")[: self.max_typed] for name in self.as_typed},
            "filters": filters,
            "wrong": _spelled_out(wrong),
            "names": self.names,
            "last": TIME_SPANS,
            "inline": lambda value: richtext.inline(value[: self.max_value]),
            "spell": hidden_characters.spelled_out,
            "is_clean": hidden_characters.is_clean,
            "moments": {name: to_iso(at) for name, at in times if at is not None},
        }

    def href(self, filters: Filters, after: object = None) -> str:
        """Return the address of a page."""
        query = "&".join(filter(None, (filters.query, f"before={after}" if after else "")))
        return reverse(self.route) + (f"?{query}" if query else "")

    def send_file(
        self, request: HttpRequest, export: ListExport[Filters, Position], form: str
    ) -> StreamingHttpResponse:
        """Stream every matching row, for GET only. Raises NotFound for a form other than csv and jsonl."""
        if form not in TYPES:
            raise NotFound("The format must be csv or jsonl.")
        kind: Form = "csv" if form == "csv" else "jsonl"
        filters = self.filters.parse_strict(dict(request.GET.lists())).fixed()
        begin_export(request.user, export, filters, kind)
        by = permissions.principal_of(request.user)
        is_head = request.method == "HEAD"
        pieces: AsyncIterator[bytes] | Iterator[bytes] = iter(()) if is_head else export.stream(filters, kind, by)
        headers = {
            "Content-Disposition": f'attachment; filename="{export.file}.{form}"', "X-Accel-Buffering": "no",
        }  # fmt: skip
        return StreamingHttpResponse(pieces, content_type=TYPES[form], headers=headers)

    def _chips(self, filters: Filters) -> list[Chip]:
        """Return the filters in force: name, value, and the address without it."""
        values: dict[str, list[str]] = {}
        for name, text in filters.pairs:
            if name not in self.parts.values():
                values.setdefault(FIELDS.get(name, name), []).append(text)
        chips = []
        for name, texts in values.items():
            value = TIME_SPANS[texts[0]][0] if name == "last" else ", ".join(texts)
            others = filters.without(name, *filter(None, [self.parts.get(name)]))
            chips.append((self.names[name], richtext.inline(value[:120]), self.href(others)))
        return chips


def _spelled_out(wrong: Mapping[str, str]) -> dict[str, str]:
    return {name: hidden_characters.spelled_out(message) for name, message in wrong.items()}
