"""The part of a call's page that makes it again: what would go, what it takes, and the form. Starts nothing."""

import json
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from markupsafe import Markup

from conversations import always, grants, policy, recorded_call, replayable, rights, terms
from conversations.actions import replays
from conversations.errors import Invalid, NotFound, SwitchboardError
from conversations.fragments import differences, faces, hidden, jsontree, richtext
from conversations.ids import new_id
from conversations.models import AlwaysRule
from conversations.recorded_call import Recorded
from conversations.replayable import Today
from conversations.tools import form, versions

EFFECTS = {
    "read": "It only reads: one click is enough.",
    "idempotent": "Done twice it has one effect: the recorded arguments go, under the first call’s key, on one click.",
    "unsafe": "Each call has an effect of its own.",
    "destructive": "It destroys something.",
}
TAKES = "It takes a grant to replay it, a reason, and the tool’s name typed."
SECOND = "A second person, who may decide, is asked before it runs."

Part = dict[str, Any]  # what a template asks for by name


def today_of(one: Recorded) -> Today:
    """Answer what the call's tool is today."""
    return replayable.of_call(one.row, one.told)


def part(
    request: HttpRequest, one: Recorded, today: Today, entered: Mapping[str, str], error: SwitchboardError | None = None
) -> Part:
    """Draw the form as it was filled in, and the request that it comes to."""
    schema = schema_of(today)
    sent = _object(replayable.arguments_of(one.told))
    asked, wrong = _asked(one, today, entered) if not today.why_not else ((sent or {}, "", False), None)
    wrong = error or wrong
    is_free = today.is_free(is_edited=asked[2])
    held = grants.held(request.user, grants.REPLAY) if rights.may(request.user, "replay") else frozenset()
    return {
        "today": today, "why_not": richtext.inline(today.why_not), "is_free": is_free, "is_edited": asked[2],
        "may": rights.may(request.user, "replay"), "has_grant": not held.isdisjoint({grants.ALL, today.tool}),
        "effect": EFFECTS[today.effect], "takes": "" if is_free else TAKES,
        "second": SECOND if today.needs_second else "A person is asked before it runs." if today.rule == "ask" else "",
        "notes": [richtext.inline(note) for note in today.notes], "by": _by(today),
        "request": request_parts(one, today, is_edited=asked[2]),
        "goes": jsontree.draw(asked[1]) if asked[1] else None,
        "changes": differences.draw(one.arguments, asked[1]) if asked[2] else None,
        "entries": form.entries(schema, sent, entered or None) if schema else [], "has_schema": bool(schema),
        "raw": entered.get("raw") or (json.dumps(sent, indent=2, ensure_ascii=False) if sent is not None else ""),
        "entered": entered, "client_id": new_id(), "tool": hidden.spell(today.tool),
        "error": hidden.spell(wrong.message) if wrong else "",
    }  # fmt: skip


def given(one: Recorded, today: Today, posted: Mapping[str, str]) -> dict[str, Any] | str | None:
    """Read the arguments that a form gives; None for the recorded ones, which is what an untouched form gives."""
    how = posted.get("do", "")
    if how.endswith("raw"):
        return posted.get("raw", "")
    if not any(name.startswith(form.PREFIX) for name in posted):
        return None
    schema, sent = schema_of(today), _object(replayable.arguments_of(one.told))
    untouched = {f"{form.PREFIX}{entry.name}": entry.value for entry in form.entries(schema, sent)}
    now = {name: posted.get(name, "").replace("\r\n", "\n") for name in untouched}
    return None if now == untouched and sent is not None else form.read(schema, posted)


def schema_of(today: Today) -> dict[str, Any]:
    """Answer the JSON schema that arguments have to fit today."""
    found = versions.body_of(today.schema).get("params_json_schema") if today.schema else None
    return found if isinstance(found, dict) else {}


def request_parts(one: Recorded, today: Today, *, is_edited: bool) -> list[tuple[str, Markup]]:
    """Say what a replay would be asked of the worker."""
    if not today.facts:
        return []
    limit = today.facts.get("timeout_s")
    guards = today.facts.get("guardrails")
    sides = guards if isinstance(guards, dict) else {}
    names = [str(name) for side in ("input", "output") for name in sides.get(side) or []]
    told = [
        ("Tool", today.tool), ("Lookup key", today.text("lookup_key")), ("Agent", f"{today.agent} of {today.team}"),
        ("MCP server", today.text("mcp_server")), ("Call id", "a new one"),
        ("Key", "that of the new call" if is_edited else replayable.first_of(one.row)),
        ("Enabled", today.text("enabled")), ("Guardrails", ", ".join(names) or "none"),
        ("Policy", {"allow": "allows it", "ask": "a person is asked", "deny": "denies it"}[today.rule]),
        ("Time limit", f"{limit:g} s" if isinstance(limit, int | float) else "the run's"),
        ("Memory", "as the team has it now; what the call makes of it is not kept"),
    ]  # fmt: skip
    return [(term, richtext.inline(value[:400])) for term, value in told if value]


def _asked(
    one: Recorded, today: Today, entered: Mapping[str, str]
) -> tuple[tuple[dict[str, Any], str, bool], SwitchboardError | None]:
    try:
        return replays.checked(one.told, given(one, today, entered), today.schema), None
    except Invalid as wrong:
        return ({}, "", False), wrong


def _by(today: Today) -> list[Markup]:
    told = [("asks a person", today.by), (f"counts it as {today.effect}", today.effect_by)]
    return [richtext.inline(f"The policy {words} (set by {row.updated_by})") for words, row in told if row]


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def question(call: str) -> Part | None:
    """Say what would happen to a question today: by the rules and the tool of now, against what was. Starts nothing."""
    try:
        one = recorded_call.find(call)
    except NotFound:
        return None
    today = today_of(one)
    notes = [*today.notes, *(words for words in _asked_today(today) if words)]
    glyph, words = _today(today)
    if today.rule == "ask" and not today.why_not and (rule := _rule(one, today)) is not None:
        glyph, words = "done", "It would go: an always rule approves it"
        notes.append(f"The rule is {rule.made_by}'s. It approves what agents do; a replay is asked about all the same.")
    return {"call": one.row.id, "glyph": glyph, "words": words, "notes": [richtext.inline(note) for note in notes]}


def _rule(one: Recorded, today: Today) -> AlwaysRule | None:
    """Answer the always rule that would approve the call, without counting a use."""
    about = policy.about(one.row.agent, one.tool)
    if one.call.asked is None or terms.of_call(about).no_always:
        return None
    call = always.call_of(faces.read(one.call.asked).body)._replace(schema=today.schema)
    rules, is_destructive = always.rules().get(call.lookup_key, ()), today.effect == "destructive"
    return next((rule for rule in rules if always.fits(rule, call, is_destructive=is_destructive)), None)


def _today(today: Today) -> tuple[str, str]:
    if today.rule == "deny":
        return "rejected", "It would be refused, and nobody asked"
    if not today.facts or today.why_not:
        return "unknown", "Nothing would be called"
    return (
        ("waiting", "A person would be asked") if today.rule == "ask" else ("done", "It would go, and nobody be asked")
    )


def _asked_today(today: Today) -> list[str]:
    told = [today.why_not]
    if today.by is not None and today.rule == "ask":
        told.append(f"The operators’ policy asks (set by {today.by.updated_by}).")
    if today.effect_by is not None:
        told.append(f"The operators’ policy counts it as {today.effect} (set by {today.effect_by.updated_by}).")
    if today.needs_second:
        told.append("It is destructive, so a replay of it is decided by a second person.")
    return told
