"""Parts of the tool and agent pages, fit for drawing: every text of a team or a model goes through the renderer."""

from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from conversations import policy
from conversations.fragments import jsontree, richtext, times
from conversations.fragments.calls import STATES
from conversations.fragments.who import of_name
from conversations.models import ToolCall
from conversations.tools import diff, fields, offers, versions

_RULES: dict[policy.Rule, str] = {"allow": "is allowed", "ask": "asks a person", "deny": "is refused"}

Part = dict[str, Any]  # what a template asks for by name


def offer(one: offers.Offer) -> Part:
    """Make what is told of a tool, for those agents to whom it is alike, fit for drawing."""
    words = ("public_name", "namespace", "name", "lookup_key", "trace_name", "mcp_server", "name_there")
    rules = ("effect", "enabled", "injected", "returns", "agent_inside", "to", "origin")
    return {
        "is": one,
        "agents": [(name, of_name(name)) for name in one.agents],
        "layers": {word: richtext.inline(one.text(word)[:400]) for word in words},
        "rules": {word: richtext.inline(one.text(word)[:200]) for word in rules},
        "policy": [(richtext.inline(words), of_name(name)) for name in one.agents for words in _policy(one, name)],
        "asks": richtext.inline(one.asks[:200]),
        "approval_keys": [richtext.inline(key[:400]) for key in one.texts("approval_keys")],
        "guards": [
            (side, richtext.inline(name[:200]))
            for side in ("input", "output")
            for name in one.texts("guardrails", side)
        ],
    }


def _policy(one: offers.Offer, agent: str) -> list[str]:
    """Say how the operators' rules tighten what the code says of a tool for an agent."""
    rule: policy.Rule = "allow" if one.asks == "never" else "ask"
    effect: policy.Effect = next((word for word in policy.EFFECTS if word == one.text("effect")), "unsafe")
    rows = policy.matching(policy.rows(), agent, one.text("name"))
    held = policy.effective(policy.Declared(rule, effect), rows)
    told = [(_RULES[held.rule], held.by), (f"counts as {held.effect}", held.effect_by)]
    return [f"{words}{f': {row.note}' if row.note else ''} (set by {row.updated_by})" for words, row in told if row]


def seen(one: versions.Seen) -> Part:
    """Draw what a model sees."""
    return {
        "is": one,
        "description": richtext.plain(one.description[:8000]) if one.description else None,
        "fields": [_field(row) for row in one.fields],
        "tree": jsontree.draw(one.parameters),
        "output": jsontree.draw(one.output) if one.output else None,
    }


def _field(one: fields.Field) -> Part:
    inline = richtext.inline
    return {
        "is": one,
        "name": inline(one.name),
        "type": inline(one.type),
        "default": None if one.default is None else inline(one.default),
        "constraints": [inline(word) for word in one.constraints],
        "description": inline(one.description),
    }


def compared(before: versions.Version, body: dict[str, Any]) -> Part:
    """Draw what changed from an earlier schema to the body of another."""
    found, is_cut = versions.compared(versions.body_of(before.hash), body)
    return {"before": before, "changes": [_change(one) for one in found], "is_cut": is_cut}


def _change(one: diff.Change) -> dict[str, Markup | None]:
    sides = {"before": one.before, "after": one.after}
    return {"path": richtext.inline(one.path[:400])} | {
        side: None if text is None else richtext.inline(text) for side, text in sides.items()
    }


def call(one: ToolCall) -> Part:
    """Draw a call of a list."""
    return {
        "is": one,
        "state": STATES.get(one.status, "unknown"),
        "conversation": richtext.inline((one.conversation.title or one.conversation.key)[:120]),
        "agent": of_name(one.agent),
        "at": datetime.fromtimestamp(one.started_at / 1e6, UTC),
        "took": times.duration(one.duration_ms),
    }
