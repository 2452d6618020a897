"""Links and names for the targets of entries, as far as they exist and the reader may see them. One query per kind, two
if a call is to be named."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from django.urls import NoReverseMatch, reverse
from django.utils.http import urlencode

from conversations.models import (
    AlertRule,
    Approval,
    AutoApprovalRule,
    Conversation,
    Quarantine,
    Run,
    SavedView,
    Token,
    ToolCall,
    User,
)

TITLE = 80  # characters of a conversation's title


class TargetPlace(NamedTuple):
    """A target's address and name."""

    href: str
    words: str


LinksByName = Mapping[str, TargetPlace]  # by name
KINDS: dict[str, str] = {  # kind of a target → the right to look at it
    "conversation": "view", "approval": "view", "call": "view", "run": "view", "rule": "view", "view": "view",
    "user": "people", "token": "tokens", "policy": "policies", "policies": "policies", "quarantine": "quarantine",
    "budget": "policies", "alert": "alerts",
}  # fmt: skip
PLACES = {  # name in the correlation → kind of a target
    "conversation": "conversation", "approval": "approval", "approval_id": "approval", "call": "call",
    "tool_call": "call", "run": "run", "run_id": "run", "rule": "rule",
}  # fmt: skip
EXPORTS = {"tool-calls": "calls", "audit": "audit"}  # file → page of what it holds


def places(targets: Iterable[str], may: Collection[str]) -> dict[str, TargetPlace]:
    """Return the places of those targets that have one, by target."""
    names: dict[str, set[str]] = defaultdict(set)
    for target in targets:
        kind, _, name = target.partition(":")
        if KINDS.get(kind) in may:
            names[kind].add(name)
    return {
        f"{kind}:{name}" if name else kind: place
        for kind, kind_names in names.items()
        for name, place in _LOOKS[kind](kind_names).items()
    }


def of_export(target: str, correlation: Mapping[str, Any]) -> str:
    """Return the address of the exported list; empty if the entry is not about an export."""
    name, _, form = target.partition(".")
    query = correlation.get("query", "")
    if form not in ("csv", "jsonl") or name not in EXPORTS or not isinstance(query, str) or query.endswith("…"):
        return ""  # "…": the entry has only its beginning
    return f"{reverse(EXPORTS[name])}?{query}"


def event(href: str, seq: object) -> str:
    """Return the address of an event within a conversation's address; without a valid seq, the conversation's."""
    return f"{href}?event={seq}#e{seq}" if type(seq) is int and seq > 0 else href


def _conversations(keys: set[str]) -> LinksByName:
    visible = Conversation.objects.visible().filter(key__in=keys).values_list("key", "title")
    return {
        key: TargetPlace(reverse("conversation", args=[key]), f"Conversation {_title(title, key)}")
        for key, title in visible
    }


def _runs(ids: set[str]) -> LinksByName:
    runs = Run.objects.filter(id__in=ids, conversation__is_staged=False)
    rows = runs.values_list("id", "conversation__key", "queued_seq", "agent", "conversation__title")
    return {
        id_: TargetPlace(event(reverse("conversation", args=[key]), seq), f"Run of {agent} in {_title(title, key)}")
        for id_, key, seq, agent, title in rows
    }


def _approvals(ids: set[str]) -> LinksByName:
    existing = Approval.objects.filter(id__in=ids, conversation__is_staged=False)
    rows = list(existing.values_list("id", "tool_call", "conversation__key", "conversation__title"))
    tools = dict(ToolCall.objects.filter(id__in=[call for _, call, _, _ in rows]).values_list("id", "name"))
    return _reversed(
        "approval",
        {id_: f"Approval of {tools.get(call, 'a call')} in {_title(title, key)}" for id_, call, key, title in rows},
    )


def _calls(ids: set[str]) -> LinksByName:
    existing = ToolCall.objects.filter(id__in=ids, conversation__is_staged=False)
    rows = existing.values_list("id", "name", "conversation__key", "conversation__title")
    return _reversed("call", {id_: f"Call of {name} in {_title(title, key)}" for id_, name, key, title in rows})


def _rules(ids: set[str]) -> LinksByName:
    existing = AutoApprovalRule.objects.filter(id__in=ids).values_list("id", "tool")
    return {
        id_: TargetPlace(f"{reverse('approval-rules')}?{urlencode({'rule': id_})}", f"Auto-approval rule for {tool}")
        for id_, tool in existing
    }


def _views(names: set[str]) -> LinksByName:
    rows = SavedView.objects.filter(name__in=names).values_list("name", "query")
    return {name: TargetPlace(f"{reverse('calls')}?{query}", f"Saved view {name}") for name, query in rows}


def _people(names: set[str]) -> LinksByName:
    existing = User.objects.filter(username__in=names).values_list("username", flat=True)
    return {name: TargetPlace(f"{reverse('people')}#{name}", f"Person {name}") for name in existing}


def _tokens(names: set[str]) -> LinksByName:
    existing = Token.objects.filter(name__in=names).values_list("name", flat=True)
    return {name: TargetPlace(f"{reverse('tokens')}?{urlencode({'q': name})}", f"Token {name}") for name in existing}


def _policies(names: set[str]) -> LinksByName:
    return {name: TargetPlace(reverse("policies"), f"Policy {name}" if name else "Policies") for name in names}


def _budgets(names: set[str]) -> LinksByName:
    return {name: TargetPlace(reverse("budgets"), f"Budget {name}") for name in names}


def _quarantined(numbers: set[str]) -> LinksByName:
    ids = [int(number) for number in numbers if number.isascii() and number.isdigit() and len(number) < 19]
    existing = Quarantine.objects.filter(id__in=ids).values_list("id", flat=True)
    return {str(id_): TargetPlace(reverse("quarantined", args=[id_]), f"Quarantined message {id_}") for id_ in existing}


def _alerts(numbers: set[str]) -> LinksByName:
    ids = [int(number) for number in numbers if number.isascii() and number.isdigit() and len(number) < 19]
    existing = AlertRule.objects.filter(id__in=ids, removed_at=None).values_list("id", "name")
    return {str(id_): TargetPlace(f"{reverse('alerts')}#rule-{id_}", f"Alert rule {name}") for id_, name in existing}


def _title(title: str, key: str) -> str:
    return f"“{title[:TITLE]}”" if title else key


def _reversed(route: str, words: Mapping[str, str]) -> LinksByName:
    """Return the addresses by name; an id that no address can contain has none."""
    links = {}
    for id_, text in words.items():
        try:
            links[id_] = TargetPlace(reverse(route, args=[id_]), text)
        except NoReverseMatch:
            continue
    return links


_LOOKS: dict[str, Callable[[set[str]], LinksByName]] = {
    "conversation": _conversations, "approval": _approvals, "call": _calls, "run": _runs, "rule": _rules,
    "view": _views, "user": _people, "token": _tokens, "policy": _policies, "policies": _policies,
    "budget": _budgets, "quarantine": _quarantined, "alert": _alerts,
}  # fmt: skip
