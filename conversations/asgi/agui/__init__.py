"""AG-UI: front ends run our agents and watch their runs with the protocol's own events (`ag-ui-protocol`).

    routes             routes requests; imports the other modules on the first one
    front_end_input    converts a `RunAgentInput` to a request like those of `/v1/responses`
    interrupt_answers  applies answers to interrupts as decisions on approvals
    run_encoder        converts a run's recorded events to events of the protocol
    thread_encoder     the same for all runs of a conversation, one after another, with a cursor
    run_endpoint       `POST /api/v1/agui/agents/{name}`
    thread_stream      `GET /api/v1/agui/conversations/{id}`
    registered         remote agents from the setting
    registration       registers, lists and removes remote agents, for admins

Runs, followers, limits and revoked tokens are handled as in `conversations.asgi.responses`.
"""
