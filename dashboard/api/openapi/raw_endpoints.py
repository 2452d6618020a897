"""The addresses of `/api/v1` that `conversations.asgi` answers without Django, described like the views."""

from conversations.coding_agents.hooks import TOOLS
from dashboard.api.openapi.operations import BEARER, TEXT, Operation, up_to
from dashboard.api.schemas import core, external_agents

ROUTES = {
    "api/v1/publish": {
        "post": Operation(
            "Publish messages; the answer comes after the commit.",
            {201: core.Published, 200: core.PublishedMany},
            body=(core.ToPublish, core.Batch),
            takes_lines=True,
            errors=(409, 429, 503),
            security=(BEARER,),
        )
    },
    "api/v1/report": {
        "post": Operation(
            "Report what was said and done elsewhere, in the form of published messages; no run is started.",
            {201: core.Published, 200: core.PublishedMany},
            body=(core.ToPublish, core.Batch),
            takes_lines=True,
            errors=(409, 429, 503),
            security=(BEARER,),
        )
    },
    **{
        f"api/v1/hooks/{tool}": {
            "post": Operation(
                f"Accept a hook of {name}. A PermissionRequest waits for its decision; `{{}}`: nobody decided.",
                {200: core.HookAnswer},
                body=core.HookEvent,
                query={"wait_s": up_to(3600, 570) | {"minimum": 0}},
                errors=(409, 429, 503),
                security=(BEARER,),
            )
        }
        for tool, name in TOOLS.items()
    },
    "api/v1/approvals/requests": {
        "post": Operation(
            "Request approval of an external agent's call and wait for the decision; `pending`: repeat within 20 s.",
            {200: external_agents.RequestedDecision},
            body=external_agents.ToRequestApproval,
            query={"wait_s": up_to(30, 25) | {"minimum": 0}},
            errors=(409, 429, 503),
            security=(BEARER,),
        )
    },
    "api/v1/events": {
        "get": Operation(
            "Read the events of all conversations, in pages; with `Accept: text/event-stream`, as they happen.",
            {200: external_agents.FeedEvents},
            query={"after": TEXT, "conversation": TEXT},
            errors=(429, 503),
            security=(BEARER,),
        )
    },
    "api/v1/agui/agents/<cid:id>": {
        "post": Operation(
            "Run an agent over AG-UI: accept a RunAgentInput and stream events until the run ends or waits.",
            {200: None},
            body=external_agents.AguiInput,
            files=("text/event-stream",),
            errors=(409, 429, 503),
            security=(BEARER,),
        )
    },
    "api/v1/agui/conversations/<cid:id>": {
        "get": Operation(
            "Stream the past and future runs of a conversation, or one run, as AG-UI events; can be resumed.",
            {200: None},
            query={"after": TEXT, "run": TEXT},
            files=("text/event-stream",),
            errors=(429, 503),
            security=(BEARER,),
        )
    },
    "api/v1/import": {
        "post": Operation(
            "Import a file's conversations, streamed as lines; imported completely or not at all.",
            {200: core.ImportedAll},
            takes_lines=True,
            errors=(409, 503),
            security=(BEARER,),
        )
    },
    "api/v1/door": {
        "post": Operation(
            "Exchange the one-use token of the data directory for a bearer token.",
            {200: core.LocalToken},
            body=core.ToIssueLocalToken,
            security=(BEARER,),
            is_open=True,
        ),
        "delete": Operation(
            "End this request's bearer token, if it was issued here.",
            {200: None},
            security=(BEARER,),
            is_open=True,
        ),
    },
    "api/v1/topics/<topic:topic>/messages": {
        "get": Operation(
            "Read a topic strictly after `last_id`; without it the newest messages, or with `block_ms` only new ones.",
            {200: core.BusMessages},
            query={"last_id": TEXT, "limit": up_to(500, 100), "block_ms": up_to(30_000, 0) | {"minimum": 0}},
            errors=(409, 503),
            security=(BEARER,),
        )
    },
}
