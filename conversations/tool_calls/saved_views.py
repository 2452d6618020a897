"""Saved views of the tool calls page: create, rename, remove. Each change is audited."""

from django.http import QueryDict

from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.permissions import Who, has_permission
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.core.principals import Principal
from conversations.events.payload import clean_text
from conversations.models import SavedView
from conversations.tool_calls.listing.filters import CallFilters

MAX_VIEWS = 200  # views
MAX_EACH = 25  # of one maker: nobody fills them all
MAX_QUERY = 4000  # characters of a query


def save_view(by: Who, name: str, query: str) -> SavedView:
    """Save a query of the tool calls page under a new name. Raises Invalid for invalid filters, Conflict for a name in
    use."""
    name = _named(name)
    cleaned = _read(query)
    with audited_action(by, "save_view", f"view:{name}", right="save_views") as principal:
        if SavedView.objects.count() >= MAX_VIEWS:
            raise Invalid(f"there are already {MAX_VIEWS} views; remove one first")
        if SavedView.objects.filter(made_by=str(principal)).count() >= MAX_EACH:
            raise Invalid(f"you already have {MAX_EACH} views; remove one first")
        _free(name)
        view = SavedView.objects.create(name=name, query=cleaned, made_by=str(principal))
        chain.add_entry(principal, "save_view", f"view:{name}", after=chain.digest([name, cleaned]))
        return view


def rename_view(by: Who, number: int, name: str) -> str:
    """Rename a view; return its query. Only its author and admins may."""
    name = _named(name)
    with audited_action(by, "rename_view", f"view:{number}", right="save_views") as principal:
        view = _own(by, principal, number)
        if view.name != name:
            _free(name)
        was, view.name = view.name, name
        view.save(update_fields=["name"])
        digests = chain.digest([was]), chain.digest([name])
        correlation = {"was": was}
        chain.add_entry(
            principal, "rename_view", f"view:{name}", before=digests[0], after=digests[1], correlation=correlation
        )
        return view.query


def remove_view(by: Who, number: int) -> None:
    """Remove a view. Only its author and admins may."""
    with audited_action(by, "remove_view", f"view:{number}", right="save_views") as principal:
        view = _own(by, principal, number)
        before = chain.digest([view.name, view.query])
        view.delete()
        chain.add_entry(principal, "remove_view", f"view:{view.name}", before=before)


def _own(by: Who, principal: Principal, number: int) -> SavedView:
    view = SavedView.objects.filter(pk=number).first()
    if view is None:
        raise NotFound("this view no longer exists")
    if view.made_by != str(principal) and not has_permission(by, "policies"):
        raise NotAllowed(f"{principal} may not change this view: only {view.made_by} or an admin may")
    return view


def _named(name: str) -> str:
    name = " ".join(clean_text(name).split())
    if not 1 <= len(name) <= 80:
        raise Invalid(f"must be 1 to 80 characters; got {len(name)}", field="name")
    return name


def _free(name: str) -> None:
    if SavedView.objects.filter(name=name).exists():
        raise Conflict(f"there is already a view named {name!r}; choose another name", field="name")


def _read(query: str) -> str:
    """Return a query's filters in canonical form; a relative time stays relative."""
    if len(query) > MAX_QUERY:
        raise Invalid(f"must be at most {MAX_QUERY:,} characters", field="query")
    written = CallFilters.parse_strict(dict(QueryDict(query.removeprefix("?")).lists())).query
    if len(written) > MAX_QUERY:
        raise Invalid(f"must be at most {MAX_QUERY:,} characters", field="query")
    return written
