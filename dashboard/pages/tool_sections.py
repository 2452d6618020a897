"""Sections of the tool and agent pages, ready to draw: every text from a team or a model is escaped by the renderer."""

from typing import Any

from markupsafe import Markup

from conversations.core.json_diff import ValueChange
from conversations.core.micros import to_datetime
from conversations.models import ToolCall
from conversations.rendering import json_tree, richtext, timestamps
from conversations.rendering.participant_marks import mark_for_name
from conversations.rendering.tool_call_block import STATES
from conversations.runs.policy import evaluate
from conversations.tool_calls.schemas import schema_table, tool_offers, versions
from dashboard.pages.base_context import Part

_RULES: dict[evaluate.Rule, str] = {"allow": "is allowed", "ask": "requires approval", "deny": "is refused"}


def offer(tool_offer: tool_offers.ToolOffer) -> Part:
    """Return a tool as it is offered to the agents for which it is the same, ready to draw."""
    words = ("public_name", "namespace", "name", "lookup_key", "trace_name", "mcp_server", "name_there")
    rules = ("effect", "enabled", "injected", "returns", "agent_inside", "to", "origin")
    return {
        "is": tool_offer,
        "agents": [(name, mark_for_name(name)) for name in tool_offer.agents],
        "layers": {word: richtext.inline(tool_offer.text(word)[:400]) for word in words},
        "rules": {word: richtext.inline(tool_offer.text(word)[:200]) for word in rules},
        "policy": [
            (richtext.inline(words), mark_for_name(name))
            for name in tool_offer.agents
            for words in _policy(tool_offer, name)
        ],
        "asks": richtext.inline(tool_offer.asks[:200]),
        "approval_keys": [richtext.inline(key[:400]) for key in tool_offer.texts("approval_keys")],
        "guards": [
            (side, richtext.inline(name[:200]))
            for side in ("input", "output")
            for name in tool_offer.texts("guardrails", side)
        ],
    }


def _policy(tool_offer: tool_offers.ToolOffer, agent: str) -> list[str]:
    """Return how the operators' rules tighten a tool's own settings for an agent."""
    rule: evaluate.Rule = "allow" if tool_offer.asks == "never" else "ask"
    effect = evaluate.as_effect(tool_offer.text("effect"))
    rows = evaluate.matching(evaluate.rows(), agent, tool_offer.text("name"))
    held = evaluate.effective(evaluate.Declared(rule, effect), rows)
    tightened = [(_RULES[held.rule], held.by), (f"treated as {held.effect}", held.effect_by)]
    return [
        f"{statement}{f': {row.note}' if row.note else ''} (set by {row.updated_by})"
        for statement, row in tightened
        if row
    ]


def draw_schema(schema: versions.OfferedSchema) -> Part:
    """Return a schema as the model sees it, ready to draw."""
    return {
        "is": schema,
        "description": richtext.plain(schema.description[:8000]) if schema.description else None,
        "fields": [_field(row) for row in schema.fields],
        "tree": json_tree.draw(schema.parameters),
        "output": json_tree.draw(schema.output) if schema.output else None,
    }


def _field(field: schema_table.Field) -> Part:
    inline = richtext.inline
    return {
        "is": field,
        "name": inline(field.name),
        "type": inline(field.type),
        "default": None if field.default is None else inline(field.default),
        "constraints": [inline(word) for word in field.constraints],
        "description": inline(field.description),
    }


def compared(before: versions.Version, body: dict[str, Any]) -> Part:
    """Return what changed from an earlier schema to another's `body`."""
    diff = versions.compared(versions.body_of(before.hash), body)
    return {"before": before, "changes": [_change(change) for change in diff.changes], "is_cut": diff.is_cut}


def _change(change: ValueChange) -> dict[str, Markup | None]:
    """Return one difference, with both values whole."""
    sides = {"before": change.before, "after": change.after}
    return {"path": richtext.inline(change.path[:400])} | {
        side: None if parts is None else richtext.inline(parts[0].text) for side, parts in sides.items()
    }


def call(tool_call: ToolCall) -> Part:
    """Return a call for a list."""
    return {
        "is": tool_call,
        "state": STATES.get(tool_call.status, "unknown"),
        "conversation": richtext.inline((tool_call.conversation.title or tool_call.conversation.key)[:120]),
        "agent": mark_for_name(tool_call.agent),
        "at": to_datetime(tool_call.started_at),
        "took": timestamps.duration(tool_call.duration_ms),
    }
