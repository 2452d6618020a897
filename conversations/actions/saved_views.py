"""Saved views of the tool-calls page: made, renamed and removed; each change is in the audit log."""

from django.http import QueryDict

from conversations import audit
from conversations.actions.acting import acting
from conversations.envelopes import fit
from conversations.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.models import SavedView
from conversations.principals import Principal
from conversations.rights import Who, may
from conversations.toolcalls import filters

MOST = 200  # views
LONGEST = 4000  # characters of a query


def save_view(by: Who, name: str, query: str) -> SavedView:
    """Save a query of the tool-calls page under a name of its own. Raises `Invalid` for filters that cannot be read."""
    name = _named(name)
    asked = _read(query)
    with acting(by, "save_view", f"view:{name}", right="save_views") as principal:
        if SavedView.objects.count() >= MOST:
            raise Invalid(f"there are {MOST} views already; remove one first")
        _free(name)
        made = SavedView.objects.create(name=name, query=asked, made_by=str(principal))
        audit.enter(principal, "save_view", f"view:{name}", after=audit.digest([name, asked]))
        return made


def rename_view(by: Who, number: int, name: str) -> str:
    """Give a view another name; answer its query. Its maker and admins may."""
    name = _named(name)
    with acting(by, "rename_view", f"view:{number}", right="save_views") as principal:
        found = _own(by, principal, number)
        if found.name != name:
            _free(name)
        was, found.name = found.name, name
        found.save(update_fields=["name"])
        digests = audit.digest([was]), audit.digest([name])
        told = {"was": was}
        audit.enter(principal, "rename_view", f"view:{name}", before=digests[0], after=digests[1], correlation=told)
        return found.query


def remove_view(by: Who, number: int) -> None:
    """Remove a view. Its maker and admins may."""
    with acting(by, "remove_view", f"view:{number}", right="save_views") as principal:
        found = _own(by, principal, number)
        before = audit.digest([found.name, found.query])
        found.delete()
        audit.enter(principal, "remove_view", f"view:{found.name}", before=before)


def _own(by: Who, principal: Principal, number: int) -> SavedView:
    found = SavedView.objects.filter(pk=number).first()
    if found is None:
        raise NotFound("there is no such view any more")
    if found.made_by != str(principal) and not may(by, "policies"):
        raise NotAllowed(f"{principal} did not make this view: {found.made_by} or an admin may change it")
    return found


def _named(name: str) -> str:
    name = " ".join(fit(name).split())
    if not 1 <= len(name) <= 80:
        raise Invalid(f"expected a name of 1 to 80 characters; got {len(name)}", field="name")
    return name


def _free(name: str) -> None:
    if SavedView.objects.filter(name=name).exists():
        raise Conflict(f"there is a view named {name!r} already; choose another name", field="name")


def _read(query: str) -> str:
    """Keep what filters, in one form: a relative time stays relative."""
    if len(query) > LONGEST:
        raise Invalid(f"expected {LONGEST:,} characters at most", field="query")
    written = filters.strictly(dict(QueryDict(query.removeprefix("?")).lists())).query
    if len(written) > LONGEST:
        raise Invalid(f"expected {LONGEST:,} characters at most", field="query")
    return written
