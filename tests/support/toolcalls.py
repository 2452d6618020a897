"""Tool calls for tests of the list: those of the recorded samples, and ours with everything that can be told of one.

`brute` answers what a filter should find, from the rows and bodies alone.
"""

import json
import random
from dataclasses import replace
from functools import lru_cache
from typing import Any

from django.core.management import call_command

from conversations.core import principals
from conversations.core.principals import Principal
from conversations.events import log
from conversations.events.log import NewEvent
from conversations.models import Event, ToolCall
from conversations.search import searchable_text
from conversations.tool_calls.listing.filters import CallFilters
from tests.support import searching
from tests.support.recorded import THEIRS, own_files
from tests.support.unchecked import from_text

CHARACTER = "橋"  # of a script without spaces: anywhere in a run
WORDS = ("refund", "عمر", CHARACTER, "100%_!", "PLAIN", "quot*", "größe refund", "to")
NEAR = 12  # events before and after a call that are around it
MARIA, ROBOT = principals.user_principal("maria"), principals.token_principal("robot")


def event(key: str, payload: dict[str, Any], by: Principal = principals.SYSTEM) -> NewEvent:
    """Make an event as it comes in."""
    body = json.dumps({**payload, "conversation_id": key}, ensure_ascii=False)
    return from_text(f"stream:{key}", body, by)


def step(number: int, **fields: Any) -> dict[str, Any]:
    """Make a step of a call of an external agent."""
    return {"event": "tool_step", "name": "look_up", "agent": "Desk", "tool_call_id": f"call-{number}", **fields}


def call(key: str, number: int, *, status: str = "success", **fields: Any) -> list[NewEvent]:
    """Make a call of an external agent with its end."""
    agent = fields.pop("agent", "Desk")
    name = fields.pop("name", "look_up")
    args = fields.pop("args", {"number": number})
    start = step(number, agent=agent, name=name, args=args, status="start")
    return [event(key, start, ROBOT), event(key, step(number, agent=agent, name=name, status=status, **fields), ROBOT)]


def ours(key: str, run: str, number: int, *, decision: str = "", **fields: Any) -> list[NewEvent]:
    """Make a call of ours: asked about and decided where `decision` says how, else entered at once."""
    facts = {"run_id": run, "agent": "Permit Desk", "turn": 1}
    named = {
        **facts, "tool_call": f"{key}-{run}-{number}", "tool_call_id": f"c{number}", "name": "refund",
        "qualified_name": "billing.refund", "namespace": "billing", "origin": "function", "effect": "unsafe", **fields,
    }  # fmt: skip
    approval = {**named, "approval_id": f"a-{key}-{run}-{number}"}
    payloads = []
    if decision:
        payloads = [{"event": "approval.requested", **approval}]
        payloads += [{"event": "approval.decided", **approval, "decision": decision, "by": str(MARIA)}]
    if decision != "reject":
        payloads += [{"event": "tool_step", **named, "status": "start"}]
        payloads += [
            {
                "event": "tool_step",
                **named,
                "status": "success",
                "output": "paid",
                "output_bytes": 4,
                "duration_ms": 31.5,
            }
        ]
    by = {"approval.decided": MARIA}
    steps = [event(key, payload, by.get(payload["event"], principals.SYSTEM)) for payload in payloads]
    return [event(key, {"event": "run.queued", **facts, "input_seq": 1}), *steps]


def record() -> None:
    """Store the samples and ours: external agents' and our own, in every status, with text of several scripts."""
    for file in own_files() + sorted(THEIRS.glob("tau*/*claude*.json*")) + sorted(THEIRS.glob("tau-bench/*.jsonl")):
        call_command("import", file, conversation=file.name, verbosity=0)
    dice = random.Random(3)
    for number in range(60):
        status = dice.choice(["success", "success", "error", "timeout"])
        words = dice.choice(["refund to عمر", "橋の点検", "{'quoted'} 100%_!", "plain words", "Größe"])
        outcome = {"error": f"no {words}"} if status == "error" else {"result_summary": words * dice.randint(1, 30)}
        log.append(
            call(
                f"desk-{number % 4}",
                number,
                status=status,
                duration_ms=dice.choice([0, 0.4, 3, 17, 400, 90_000.5]),
                agent=dice.choice(["Desk", "Other Desk", "مكتب"]),
                name=dice.choice(["look_up", "refund", "検索"]),
                args={"who": words},
                **outcome,
            )
        )
    for number, decision in enumerate(["", "approve", "reject", "approve", ""]):
        more = {"origin": "mcp", "mcp_server": "city"} if number % 2 else {}
        more |= {"replay_of": "desk-0-run-1-1"} if number == 4 else {}
        log.append(ours("desk-1", f"run-{number}", number, decision=decision, **more))
    refused = {"event": "policy.refused", "run_id": "run-9", "agent": "Permit Desk", "tool_call": "blocked-1"}
    log.append([event("desk-2", {**refused, "name": "close", "reason": "denied"})])
    log.append([event("desk-3", step(900, status="start", args={"open": True}), ROBOT)])
    searching.catch_up()


def brute(filters: CallFilters) -> list[str]:
    """Return the ids that these filters should find, in order, by looking at every call."""
    matching = [call_row for call_row in ToolCall.objects.select_related("conversation") if _fits(call_row, filters)]
    matching.sort(
        key=lambda call_row: (call_row.started_at, call_row.conversation_id, call_row.called_seq), reverse=True
    )
    return [call_row.id for call_row in matching]


def _fits(call_row: ToolCall, filters: CallFilters) -> bool:
    values = {
        "agent": call_row.agent, "tool": call_row.name, "qualified": call_row.qualified_name, "origin": call_row.origin,
        "server": call_row.mcp_server, "status": call_row.status, "by": call_row.approver,
    }  # fmt: skip
    exact = (
        (filters.conversation, call_row.conversation.key),
        (filters.run, call_row.run),
        (filters.call_id, call_row.call_id),
    )
    ranges = (
        (filters.min_ms, filters.max_ms, call_row.duration_ms),
        (filters.min_bytes, filters.max_bytes, call_row.output_bytes),
        (filters.since, filters.until, call_row.started_at),
    )
    replayed = {"": True, "yes": call_row.replay_of is not None, "no": call_row.replay_of is None}[filters.replayed]
    return (
        all(values[name] in getattr(filters, name) for name in CallFilters.many if getattr(filters, name))
        and all(wanted in ("", has) for wanted, has in exact)
        and all(_within(*ends) for ends in ranges)
        and replayed
        and (not filters.q or _says(call_row, filters))
    )


def _within(least: float | None, most: float | None, value: float | None) -> bool:
    if least is None and most is None:
        return True
    return value is not None and (least is None or value >= least) and (most is None or value <= most)


def _says(call_row: ToolCall, filters: CallFilters) -> bool:
    """Hold every word against the events of a call, and the messages around where those are asked for too: a beginning
    for words with a star, whole words else."""
    events = Event.objects.filter(conversation=call_row.conversation)
    looked = events.filter(seq__in=[call_row.called_seq, call_row.finished_seq or 0])
    if filters.where == "around":
        near = events.filter(seq__gte=call_row.called_seq - NEAR, seq__lte=call_row.called_seq + NEAR)
        looked |= near.filter(kind__in=("message", "output", "user_message"))
    for kind, body in looked.values_list("kind", "body"):
        if all(_holds(_inside(kind, body), word) for word in filters.q.split()):
            return True
    return False


@lru_cache(maxsize=4096)
def _inside(kind: str, body: str) -> str:
    """Return what an event says, folded, a space around each word."""
    text = " ".join(part.text for part in searchable_text.parts_of(kind, searchable_text.read(body)))
    return f" {' '.join(searching.plain(text).split())} "


def _holds(text: str, word: str) -> bool:
    if word == CHARACTER:
        return word in text
    return searching.holds(text, searching.words_of(word.removesuffix("*")), is_prefix=word.endswith("*"))


def drawn_filters(dice: random.Random) -> CallFilters:
    """Draw one to four filters, with values that some calls have and some that none has."""
    calls = list(ToolCall.objects.order_by("started_at", "called_seq"))
    earlier, other = sorted(dice.sample(calls, 2), key=lambda call: call.started_at)
    agents, statuses = ({earlier.agent: 0, other.agent: 0}, {earlier.status: 0, other.status: 0})
    known: dict[str, Any] = {
        "agent": tuple(agents), "tool": (earlier.name,), "qualified": (other.qualified_name,),
        "origin": (earlier.origin or "function",), "server": ("city",), "status": tuple(statuses),
        "by": (str(MARIA),), "replayed": dice.choice(["yes", "no"]), "conversation": earlier.conversation.key,
        "run": earlier.run or "run-1", "call_id": earlier.call_id or "none", "since": earlier.started_at,
        "until": other.started_at, "min_ms": dice.choice([0.0, 0.4, 16.0, 17.0, 401.0]),
        "max_ms": dice.choice([0.0, 17.0, 31.5, 1e6]), "min_bytes": dice.choice([1.0, 5.0, 200.0]),
        "max_bytes": dice.choice([4.0, 64.0, 1e6]), "q": dice.choice(WORDS),
    }  # fmt: skip
    chosen = dice.sample(sorted(known), dice.randint(1, 4))
    known["where"] = dice.choice(["", "around"]) if "q" in chosen else ""
    crossed = {"max_ms", "max_bytes"} if {"min_ms", "min_bytes"} & set(chosen) else set()
    return replace(CallFilters(), **{name: known[name] for name in (*chosen, "where") if name not in crossed})
