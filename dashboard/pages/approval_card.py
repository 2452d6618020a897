"""Draw the card of an approval request: its block in the transcript with the decision form. Used by the approvals page
and by conversations. The form depends on the reader's permissions and on the current policy."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.datastructures import MultiValueDict
from markupsafe import Markup

from conversations.access import permissions
from conversations.core import hidden_characters
from conversations.core.errors import Conflict, NotFound, SwitchboardError
from conversations.core.html_escape import safe
from conversations.rendering import json_tree, richtext
from conversations.rendering.jinja_environment import macro
from conversations.runs.approvals import inbox
from conversations.tool_calls.schemas import argument_form, versions
from dashboard.pages import approval_today, auto_approvals
from dashboard.pages.base_context import Part
from dashboard.pages.errors import problems_of

MAX_FORMS = 20  # forms of one page of a transcript; the others are loaded when they are looked at
ABOUT = 300  # characters of what a tool does
EFFECTS = {
    "read": "It only reads.",
    "idempotent": "It changes something once; repeating it has no further effect.",
    "unsafe": "It has side effects, and each call takes effect.",
    "destructive": "It may delete or overwrite something permanently.",
}
BUTTONS: dict[argument_form.Editor, str] = {"fields": "Approve with edits", "raw": "Approve with this JSON"}
MAY_NOT = "Only approvers and admins can decide on this request."
FOUR_EYES = "You wrote or sent the message behind this run, so someone else has to decide (four eyes)."
_SLOT = re.compile(r'<decision-form data-key="([A-Za-z0-9._-]{1,64})"')

NOTHING: MultiValueDict[str, str] = MultiValueDict()


def card(
    request: HttpRequest,
    approval_request: inbox.ApprovalCard,
    posted: MultiValueDict[str, str] = NOTHING,
    error: SwitchboardError | None = None,
) -> Part:
    """Return the context of `partials/approval.html`; after a refused decision with the `posted` fields and the
    `error`."""
    return {
        "card": approval_request,
        "block": block(request, approval_request, posted, error),
        "lately": inbox.recent_calls(approval_request),
        "today": None if approval_request.is_open else approval_today.today_context(approval_request.row.tool_call),
    }


def block(
    request: HttpRequest,
    approval_request: inbox.ApprovalCard,
    posted: MultiValueDict[str, str] = NOTHING,
    error: SwitchboardError | None = None,
) -> Markup:
    """Draw a request's block, with the decision form while it is open."""
    return _with_form(
        inbox.block(approval_request), approval_request.row.id, form(request, approval_request, posted, error)
    )


def form(
    request: HttpRequest,
    approval_request: inbox.ApprovalCard,
    posted: MultiValueDict[str, str] = NOTHING,
    error: SwitchboardError | None = None,
    *,
    leads_back: bool = False,
) -> Markup:
    """Draw the decision form of an open request; without scripts, `leads_back` returns to its conversation
    afterwards."""
    drawn = {
        "card": approval_request,
        "form": _form(request, approval_request, posted, error) | {"leads_back": leads_back},
    }
    return safe(render_to_string("partials/decision.html", drawn, request=request).strip())


def with_forms(request: HttpRequest, entries: list[Markup]) -> list[Markup]:
    """Insert the decision forms of open requests into the entries of a transcript."""
    number = 0
    for n, entry in enumerate(entries):
        for approval in _SLOT.findall(entry) if number < MAX_FORMS else ():
            number += 1
            entry = _loaded(request, entry, approval)
        entries[n] = entry
    return entries


def words_of(error: SwitchboardError, approval_request: inbox.ApprovalCard, request: HttpRequest) -> str:
    """Return the error message of a decision; if it came too late, with who decided first."""
    is_own = approval_request.row.decided_by == str(permissions.principal_of(request.user))
    if isinstance(error, Conflict) and error.code == "already_decided" and is_own:
        return f"You already decided this: {approval_request.row.decision}."
    return hidden_characters.spelled_out(error.sentence)


def schema_of(approval_request: inbox.ApprovalCard) -> dict[str, Any]:
    """Return the JSON schema that the arguments must match; empty if unknown."""
    read = _schema_body(approval_request).get("params_json_schema")
    return read if isinstance(read, dict) else {}


def arguments_of(approval_request: inbox.ApprovalCard) -> dict[str, Any] | None:
    """Return the arguments of the call; None if they are not a JSON object."""
    arguments = approval_request.request.get("args")
    return arguments if isinstance(arguments, dict) else None


def posted_arguments(
    approval_request: inbox.ApprovalCard, posted: Mapping[str, str], editor: argument_form.Editor
) -> dict[str, Any] | str | None:
    """Return the arguments that a posted form asks for, None for those of the call; `editor` is the one whose button
    was pressed. Raises Invalid if another one was edited."""
    return argument_form.posted_arguments(
        schema_of(approval_request), arguments_of(approval_request), posted,
        raw=written(approval_request), editor=editor, buttons=BUTTONS,
    )  # fmt: skip


def require_unedited(approval_request: inbox.ApprovalCard, posted: Mapping[str, str]) -> None:
    """Raise Invalid if a posted form has edited arguments: a rule approves calls as the agent sends them."""
    posted_arguments(approval_request, posted, "")


def written(approval_request: inbox.ApprovalCard) -> str:
    """Return the arguments as JSON for editing; the raw text if they are not an object."""
    arguments = arguments_of(approval_request)
    if arguments is None:
        return str(approval_request.request.get("args_raw") or "")
    return argument_form.as_json(arguments)


def _loaded(request: HttpRequest, entry: Markup, approval: str) -> Markup:
    try:
        approval_request = inbox.find(approval)
    except NotFound:
        return entry
    return (
        _with_form(entry, approval, form(request, approval_request, leads_back=True))
        if approval_request.is_open
        else entry
    )


def _with_form(html: Markup, approval: str, form: Markup) -> Markup:
    slot = macro("events/approval_block.html", "decision")(approval)
    begin, end = slot.index(">") + 1, slot.rindex("</")
    return html.replace(slot.strip(), (slot[:begin] + form + slot[end:]).strip(), 1)


def _form(
    request: HttpRequest,
    approval_request: inbox.ApprovalCard,
    posted: MultiValueDict[str, str],
    error: SwitchboardError | None,
) -> Part:
    why_not = _why_not(request, approval_request)
    entered = {name: str(value) for name, value in posted.items()}
    problems = problems_of(error)
    schema, arguments = schema_of(approval_request), arguments_of(approval_request)
    is_edited_here = (
        bool(schema) and "edit" in approval_request.decisions and not why_not and not approval_request.is_denied
    )
    raw = (
        json.dumps(arguments, ensure_ascii=False) if arguments is not None else approval_request.request.get("args_raw")
    )
    return {
        "why_not": why_not,
        "entries": argument_form.entries(schema, arguments, entered, problems) if is_edited_here else [],
        "has_schema": is_edited_here,
        "arguments": json_tree.draw(str(raw)) if raw else None,
        "raw": argument_form.as_posted(entered.get("raw", written(approval_request))),
        "raw_was": argument_form.as_posted(written(approval_request)),
        "spelled": hidden_characters.spelled_out(str(approval_request.request.get("args_raw") or "")),
        "entered": entered,
        "same": posted.getlist("same"),
        "always": auto_approvals.choices(approval_request),
        "problems": problems,
        "error": words_of(error, approval_request, request) if error else "",
        "today": approval_today.today_context(approval_request.row.tool_call),
        "effect": EFFECTS.get(approval_request.effect, ""),
        "about": _about(approval_request),
        "left": _percent_left(approval_request),
    }


def _why_not(request: HttpRequest, approval_request: inbox.ApprovalCard) -> str:
    """Return why the reader may not decide; empty if they may."""
    if not permissions.has_permission(request.user, "decide"):
        return MAY_NOT
    return FOUR_EYES if str(permissions.principal_of(request.user)) in approval_request.barred else ""


def _schema_body(approval_request: inbox.ApprovalCard) -> dict[str, Any]:
    return versions.body_of(approval_request.request.get("schema") or "")


def _about(approval_request: inbox.ApprovalCard) -> Markup | None:
    """Return the tool's own description, shortened; None without one."""
    about = _schema_body(approval_request).get("description")
    return richtext.inline(" ".join(about.split())[:ABOUT]) if isinstance(about, str) and about.strip() else None


def _percent_left(approval_request: inbox.ApprovalCard) -> int:
    """Return how much of the time to decide is left, in percent."""
    if approval_request.deadline is None:
        return 0
    whole = (approval_request.deadline - approval_request.asked_at).total_seconds()
    left = (approval_request.deadline - datetime.now(UTC)).total_seconds()
    return round(100 * min(1.0, max(0.0, left / whole))) if whole > 0 else 0
