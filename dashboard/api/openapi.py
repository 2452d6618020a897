"""`GET /api/v1/openapi.json`: what the API takes and answers (OpenAPI 3.1), made from the models in `shapes`."""

from functools import cache
from typing import Literal

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from conversations import fleet
from dashboard.api import (
    audit_shapes,
    call_shapes,
    paths_audit,
    paths_calls,
    search,
    shapes,
    shapes_replays,
    shapes_rules,
    shapes_steering,
)
from dashboard.api.operations import BEARER, FORM, JSON, NDJSON, REF, SESSION, TEXT, Json, does, one_of, ref, up_to
from dashboard.api.presence import Doing, Done
from dashboard.api.read_markers import Mark


@require_safe
@login_not_required
def openapi(request: HttpRequest) -> JsonResponse:
    """Answer the document. It says nothing that the source does not, so whoever asks may have it."""
    return JsonResponse(document())


@cache
def document() -> Json:
    """Make the document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Switchboard", "version": "1"},
        "servers": [{"url": "/"}],
        "paths": {
            **_coming_in(),
            **_topics(),
            **_conversations(),
            **_deeds(),
            **_forks_and_runs(),
            **_steering(),
            **paths_calls.paths(),
            **paths_audit.paths(),
            **_read_markers(),
            **_itself(),
        },
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": settings.SESSION_COOKIE_NAME},
                "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRFToken"},
            },
        },
    }


def _coming_in() -> Json:
    return {
        "/api/v1/publish": {
            "post": does(
                "Publish messages; the answer comes after the commit.",
                {201: shapes.Published, 200: shapes.PublishedMany},
                body={JSON: one_of(shapes.ToPublish, shapes.Batch), NDJSON: TEXT},
                errors=(400, 403, 409, 413, 429, 503),
            )
        },
        "/api/v1/import": {
            "post": does(
                "Import a file's conversations, streamed as lines; visible whole or not at all.",
                {200: shapes.ImportedAll},
                body={NDJSON: TEXT},
                errors=(400, 403, 409, 413, 503),
            )
        },
        "/api/v1/door": {
            "post": does(
                "Trade the one-use token of the data directory for a bearer.",
                {200: shapes.Key},
                body={JSON: ref(shapes.Knock)},
                errors=(400, 413),
            )
        },
    }


def _topics() -> Json:
    return {
        "/api/v1/topics/{topic}/messages": {
            "get": does(
                "Read a topic strictly after `last_id`; without it the newest, or with `block_ms` only what is new.",
                {200: shapes.BusMessages},
                path={"topic": {"type": "string", "minLength": 3, "maxLength": 208}},
                query={"last_id": TEXT, "limit": up_to(500, 100), "block_ms": {**up_to(30_000, 0), "minimum": 0}},
                errors=(400, 403, 404, 409, 503),
            )
        },
    }


def _conversations() -> Json:
    bound = {"type": "integer", "minimum": 1, "maximum": 2**53}
    return {
        "/api/v1/conversations": {
            "get": does(
                "List conversations, newest first.",
                {200: shapes.Conversations},
                query={"q": TEXT, "participant": TEXT, "state": _STATE, "before": TEXT, "limit": up_to(200, 50)},
                security=[BEARER, SESSION],
            )
        },
        "/api/v1/conversations/{id}": {
            "get": does(
                "Read one conversation.",
                {200: shapes.Conversation},
                path={"id": _ID},
                errors=(403, 404),
                security=[BEARER, SESSION],
            )
        },
        "/api/v1/conversations/{id}/events": {
            "get": does(
                "Read events in order: those after a seq, those before one, or the newest.",
                {200: shapes.Events},
                path={"id": _ID},
                query={"after": {**bound, "minimum": 0}, "before": bound, "limit": up_to(500, 100)},
                errors=(400, 403, 404),
                security=[BEARER, SESSION],
            )
        },
    }


def _deeds() -> Json:
    return {
        "/api/v1/conversations/{id}/messages": {
            "post": does(
                "Say something as oneself, or by a grant as another; a conversation not there yet begins with it.",
                {201: shapes.SaidAt, 409: shapes.AnsweredMeanwhile},
                path={"id": _ID},
                body={JSON: ref(shapes.ToSay)},
                errors=(400, 403, 404, 413),
                security=[BEARER, FORM],
            )
        },
        "/api/v1/tool-calls/{id}/answer": {
            "post": does(
                "Answer by hand a call that waits for its client, once; the chain goes on with it.",
                {200: shapes.Answered},
                path={"id": TEXT},
                body={JSON: ref(shapes.ToAnswer)},
                errors=(400, 403, 404, 409, 413),
                security=[BEARER, FORM],
            )
        },
        "/api/v1/conversations/{id}/presence": {
            "post": does(
                "Tell the others who look that one types, looks, or has put the page away.",
                {200: Done},
                path={"id": _ID},
                body={JSON: ref(Doing)},
                errors=(400, 403, 404, 413),
                security=[FORM],
            )
        },
    }


def _forks_and_runs() -> Json:
    return {
        "/api/v1/conversations/{id}/forks": {
            "post": does(
                "Fork after an event, as it was or with that message in other words, and run on where asked.",
                {201: shapes_steering.ForkMade},
                path={"id": _ID},
                body={JSON: ref(shapes_steering.ToFork)},
                errors=(400, 403, 404, 409, 413),
                security=[BEARER, FORM],
            )
        },
        "/api/v1/runs/{id}/forks": {
            "post": does(
                "Fork where a run began, and have its agent answer the same again.",
                {201: shapes_steering.ForkMade},
                path={"id": TEXT},
                body={JSON: ref(shapes_steering.ToRerun)},
                errors=(400, 403, 404, 409, 413),
                security=[BEARER, FORM],
            )
        },
        "/api/v1/runs/{id}/again": _of_run("Run again what ended badly, on the same input.", 201),
        "/api/v1/runs/{id}/cancellation": _of_run("Ask a run to stop.", 202),
    }


def _steering() -> Json:
    return {
        "/api/v1/conversations/{id}/control": {
            "post": does(
                "Pause, resume, take over, hand back, stop after this turn, or abort now.",
                {200: shapes_steering.Steered, 409: shapes_steering.AlreadySteered},
                path={"id": _ID},
                body={JSON: ref(shapes_steering.ToSteer)},
                errors=(400, 403, 404, 413),
                security=[BEARER, FORM],
            )
        },
        "/api/v1/control": {
            "post": does(
                "Do one action to several conversations, each with its own outcome.",
                {200: shapes_steering.SteeredMany},
                body={JSON: ref(shapes_steering.ToSteerMany)},
                errors=(400, 403, 413),
                security=[BEARER, FORM],
            )
        },
    }


def _of_run(words: str, status: int) -> Json:
    security, path = [BEARER, FORM], {"id": TEXT}
    return {
        "post": does(words, {status: shapes_steering.RunNamed}, path=path, errors=(403, 404, 409), security=security)
    }


def _read_markers() -> Json:
    return {
        "/api/v1/read-markers": {
            "get": does(
                "Read how far one has read.",
                {200: shapes.Markers},
                query={"ids": {"type": "array", "items": TEXT, "maxItems": 200}},
                security=[SESSION],
            ),
            "post": does(
                "Move a marker forward, never back.",
                {200: shapes.Marker},
                body={JSON: ref(Mark)},
                errors=(400, 403, 404, 413),
                security=[FORM],
            ),
        },
    }


def _itself() -> Json:
    return {
        "/api/v1/openapi.json": {
            "get": does("Read this document.", {200: None}, errors=(), security=[]),
        },
    }


_STATE: Json = {"type": "string", "enum": list(fleet.FILTERS)}
_ID = {
    "type": "string",
    "pattern": "^~?[A-Za-z0-9_.-]+$",
    "description": "verbatim when [A-Za-z0-9_.-]{1,200} and not . or .., else ~ and the base64url of its UTF-8",
}


_TAKEN = (
    shapes.ToPublish,
    shapes.Batch,
    shapes.Knock,
    shapes.ToSay,
    shapes.ToDecide,
    shapes.ToAnswer,
    shapes_rules.ToDecideMany,
    shapes_rules.ToMakeRule,
    shapes_rules.WithReason,
    shapes_steering.ToSteer,
    shapes_steering.ToSteerMany,
    shapes_steering.ToFork,
    shapes_steering.ToRerun,
    shapes_replays.ToReplay,
    call_shapes.ToSaveView,
    call_shapes.ToName,
)


def _schemas() -> Json:
    taken = (*_TAKEN, Mark, Doing, shapes.PolicyFile)
    given = (
        *(shapes.Error, shapes.Published, shapes.PublishedMany, shapes.BusMessages, shapes.Conversation),
        *(shapes.Conversations, shapes.Events, shapes.Marker, shapes.Markers, shapes.ImportedAll, shapes.Key),
        *(shapes.SaidAt, shapes.AnsweredMeanwhile, shapes.Decided, shapes.AlreadyDecided, shapes_steering.RunNamed),
        shapes.Answered,
        *(shapes_steering.Steered, shapes_steering.AlreadySteered, shapes_steering.SteeredMany),
        *(shapes.Approval, shapes.Approvals, search.Hits, shapes_steering.ForkMade, Done, shapes_rules.DecidedMany),
        *(shapes_rules.AlwaysRule, shapes_rules.AlwaysRules, shapes_rules.MadeRule),
        *(shapes_replays.OneCall, shapes_replays.DryReplay, shapes_replays.ReplayBegun),
        *(call_shapes.ToolCall, call_shapes.ToolCalls, call_shapes.Removed),
        *(call_shapes.SavedView, call_shapes.SavedViews, audit_shapes.AuditEntry, audit_shapes.AuditEntries),
    )
    models: list[tuple[type[BaseModel], Literal["validation", "serialization"]]] = []
    models += [(model, "validation") for model in taken]
    models += [(model, "serialization") for model in given]
    _, made = models_json_schema(models, ref_template=REF)
    schemas: Json = made["$defs"]
    schemas["Wrong"]["required"] = ["code", "message"]
    return schemas
