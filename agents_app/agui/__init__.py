"""Agents that run elsewhere and speak AG-UI, as agents here: named in `SWITCHBOARD_AGUI_AGENTS`, or registered.

    http_stream    one POST to a checked address, its answer as pieces of a stream
    event_reader   that stream as the protocol's events
    remote_input   what was said, as the messages of a run's input, and decisions as answers to its interrupts
    interrupt_decisions
                   those decisions, from the record
    remote_model   such an agent as a model of the SDK: one run there is one answer of it
    remote_team    the teams of all of them

A run of such an agent is a run here like any other: claimed, ended, stopped, run again. Its words are its answer; what
it tells of its own tools is recorded as claims of `bus:agui` (law I). Where it is interrupted, it asks as if it called
a tool, `remote_action`, so that the run waits here for a person, survives a restart, and goes on with the decision.
"""
