"""Each field of each kind that the fold reads: who may say it, what it changes, what binds it; nothing else changes."""

from __future__ import annotations

import importlib
import json
import pkgutil
from typing import Any

import msgspec
import pytest

from agents_app.run_scope import RunScope, enter_scope
from agents_app.teams.definition import Team
from agents_app.worker.run_bus import PUBLISHABLE, RunBus
from conversations.access import permissions
from conversations.access.accounts import tokens
from conversations.core import principals
from conversations.core.db_threads import DatabaseThreads
from conversations.core.errors import NotAllowed
from conversations.core.ids import new_id
from conversations.core.principals import REDIS, SYSTEM
from conversations.events import log, payload, projections, registry
from conversations.events.event_type import TYPES
from conversations.models import (
    Agent,
    Approval,
    AutoApprovalRule,
    Conversation,
    Grant,
    Participant,
    Policy,
    Response,
    Role,
    Run,
    Token,
    ToolCall,
)
from conversations.runs import claims
from switchboard.bus import BusMessage
from tests.support.cast import cast
from tests.support.claiming import served_agents
from tests.support.event_types import EXAMPLES, TABLE
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)


def structs_of_folds() -> list[type[msgspec.Struct]]:
    """Return what bodies are decoded into by the log and its folds, wherever in those packages it is declared."""
    names = [
        payload.__name__,
        *(m.name for m in pkgutil.iter_modules(projections.__path__, f"{projections.__name__}.")),
    ]
    modules = [vars(importlib.import_module(name)) for name in names]
    decoded = {value.type for module in modules for value in module.values() if isinstance(value, msgspec.json.Decoder)}
    structs = {value for module in modules for value in module.values() if isinstance(value, type)}
    return sorted((struct for struct in structs if struct in decoded), key=str)


READ = structs_of_folds()
FOLDED = {field.name for struct in READ for field in msgspec.structs.fields(struct)} | {"input"}
FIELDS = sorted(FOLDED.union(*(rule.fields.split() for rule in TABLE)))  # what only pages or `verify` read, too


def test_every_field_that_the_fold_reads_is_in_the_table():
    named = {field for rule in TABLE for field in rule.fields.split()}
    declared = set().union(*(registry.declared(kind).fields for kind in registry.names()))

    assert named >= FOLDED, f"a fold reads fields that no rule names: {FOLDED - named}"
    assert named <= FOLDED | declared, f"rules name fields that no event type declares: {named - FOLDED - declared}"


def test_every_fold_decodes_into_structs_that_are_known_here():
    """What a fold reads by other means would be missing above: none reads JSON as a dict, but for `usage`."""
    decoders = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in map(importlib.import_module, sorted({struct.__module__ for struct in READ}))
        for name, value in vars(module).items()
        if isinstance(value, msgspec.json.Decoder) and value.type not in READ
    }

    assert decoders == {"payload._loose", "payload._loose_metadata", "turns._usage"}  # the same fields of any type


def test_every_kind_with_a_fold_changes_something_by_the_table():
    changing = {kind for rule in TABLE if not rule.changes.startswith("nothing") for kind in rule.kinds.split()}

    assert {kind for kind, type_ in TYPES.items() if type_.fold is not None} <= changing | {"conversation.moved"}


def test_every_kind_is_in_the_table():
    kinds = {kind for rule in TABLE for kind in rule.kinds.split()} - {"every", "kind"}
    missing, unknown = set(registry.names()) - kinds, kinds - set(registry.names())

    assert not missing, f"add a Rule for {sorted(missing)} to TABLE in tests/support/event_types.py"
    assert not unknown, f"TABLE in tests/support/event_types.py names {sorted(unknown)}: no such event type"


@pytest.fixture
def real() -> claims.Claim:
    """Have a question, a call, a response and a run in x; a run that goes on in c, in which somebody strange spoke."""
    cast()
    Agent.objects.create(name="Clerk", team="t", is_entry=True)
    tokens.make_token(SYSTEM, "mallory", "agent")
    run = {"run_id": "run-x", "agent": "Clerk"}
    request = {"approval_id": "ask-x", "tool_call": "call-x", "tool_call_id": "c", "name": "pay", "args_raw": "{}"}
    queued = {"event": "run.queued", "run_kind": "agent", "input_seq": 0, "response_id": "resp-x"}
    events = [queued, {"event": "approval.requested", **request}]
    log.append([log.from_internal("x", {**run, **event}, principals.run_principal("Clerk")) for event in events])
    message = {"type": "message", "sender": "user:ada", "recipient": "agent:Clerk", "content": "hello"}
    log.append([log.from_internal("c", message, principals.user_principal("ada"))])
    log.append([log.from_internal("c", {"event": "log", "text": "psst"}, REDIS)])
    claimed = claims.claim("w", served_agents("t", "Clerk"), at_most=2)
    (claim,) = [candidate for candidate in claimed if candidate.conversation == "c"]
    return claim


def protected_rows() -> list[Any]:
    """Return what only people's acts and the run's worker may change."""
    steered = ("state", "owner", "handler", "is_demo", "paused_seq", "owned_seq", "copied_seq")
    everything = [
        list(m.objects.order_by("pk").values()) for m in (Approval, Response, Grant, Role, Policy, AutoApprovalRule)
    ]
    return [
        everything,
        list(Run.objects.filter(id__in=("run-x", *Run.objects.filter(kind="agent", status="running").values("id")))
             .order_by("id").values("id", "status", "agent", "attempt", "conversation")),
        list(ToolCall.objects.filter(run__isnull=False).order_by("id").values()),
        list(Conversation.objects.order_by("id").values("key", *steered)),
        list(Token.objects.order_by("id").values("name", "role", "agent", "revoked_at")),
        list(Participant.objects.filter(is_named=True).order_by("name").values("name", "conversation")),
    ]  # fmt: skip


THEIRS: dict[str, Any] = {
    "approval_id": "ask-x", "tool_call": "call-x", "run_id": "run-x", "response_id": "resp-x",
    "recipient": "agent:mallory",
    "sender": "user:ada", "agent": "Clerk", "by": "user:ada", "decision": "approve", "handler": "agent:mallory",
    "parent": "x", "forked_at": 1, "demo": True, "title": "Mine", "status": "success", "tool_call_id": "c",
    "calls": ["call-x"], "attempt": 9, "to": "admin", "input_seq": 1, "store": True, "rule": "rule-1", "turn": 1,
    "metadata": {"hop": 0}, "usage": {"input_tokens": 1}, "index": 0, "duration_ms": 1, "output_bytes": 1,
}  # fmt: skip


def forged(kind: str) -> list[dict[str, Any]]:
    """Make one payload of a kind with everything that is another's, and one for each field alone."""
    whole = {
        field: THEIRS.get(field, "x") for field in FIELDS if field not in ("id", "event", "type", "conversation_id")
    }
    bare = {"event": kind} if kind not in ("message", "control") else {"type": kind}
    example = {**EXAMPLES[kind][0], **bare} if kind in EXAMPLES else bare
    alone = [example | {field: value} for field, value in whole.items()]
    return [{**body, "conversation_id": "c", "id": new_id()} for body in (bare | whole, bare | THEIRS, *alone)]


OUTSIDE = {
    "token": principals.token_principal("mallory"),
    "redis": REDIS,
    "import": principals.import_principal("file"),
}


@pytest.mark.slow
@pytest.mark.parametrize("door", [*OUTSIDE, "tool"])
def test_nobody_else_changes_anything_by_any_field_of_any_kind(real, door):
    before, bus = protected_rows(), RunBus(DatabaseThreads("posts"))
    bus.enter(real, Team(name="t", agents=[], entry=[]))

    for kind in registry.names():
        if door == "tool":
            for forgery in forged(kind) if kind in PUBLISHABLE else forged(kind)[:2]:  # the rest is refused by its kind
                with enter_scope(RunScope("c", real.run)):
                    publish(bus, forgery, is_taken=kind in PUBLISHABLE)
        else:
            log.append([unchecked("c", forgery, OUTSIDE[door]) for forgery in forged(kind)])
        assert protected_rows() == before, kind
    bus.leave(real)


@pytest.mark.slow
@pytest.mark.any_database
def test_what_a_tool_or_an_mcp_server_answers_changes_nothing_but_its_own_call(real):
    before = protected_rows()

    for n, kind in enumerate(registry.names()):
        for output in forged(kind)[:2]:
            step = {"event": "tool_step", "name": "look_up", "tool_call": f"mine-{n}", "tool_call_id": f"c-{n}"}
            step |= {"mcp_server": "files"} if n % 2 else {}
            answer = {"status": "success", "output": output, "result_summary": json.dumps(output)}
            log.append([real.event(step | {"status": "start"}), real.event(step | answer)])
            ToolCall.objects.filter(name="look_up").delete()
            assert protected_rows() == before, kind


def publish(bus: RunBus, body: dict[str, Any], *, is_taken: bool) -> None:
    """Publish from inside a run; what is not taken is refused."""
    message = BusMessage("stream:c", body, new_id())
    if is_taken:
        bus.publish("stream:c", message)
        return
    with pytest.raises(NotAllowed):
        bus.publish("stream:c", message)


@pytest.mark.parametrize("role", ["viewer", "operator", "approver", "auditor"])
def test_of_people_only_an_admin_publishes_at_all(role):
    tokens.make_token(SYSTEM, role, role)

    assert not permissions.has_permission(cast()[role], "publish")
    assert not permissions.has_permission(principals.token_principal(role), "publish")
