"""One example of every kind this version emits or imports, as payloads. A type without one fails
`test_event_registry`."""

from typing import Any

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
        {"event": "record.gap", "from": 4, "to": 6, "reason": "the stream was trimmed"},
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
            "reason": "Article 17",
            "by": "user:ida",
        },
        {"event": "conversation.id_erased", "new_id": 7, "reason": ["x"]},
    ],
    "unknown": [{"what": "nobody knows"}],
}
