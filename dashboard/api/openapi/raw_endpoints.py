"""The addresses of `/api/v1` that `conversations.asgi` answers without Django, described like the views."""

from conversations.coding_agents.hooks import TOOLS
from dashboard.api.openapi.operations import BEARER, TEXT, Operation, up_to
from dashboard.api.schemas import core, elsewhere

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
            "Report what was said and done elsewhere, in messages as they are published; it starts no run.",
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
                f"Take a hook of {name}. A PermissionRequest waits for its decision; `{{}}`: nobody decided.",
                {200: core.HookAnswer},
                body=core.ToHook,
                query={"wait_s": up_to(3600, 570) | {"minimum": 0}},
                errors=(409, 429, 503),
                security=(BEARER,),
            )
        }
        for tool, name in TOOLS.items()
    },
    "api/v1/approvals/requests": {
        "post": Operation(
            "Ask about a call of an agent elsewhere, and wait for the decision; `pending`: ask again within 20 s.",
            {200: elsewhere.AskedDecision},
            body=elsewhere.ToAskAbout,
            query={"wait_s": up_to(30, 25) | {"minimum": 0}},
            errors=(409, 429, 503),
            security=(BEARER,),
        )
    },
    "api/v1/events": {
        "get": Operation(
            "Read what happens in all conversations, in pages; with `Accept: text/event-stream` as it happens.",
            {200: elsewhere.FedEvents},
            query={"after": TEXT, "conversation": TEXT},
            errors=(429, 503),
            security=(BEARER,),
        )
    },
    "api/v1/agui/agents/<cid:id>": {
        "post": Operation(
            "Run an agent by AG-UI: a RunAgentInput in, its events out, to the run's end or to where it waits.",
            {200: None},
            body=elsewhere.AguiInput,
            files=("text/event-stream",),
            errors=(409, 429, 503),
            security=(BEARER,),
        )
    },
    "api/v1/agui/conversations/<cid:id>": {
        "get": Operation(
            "Watch the runs of a conversation as AG-UI events: past ones and those to come, or one, resumed by place.",
            {200: None},
            query={"after": TEXT, "run": TEXT},
            files=("text/event-stream",),
            errors=(429, 503),
            security=(BEARER,),
        )
    },
    "api/v1/import": {
        "post": Operation(
            "Import a file's conversations, streamed as lines; visible whole or not at all.",
            {200: core.ImportedAll},
            takes_lines=True,
            errors=(409, 503),
            security=(BEARER,),
        )
    },
    "api/v1/door": {
        "post": Operation(
            "Trade the one-use token of the data directory for a bearer.",
            {200: core.Key},
            body=core.Knock,
            security=(BEARER,),
            is_open=True,
        ),
        "delete": Operation(
            "End the bearer that was given out here, and that this request carries.",
            {200: None},
            security=(BEARER,),
            is_open=True,
        ),
    },
    "api/v1/topics/<topic:topic>/messages": {
        "get": Operation(
            "Read a topic strictly after `last_id`; without it the newest, or with `block_ms` only what is new.",
            {200: core.BusMessages},
            query={"last_id": TEXT, "limit": up_to(500, 100), "block_ms": up_to(30_000, 0) | {"minimum": 0}},
            errors=(409, 503),
            security=(BEARER,),
        )
    },
}
