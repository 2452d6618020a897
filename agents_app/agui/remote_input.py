"""What a remote agent is sent: what was said as a run's messages, and decisions as answers to its interrupts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ag_ui.core import AssistantMessage, Message, ResumeEntry, RunAgentInput, SystemMessage, UserMessage

from agents_app.call_decisions import Decision
from conversations.core.ids import new_id
from conversations.core.json_values import parse_object
from conversations.events.payload import clean_text

ACTION = "remote_action"  # the tool that an interrupt is asked as
WENT_ON = "approved: the agent elsewhere goes on"  # what it returns
Item = dict[str, Any]


class Answered(NamedTuple):
    """A call of `remote_action` that has its output; `arguments` as the model sent them."""

    call_id: str
    arguments: str
    output: str


def input_of(
    thread: str, items: Sequence[Item], instructions: str | None, answers: Sequence[ResumeEntry], state: Any
) -> RunAgentInput:
    """Make the input of a run there: a new one, or one that goes on from its interrupts."""
    messages: list[Message] = [SystemMessage(id="instructions", content=instructions)] if instructions else []
    messages += [message for at, item in enumerate(items) if (message := _message(item, at)) is not None]
    return RunAgentInput(
        thread_id=thread, run_id=new_id(), protocol_version="1.0", state={} if state is None else state,
        messages=messages, tools=[], context=[], forwarded_props={}, resume=list(answers) or None,
    )  # fmt: skip


def answered_last(items: Sequence[Item]) -> list[Answered]:
    """Return the calls of `remote_action` whose outputs came after the agent's last answer, before or between messages
    for it."""
    outputs: dict[str, str] = {}
    for item in reversed(items):
        if item.get("type") == "function_call_output":
            outputs[str(item.get("call_id"))] = _as_text(item.get("output"))
        elif not _is_interjected(item):
            break
    calls = (item for item in items if item.get("type") == "function_call" and item.get("name") == ACTION)
    return [
        Answered(call_id, str(call.get("arguments") or ""), outputs[call_id])
        for call in calls
        if (call_id := str(call.get("call_id"))) in outputs
    ]


def resume_of(answered: Sequence[Answered], decided: Mapping[str, Decision]) -> list[ResumeEntry]:
    """Return the answers to interrupts: of each call that has a decision. Only what a person, or a rule, let through is
    approved."""
    entries: list[ResumeEntry] = []
    for call in answered:
        if (decision := decided.get(call.call_id)) is not None:
            interrupt = str((parse_object(call.arguments) or {}).get("interrupt"))
            payload = _payload(decision, call.output)
            entries.append(ResumeEntry(interrupt_id=interrupt, status="resolved", payload=payload))
    return entries


def _payload(decision: Decision, output: str) -> Any:
    match decision.decision:
        case "approve":
            return {"approved": True}
        case "edit" if decision.arguments is None:
            return {"approved": False, "message": "The arguments of this decision were redacted."}
        case "edit":
            return {"approved": True, "editedArgs": (parse_object(decision.arguments or "") or {}).get("arguments")}
        case "respond":
            try:
                return json.loads(decision.output)
            except (ValueError, RecursionError):
                return decision.output
    return {"approved": False, "message": decision.message or output}


def _is_interjected(item: Item) -> bool:
    """Return whether an item is a message that people put in, maybe as an agent; a model's own answer has its type."""
    return "type" not in item and "role" in item


def _message(item: Item, at: int) -> Message | None:
    if item.get("type", "message") != "message":
        return None  # calls of `remote_action` are ours: there they are interrupts
    id_, text = str(item.get("id") or f"message-{at}"), clean_text(_as_text(item.get("content")))
    match item.get("role"):
        case "assistant":
            return AssistantMessage(id=id_, content=text)
        case "system" | "developer":
            return SystemMessage(id=id_, content=text)
    return UserMessage(id=id_, content=text)


def _as_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return json.dumps(content, ensure_ascii=False, default=str)
