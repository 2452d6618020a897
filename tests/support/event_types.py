"""What the tests know of each event type: a sample of it, as payloads, and who may set which of its fields (`TABLE`).

A type without a sample fails `test_event_registry`, one without a rule `test_field_authority`.
"""

from typing import Any, NamedTuple

RUN = {"run_id": "run-1", "turn": 1, "agent": "Dialogue"}

QUEUED = {"event": "run.queued", "run_id": "run-9", "agent": "Dialogue", "run_kind": "agent", "input_seq": 1}
STARTED = {"event": "run.started", "run_id": "run-9", "agent": "Dialogue", "attempt": 1, "worker": "host:1"}
ASKED = {
    "event": "approval.requested",
    "run_id": "run-9",
    "agent": "Dialogue",
    "approval_id": "approval-1",
    "tool_call": "call-9",
    "tool_call_id": "c9",
    "name": "file_incident",
    "args": {"street": "Elm"},
    "why": "it goes to the city",
}
DECIDED = {"event": "approval.decided", "run_id": "run-9", "approval_id": "approval-1", "tool_call": "call-9"}
CLOSED = {"run_id": "run-9", "agent": "Dialogue", "approval_id": "approval-1", "tool_call": "call-9"}
STEP = {"event": "tool_step", "name": "file_incident", "tool_call": "call-9", "tool_call_id": "c9", "run_id": "run-9"}

REPLAY = {
    "event": "replay.requested",
    "run_id": "run-9",
    "agent": "Dialogue",
    "team": "Town Hall",
    "tool_call": "call-10",
    "tool_call_id": "replay-1",
    "replay_of": "call-9",
    "key": "call-9",
    "name": "look_up",
    "lookup_key": "bare:look_up",
    "origin": "function",
    "effect": "read",
    "edited": False,
    "args": {"street": "Elm"},
    "args_raw": '{"street": "Elm"}',
}

ANNOTATED = {"event": "event.annotated", "about": 1, "thumb": "up", "text": "Well put.", "speaker": "agent:Dialogue"}

RESPONSE = f"resp_{'0' * 31}1"
RECEIVED = {
    "event": "response.received",
    "response_id": RESPONSE,
    "previous_response_id": None,
    "sender": "token:robot",
    "recipient": "agent:Dialogue",
    "model": "Dialogue",
    "agent": "Dialogue",
    "instructions": "Be brief.",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Is Elm Street dry?"}]},
        {"type": "function_call", "call_id": "c1", "name": "rain", "arguments": '{"street": "Elm"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "none since noon"},
        {"type": "acme:thought", "id": "t1", "status": "completed"},
    ],
    "tools": [
        {"type": "function", "name": "rain", "description": "Rain on a street", "parameters": {"type": "object"}},
        {"type": "acme:search"},
    ],
    "hosted": ["search"],
    "tool_choice": {"type": "function", "name": "rain"},
    "allowed_tools": ["rain"],
    "params": {"temperature": 0.5, "metadata": {"desk": "4"}},
    "store": True,
    "stream": True,
}
COMPLETED = {
    "event": "response.completed",
    "run_id": "run-9",
    "agent": "Dialogue",
    "response_id": RESPONSE,
    "status": "completed",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "It is dry.", "annotations": [], "logprobs": []}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c2",
            "name": "rain",
            "arguments": "{}",
            "status": "completed",
        },
    ],
    "usage": {"input_tokens": 12, "output_tokens": 4, "total_tokens": 16},
    "error": None,
    "incomplete_details": None,
    "model": "demo model",
}


def _of_run(kind: str, **more: Any) -> list[dict[str, Any]]:
    return [QUEUED, STARTED, {"event": kind, "run_id": "run-9", "agent": "Dialogue", **more}]


EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "event.annotated": [
        {"type": "message", "sender": "Rosa", "recipient": "agent:Dialogue", "content": "Hi"},
        ANNOTATED,
    ],
    "message": [
        {"type": "message", "id": "m1", "sender": "Rosa", "recipient": "agent:Dialogue", "content": "Hello"},
        {"type": "message", "id": "m2", "sender": "agent:Dialogue", "recipient": "Rosa", "content": "**Hi**, Rosa"},
    ],
    "control": [{"type": "control", "sender": "system", "recipient": "agent:Dialogue", "content": "be brief"}],
    "user_message": [{"event": "user_message", "sender": "Rosa", "text": "typed"}],
    "token": [{"event": "token", "text": "He", "index": 0}, {"event": "token", "text": "llo", "index": 1, **RUN}],
    "output": [
        {"event": "output", "text": "Hello", "final": True, **RUN},
        {"event": "output", "text": '{"category": "parks"}', "agent": "Formatter", "id": "o1"},
    ],
    "tool_step": [
        {"event": "tool_step", "name": "find", "args": {"q": 1}, "status": "start", "tool_call_id": "c1"},
        {"event": "tool_step", "name": "find", "status": "success", "result_summary": "[]", "tool_call_id": "c1"},
        {"event": "tool_step", "name": "old", "args": {}},
        {"event": "tool_step", "name": "old", "args": {}, "result_summary": "ok"},
        {"event": "tool_step", "name": "lost", "status": "error", "error": "gone", "duration_ms": 3},
        {"event": "tool_step", "name": "ours", "args": {}, "status": "start", "tool_call": "call-1", **RUN},
        {"event": "tool_step", "name": "ours", "status": "success", "output": 0, "tool_call": "call-1", **RUN},
    ],
    "signal_send": [{"event": "signal_send", "name": "go"}],
    "signal_recv": [{"event": "signal_recv", "name": "go"}],
    "log": [{"event": "log", "text": "a line"}],
    "conversation.opened": [{"event": "conversation.opened", "title": "A title", "handler": "agent:Dialogue"}],
    "conversation.forked": [
        {"event": "conversation.forked", "parent": "p", "forked_at": 0, "title": "Again", "handler": "agent:Dialogue"}
        | {"changed": 4, "by": "user:otto", "reason": "the wrong street"},
    ],
    "conversation.moved": [{"event": "conversation.moved", "to": "q", "reason": "a later span named it"}],
    "agent.handoff": [{"event": "agent.handoff", "from_agent": "Triage", "to_agent": "Dialogue", "reason": "it fits"}],
    "conversation.handler": [{"event": "conversation.handler", "handler": "Insights"}],
    "conversation.paused": [{"event": "conversation.paused", "by": "user:otto", "reason": "the water is off"}],
    "conversation.resumed": [{"event": "conversation.paused"}, {"event": "conversation.resumed", "by": "user:otto"}],
    "conversation.taken_over": [{"event": "conversation.taken_over", "by": "user:otto", "reason": "I know her"}],
    "conversation.handed_back": [
        {"event": "conversation.taken_over", "by": "user:otto"},
        {"event": "conversation.paused", "by": "user:ada"},
        {"event": "conversation.handed_back", "by": "user:ada", "owner": "user:otto", "reason": "he has gone home"},
    ],
    "run.queued": [QUEUED],
    "run.started": [QUEUED, STARTED],
    "run.waiting": _of_run("run.waiting", reason="approval"),
    "run.resumed": [*_of_run("run.waiting", reason="approval"), {"event": "run.resumed", "run_id": "run-9"}],
    "run.done": _of_run("run.done", duration_ms=12.5),
    "run.delivered": [
        {**QUEUED, "at_next_step": True},
        {"event": "run.delivered", "run_id": "run-9", "agent": "Dialogue", "into": "run-8", "step": 3, "input_seq": 1},
    ],
    "run.failed": _of_run("run.failed", reason="error", error="ValueError: no such street"),
    "run.stopping": _of_run("run.stopping", how="abort", by="user:otto", reason="it is the wrong street"),
    "run.cancelled": _of_run("run.cancelled", reason="not needed"),
    "run.interrupted": [
        QUEUED,
        STARTED,
        {**STEP, "status": "start", "args": {}},
        {"event": "run.interrupted", "run_id": "run-9", "reason": "the worker is gone", "calls": ["call-9"]},
    ],
    "run.incompatible": _of_run("run.incompatible", reason="the tool is gone"),
    "model.call": [
        {
            "event": "model.call",
            "agent": "Weather",
            "model": "gpt-5-mini",
            "usage": {"input_tokens": 97, "output_tokens": 52},
            "duration_ms": 812.5,
            "trace_id": "0" * 31 + "1",
            "span_id": "0" * 15 + "1",
        }
    ],
    "model.turn": _of_run("model.turn", turn=1, model="demo", demo=True, tools=["0" * 64], duration_ms=3),
    "approval.requested": [QUEUED, STARTED, ASKED],
    "approval.decided": [
        QUEUED,
        STARTED,
        ASKED,
        {**DECIDED, "decision": "approve"},
        {**STEP, "status": "start", "args": {"street": "Elm"}},
        {**STEP, "status": "success", "output": "filed"},
        {**ASKED, "approval_id": "approval-3", "tool_call": "call-11", "tool_call_id": None},
        {**DECIDED, "approval_id": "approval-3", "tool_call": "call-11", "decision": "approve"}
        | {"rule": "rule-1", "rule_by": "user:maria", "by": "system"},
        {**ASKED, "approval_id": "approval-2", "tool_call": "call-10", "tool_call_id": None},
        {**DECIDED, "approval_id": "approval-2", "tool_call": "call-10", "decision": "reject", "message": "no"},
    ],
    "approval.cancelled": [
        QUEUED,
        STARTED,
        ASKED,
        {**CLOSED, "event": "approval.cancelled", "reason": "the run was stopped"},
    ],
    "approval.expired": [QUEUED, STARTED, ASKED, {**CLOSED, "event": "approval.expired", "reason": "after 15 minutes"}],
    "approval.escalated": [QUEUED, STARTED, ASKED, {**CLOSED, "event": "approval.escalated", "to": "admin"}],
    "policy.refused": [
        QUEUED,
        STARTED,
        {**STEP, "event": "policy.refused", "reason": "never on Sundays"},
    ],
    "response.received": [RECEIVED],
    "response.completed": [
        RECEIVED,
        {**QUEUED, "response_id": RESPONSE, "previous_response_id": None, "store": True, "socket": ""},
        STARTED,
        {"event": "output", "text": "It is dry.", "final": True, **RUN, "run_id": "run-9"},
        COMPLETED,
        {"event": "run.done", "run_id": "run-9", "agent": "Dialogue"},
    ],
    "response.deleted": [{"event": "response.deleted", "response_id": RESPONSE, "by": "token:robot"}],
    "replay.requested": [
        QUEUED | {"run_kind": "replay"},
        REPLAY,
        REPLAY | {"tool_call": "call-11", "tool_call_id": "replay-2", "reason": "again, with words", "edited": True},
        {"event": "tool_step", "name": "look_up", "tool_call": "call-10", "tool_call_id": "replay-1", "run_id": "run-9"}
        | {"status": "start", "args": {"street": "Elm"}, "replay_of": "call-9"},
        {"event": "tool_step", "name": "look_up", "tool_call": "call-10", "tool_call_id": "replay-1", "run_id": "run-9"}
        | {"status": "success", "output": {"is": "dry"}, "replay_of": "call-9", "duration_ms": 2},
        {"event": "run.done", "run_id": "run-9", "agent": "Dialogue", "run_kind": "replay"},
    ],
    "signal": [{"event": "signal", "payload": {"ok": True}, "sender": "agent:Triage"}],
    "dead_letter": [
        {
            "event": "dead_letter",
            "agent": "Triage",
            "envelope": {"id": "m9", "sender": "Rosa", "recipient": "agent:Triage", "content": "A bench, please"},
            "error": 'Traceback (most recent call last):\n  File "triage.py", line 4, in run\nValueError: no such park',
        },
        {"event": "dead_letter", "error": {"odd": ["no text"]}, "envelope": "no object"},
    ],
    "record.gap": [
        {"event": "record.gap", "reason": "the stream was trimmed"},
        {"event": "record.gap", "reason": "trimmed", "why": "they were trimmed", "topic": "stream:c", "lost": 1234}
        | {"after": "1795000000000-0", "since": "2026-11-22T01:00:00+00:00", "until": "2026-11-22T01:00:09+00:00"},
        {"event": "record.gap", "reason": "deleted", "why": "the stream was deleted", "lost": None},
        {"event": "record.gap", "reason": "quarantined", "why": "must be a JSON object", "topic": "chat:c", "lost": 1},
    ],
    "event.redacted": [
        {"event": "event.redacted", "events": [{"seq": 3, "digest": "ab" * 32}], "reason": "a phone number"}
        | {"by": "user:ida"},
        {"event": "event.redacted", "events": "none", "reason": 7},
    ],
    "conversation.id_erased": [
        {
            "event": "conversation.id_erased",
            "new_id": "erased-0123456789abcdef",
            "calls": {"7": "0192f0c1-7b2a-7abc-8def-0123456789ab"},
            "reason": "Article 17",
            "by": "user:ida",
        },
        {"event": "conversation.id_erased", "new_id": 7, "reason": ["x"]},
    ],
    "unknown": [{"what": "nobody knows"}],
}


class Rule(NamedTuple):
    """What holds of some fields of some kinds."""

    kinds: str
    fields: str
    who: str
    changes: str
    binds: str


ANYBODY = "anybody who may publish here; an agent's token as itself"
TABLE = (
    Rule("every kind", "event type id conversation_id created_at", ANYBODY, "where it is filed, counted once",
         "the id is one of this conversation's; the topic when the payload names none"),
    Rule("message user_message output response.received", "sender agent recipient", ANYBODY,
         "participants; an agent is let in", "let in only by whom `projections.guests` names"),
    Rule("control", "sender agent recipient", ANYBODY, "participants", "lets nobody in"),
    Rule("message user_message output token", "content text index metadata input", ANYBODY,
         "the last line, counters, whether an envelope repeats an output", "this conversation"),
    Rule("message", "metadata recipient", "anybody but an import; live", "a run is queued (§3.4)",
         "agents served here; hops end at 20"),
    Rule("tool_step", "name args args_raw result_summary output status error duration_ms tool_call_id namespace "
         "qualified_name lookup_key mcp_server output_bytes origin schema replay_of", ANYBODY,
         "an observed call, by call id or name", "this conversation; of another principal's run never"),
    Rule("tool_step", "tool_call run_id turn", "a run of ours, behind its fence", "the call of ours with this id",
         "the event's run; what a tool relays has none"),
    Rule("conversation.opened", "title", "people, the system, an import", "the title", "this conversation"),
    Rule("conversation.opened", "handler demo parent forked_at", "people, the system", "who answers, its parent",
         "this conversation; closes it for agents that others name"),
    Rule("conversation.forked", "title handler parent forked_at", "people, the system; of an import only the parent",
         "whose fork it is, which events are copies", "copies: all before it, or none; no right comes of a parent "
         "that an import tells"),
    Rule("conversation.moved", "to reason", "the system", "nothing: the page of what moved leads there",
         "the system's, as the last event of a conversation that is hidden"),
    Rule("conversation.handler", "handler", "people, the system, a run's worker", "who answers", "this conversation"),
    Rule("conversation.paused conversation.resumed conversation.taken_over conversation.handed_back", "by",
         "people; the system for a token", "state, owner", "the principal is who did it; `by` of the system for a "
         "token alone"),
    Rule("run.queued", "agent run_kind input_seq parent_call response_id previous_response_id store socket "
         "at_next_step",
         "people, the system, a worker", "a run, a response", "a row of this conversation"),
    Rule("run.started run.waiting run.resumed run.done run.failed run.cancelled run.interrupted run.incompatible",
         "attempt reason calls", "people, the system, the run's worker", "the run, its calls, its open questions",
         "the event's run, of this conversation"),
    Rule("run.delivered", "into", "the worker of the run that took it in, behind its fence",
         "the run, which never began",
         "the event's run, of this conversation"),
    Rule("approval.requested", "approval_id tool_call deadline", "the run's worker; the system for an external agent",
         "a question, its call",
         "the event's run, of this conversation, or a call observed in it"),
    Rule("approval.decided", "approval_id tool_call decision by rule", "people; the system for a token or a rule",
         "the question, the call", "a question and a call of this conversation; the principal decided"),
    Rule("approval.cancelled approval.expired", "approval_id tool_call by", "people, the system, the run's worker",
         "the question, the call that waits", "of this conversation; by counts from the system alone"),
    Rule("approval.escalated", "approval_id to", "the system", "whom the question was told to",
         "of this conversation"),
    Rule("policy.refused", "tool_call rule", "the run's worker", "the call is blocked", "the event's run"),
    Rule("replay.requested", "tool_call", "people, the system", "a new call", "the event's run"),
    Rule("model.turn", "agent model demo usage", "the run's worker", "what a turn spent", "the event's run"),
    Rule("output model.call", "usage agent model demo error", ANYBODY, "what a foreign turn spent; of a failed one an "
         "error", "this conversation"),
    Rule("response.completed", "response_id status", "the run's worker", "the response's end",
         "a response of this conversation"),
    Rule("response.deleted", "response_id", "people, the system for a token", "the response is reached no more",
         "a response of this conversation"),
    Rule("response.received", "input recipient agent", "the responses door, before the run that answers",
         "what the model is given", "a response's row names its seq; a claim is no item that a client may refer to"),
    Rule("agent.handoff", "from_agent to_agent reason agent", ANYBODY, "nothing: the graph, lanes and comparisons show "
         "it", "an agent's token hands over from itself; who answers changes by `conversation.handler` alone"),
    Rule("run.stopping", "by how reason", "people; the system for a token", "nothing: it tells whoever is second",
         "the principal asked; a claim is told to nobody as who was first"),
    Rule("log signal signal_send signal_recv dead_letter", "agent sender", ANYBODY, "nothing: they are shown",
         "an agent's token as itself; names nobody, lets nobody in"),
    Rule("event.annotated", "about thumb speaker by", "people; the system for a token",
         "the thumb and the note under that event", "an earlier event of this conversation; the principal is whose it "
         "is, `by` of the system for a token alone"),
    Rule("event.redacted", "events reason by", "people; the system for a token",
         "which events may be without a salt", "the digest of what stands there; a claim counts nothing in `verify`"),
    Rule("conversation.id_erased", "new_id calls reason by", "people; the system for a token",
         "whether the conversation may be without the salt of its id, and the ids that calls of before keep",
         "the id that stands there, made of its digest; a claim counts nothing in `verify`"),
    Rule("record.gap", "reason why lost", "the recorder, as the system", "nothing: it is shown", "a claim is marked"),
)  # fmt: skip
