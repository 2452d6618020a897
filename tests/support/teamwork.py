"""A team that is served, and what its worker would write: runs up to a question, a bad end, nested runs. For tests."""

import json
from typing import Any

from conversations.conversation import post_message
from conversations.core.principals import token_principal
from conversations.events import log
from conversations.models import Agent, Approval, Run, ToolSchema, User
from conversations.runs import claims
from tests.support import held_run
from tests.support.unchecked import unchecked

ASKED = {"name": "file_incident", "args": {"street": "Elm"}, "why": "It goes to the city."}
SEALED = {"state": "{}", "state_mac": "0", "sdk": "0"}
SCHEMA = "5c" * 32


def team(served_until: int = 1 << 62) -> None:
    """Register a town hall: a cycle of handoffs, a tool that asks, the demo model."""
    file = {"name": "file_incident", "schema": SCHEMA, "effect": "unsafe", "needs_approval": True, "origin": "function"}
    ToolSchema.objects.create(hash=SCHEMA, name="file_incident", body='{"name":"file_incident","strict":true}')
    common: dict[str, Any] = {"team": "Town Hall", "served_until": served_until, "model": "demo", "is_demo_model": True}
    agents = [
        ("Dialogue", True, ["Triage"], []),
        ("Triage", False, ["Coordinator", "Dialogue"], []),
        ("Coordinator", False, ["Dialogue"], [file]),
    ]
    for n, (name, is_entry, handoffs, tools) in enumerate(agents):
        row = {"name": name, "is_entry": is_entry, "hue": n + 1, "description": f"What {name} does"}
        Agent.objects.create(**common, **row, handoffs=json.dumps(handoffs), tools=json.dumps(tools))


def say(by: User, key: str = "flood", content: str = "Water on Elm Street", client_id: str = "1", **more: Any) -> int:
    """Say something to Dialogue, in a conversation that begins with it."""
    title = "" if client_id != "1" else "Water"
    event_ = post_message.post(
        by, key, recipient="agent:Dialogue", content=content, client_id=client_id, title=title, **more
    )
    return event_.seq


def claim(key: str = "flood") -> claims.Claim:
    """Take a conversation's oldest run, as a worker would."""
    queued = Run.objects.filter(status="queued", conversation__key=key).earliest("queued_seq")
    team = Agent.objects.filter(name=queued.agent).values_list("team", flat=True).first()
    (claimed,) = claims._take([queued.id], "host:1", team or "")
    return claimed


def ask(by: User, key: str = "flood", client_id: str = "1", **fields: Any) -> Approval:
    """Bring a run to its question; return the approval."""
    say(by, key, client_id=client_id)
    claimed = claim(key)
    call = claims.our_call_id(claimed.run, "c1", 1)
    facts = {"event": "approval.requested", "approval_id": f"ask-{key}"[:64], "tool_call": call, "tool_call_id": "c1"}
    claims.suspend(claimed, "approval", {**facts, **ASKED, **fields}, **SEALED)
    return Approval.objects.get(run=claimed.run)


def go_on(approval: Approval, output: Any = "Filed as 48-2219") -> None:
    """Do as a worker does after the decision: enter the call if approved, answer, end."""
    claimed = claim(approval.conversation.key)
    if approval.decision == "approve":
        step = {"event": "tool_step", "name": "file_incident", "tool_call": approval.tool_call, "tool_call_id": "c1"}
        claims.begin_execution(claimed, {**step, "status": "start", "args": {"street": "Elm"}})
        log.append([claimed.event({**step, "status": "success", "output": output, "duration_ms": 12})])
    payload = {"event": "output", "text": "It is filed.", "turn": 2, "final": True}
    held_run.finish(claimed, {"event": "run.done", "duration_ms": 1200}, payload)


def fail(by: User, key: str = "flood", client_id: str = "1", error: str = "ValueError: no such street") -> str:
    """Let a run fail; return its id."""
    say(by, key, client_id=client_id)
    claimed = claim(key)
    held_run.finish(claimed, {"event": "run.failed", "reason": "error", "error": error})
    return claimed.run


def claim_from_outside(key: str, payload: dict[str, Any]) -> None:
    """Let a program claim what only we may say."""
    log.append([unchecked(key, payload, token_principal("robot"))])
