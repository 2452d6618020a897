"""The part of `GET /api/v1/openapi.json` about tool calls: approvals and rules, finding and replaying, policy."""

from conversations import always_view, inbox
from conversations.toolcalls import filters
from dashboard.api import call_shapes, search, shapes, shapes_replays, shapes_rules
from dashboard.api.operations import BEARER, FORM, JSON, SESSION, TEXT, Json, does, ref, up_to


def paths() -> Json:
    """Answer the operations by their paths."""
    return {
        **_approvals(),
        **_rules(),
        **_search(),
        **_tool_calls(),
        **_one_call(),
        **_saved_views(),
        **_policies(),
    }


def _approvals() -> Json:
    return {
        "/api/v1/approvals": {
            "get": does(
                "List questions about tool calls, newest first; `pending` are those that can be decided.",
                {200: shapes.Approvals},
                query={"status": {"enum": list(inbox.STATUSES)}, "before": TEXT, "limit": up_to(200, 50)},
                security=[BEARER, SESSION],
            )
        },
        "/api/v1/approvals/{id}": {
            "get": does(
                "Read one question.",
                {200: shapes.Approval},
                path={"id": TEXT},
                errors=(403, 404),
                security=[BEARER, SESSION],
            )
        },
        "/api/v1/approvals/decisions": {
            "post": does(
                "Decide several tool calls that wait, each by itself.",
                {200: shapes_rules.DecidedMany},
                body={JSON: ref(shapes_rules.ToDecideMany)},
                errors=(400, 403, 413),
                security=[BEARER, FORM],
            )
        },
        "/api/v1/approvals/{id}/decision": {
            "post": does(
                "Decide a tool call that waits, once.",
                {200: shapes.Decided, 409: shapes.AlreadyDecided},
                path={"id": TEXT},
                body={JSON: ref(shapes.ToDecide)},
                errors=(400, 403, 404, 413),
                security=[BEARER, FORM],
            )
        },
    }


def _rules() -> Json:
    return {
        "/api/v1/approval-rules": {
            "get": does(
                "List always rules, newest first; `live` are those that can approve something still.",
                {200: shapes_rules.AlwaysRules},
                query={"state": {"enum": list(always_view.STATES)}, "before": TEXT, "limit": up_to(200, 50)},
                security=[BEARER, SESSION],
            ),
            "post": does(
                "Make an always rule, by hand or with the approval of a question; what waits and fits is approved.",
                {201: shapes_rules.MadeRule},
                body={JSON: ref(shapes_rules.ToMakeRule)},
                errors=(400, 403, 404, 409, 413),
                security=[BEARER, FORM],
            ),
        },
        "/api/v1/approval-rules/{id}/revocation": {
            "post": does(
                "Revoke an always rule; what it approved stays so.",
                {200: shapes_rules.AlwaysRule},
                path={"id": TEXT},
                body={JSON: ref(shapes_rules.WithReason)},
                errors=(400, 403, 404, 409, 413),
                security=[BEARER, FORM],
            )
        },
    }


def _search() -> Json:
    words = {**TEXT, "description": "words, quoted phrases, beginnings with a star"}
    return {
        "/api/v1/search": {
            "get": does(
                "Find events in all conversations, newest first.",
                {200: search.Hits},
                query=dict.fromkeys(("conversation", "kind", "sender", "since", "until", "before"), TEXT)
                | {"q": words, "limit": up_to(200, 50)},
                security=[BEARER, SESSION],
            )
        },
    }


def _tool_calls() -> Json:
    numbers = {name: {"type": "number", "minimum": 0} for name in filters.NUMBERS}
    many = {name: {"type": "array", "items": TEXT, "maxItems": filters.MOST} for name in filters.MANY}
    many["status"] = {"type": "array", "items": {"enum": list(filters.STATUSES)}}
    words = dict.fromkeys(("q", "conversation", "run", "call_id", "before"), TEXT)
    choices = {"replayed": ("yes", "no"), "where": ("around",), "last": tuple(filters.LAST)}
    moment: Json = {"type": "string", "format": "date-time"}
    return {
        "/api/v1/tool-calls": {
            "get": does(
                "List tool calls, newest first, by the filters of the page: all must hold, of several values one.",
                {200: call_shapes.ToolCalls},
                query={
                    **many, **numbers, **words, **{name: {"enum": list(some)} for name, some in choices.items()},
                    "from": moment, "to": moment, "limit": up_to(200, 50),
                },
                security=[BEARER, SESSION],
            )
        },
    }  # fmt: skip


def _one_call() -> Json:
    return {
        "/api/v1/tool-calls/{id}": {
            "get": does(
                "Read one tool call.",
                {200: shapes_replays.OneCall},
                path={"id": TEXT},
                errors=(403, 404),
                security=[BEARER, SESSION],
            )
        },
        "/api/v1/tool-calls/{id}/replays": {
            "post": does(
                "Show what making a call again would be, or begin it with `dry` false.",
                {200: shapes_replays.DryReplay, 201: shapes_replays.ReplayBegun},
                path={"id": TEXT},
                body={JSON: ref(shapes_replays.ToReplay)},
                errors=(400, 403, 404, 409, 413),
                security=[BEARER, FORM],
            )
        },
    }


def _saved_views() -> Json:
    number: Json = {"type": "integer", "minimum": 1}
    return {
        "/api/v1/saved-views": {
            "get": does(
                "List the saved views of the tool-calls page.",
                {200: call_shapes.SavedViews},
                security=[BEARER, SESSION],
            ),
            "post": does(
                "Save a filter under a name, for everybody.",
                {201: call_shapes.SavedView},
                body={JSON: ref(call_shapes.ToSaveView)},
                errors=(400, 403, 409, 413),
                security=[BEARER, FORM],
            ),
        },
        "/api/v1/saved-views/{number}": {
            "put": does(
                "Give a view another name; its maker and admins may.",
                {200: call_shapes.SavedView},
                path={"number": number},
                body={JSON: ref(call_shapes.ToName)},
                errors=(400, 403, 404, 409, 413),
                security=[BEARER, FORM],
            )
        },
        "/api/v1/saved-views/{number}/removal": {
            "post": does(
                "Remove a view; its maker and admins may.",
                {200: call_shapes.Removed},
                path={"number": number},
                errors=(403, 404),
                security=[BEARER, FORM],
            )
        },
    }


def _policies() -> Json:
    return {
        "/api/v1/policies": {
            "get": does("Read the operators' policy.", {200: shapes.PolicyFile}, security=[BEARER, SESSION]),
            "put": does(
                "Make this the whole policy, or change nothing.",
                {200: shapes.PolicyFile},
                body={JSON: ref(shapes.PolicyFile)},
                errors=(400, 403, 413),
                security=[BEARER, FORM],
            ),
        },
    }
