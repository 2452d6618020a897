"""AG-UI: front ends run our agents, and watch their runs, by the protocol's own events (`ag-ui-protocol`).

    routes          which address is answered by what; imports all the rest when it is first asked
    run_input       a `RunAgentInput` as a request like those of `/v1/responses`
    resume          answers to interrupts as decisions on approvals
    run_encoder     the events of a run, as the record has them, as events of the protocol
    thread_encoder  the same for all runs of a conversation, one after another, with a cursor
    run_endpoint    `POST /api/v1/agui/agents/{name}`
    thread_feed     `GET /api/v1/agui/conversations/{id}`
    registered      agents elsewhere that the setting names
    registration    what admins do with agents elsewhere: register, list, remove

Runs, followers, bounds and revoked bearers are those of `conversations.asgi.responses`.
"""
