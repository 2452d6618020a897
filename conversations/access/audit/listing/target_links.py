"""Where what an entry is about can be looked at, while it exists and whoever looks may. One query a kind."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

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

Found = Mapping[str, str]  # names → addresses
KINDS: dict[str, str] = {  # kind of a target → the right to look at it
    "conversation": "view", "approval": "view", "call": "view", "run": "view", "rule": "view", "view": "view",
    "user": "people", "token": "tokens", "policy": "policies", "policies": "policies", "quarantine": "quarantine",
    "alert": "alerts",
}  # fmt: skip
PLACES = {  # name in the correlation → kind of a target
    "conversation": "conversation", "approval": "approval", "approval_id": "approval", "call": "call",
    "tool_call": "call", "run": "run", "run_id": "run", "rule": "rule",
}  # fmt: skip
EXPORTS = {"tool-calls": "calls", "audit": "audit"}  # file → page of what it holds


def hrefs(targets: Iterable[str], may: Collection[str]) -> dict[str, str]:
    """Return addresses by target, for those that lead somewhere."""
    names: dict[str, set[str]] = defaultdict(set)
    for target in targets:
        kind, _, name = target.partition(":")
        if KINDS.get(kind) in may:
            names[kind].add(name)
    return {
        f"{kind}:{name}" if name else kind: href
        for kind, kind_names in names.items()
        for name, href in _LOOKS[kind](kind_names).items()
    }


def of_export(target: str, correlation: Mapping[str, Any]) -> str:
    """Return the address of the list that was exported; empty when the entry is about none."""
    name, _, form = target.partition(".")
    query = correlation.get("query", "")
    if form not in ("csv", "jsonl") or name not in EXPORTS or not isinstance(query, str):
        return ""
    return f"{reverse(EXPORTS[name])}?{query}"


def event(href: str, seq: object) -> str:
    """Return the address of an event within a conversation's; what is no seq leaves the conversation."""
    return f"{href}?event={seq}#e{seq}" if type(seq) is int and seq > 0 else href


def _conversations(keys: set[str]) -> Found:
    visible = Conversation.objects.visible().filter(key__in=keys).values_list("key", flat=True)
    return {key: reverse("conversation", args=[key]) for key in visible}


def _runs(ids: set[str]) -> Found:
    runs = Run.objects.filter(id__in=ids, conversation__is_staged=False)
    rows = runs.values_list("id", "conversation__key", "queued_seq")
    return {id_: event(reverse("conversation", args=[key]), seq) for id_, key, seq in rows}


def _approvals(ids: set[str]) -> Found:
    existing = Approval.objects.filter(id__in=ids, conversation__is_staged=False).values_list("id", flat=True)
    return _reversed("approval", existing)


def _calls(ids: set[str]) -> Found:
    existing = ToolCall.objects.filter(id__in=ids, conversation__is_staged=False).values_list("id", flat=True)
    return _reversed("call", existing)


def _rules(ids: set[str]) -> Found:
    existing = AutoApprovalRule.objects.filter(id__in=ids).values_list("id", flat=True)
    return {id_: f"{reverse('approval-rules')}?{urlencode({'rule': id_})}" for id_ in existing}


def _views(names: set[str]) -> Found:
    rows = SavedView.objects.filter(name__in=names).values_list("name", "query")
    return {name: f"{reverse('calls')}?{query}" for name, query in rows}


def _people(names: set[str]) -> Found:
    existing = User.objects.filter(username__in=names).values_list("username", flat=True)
    return {name: f"{reverse('people')}#{name}" for name in existing}


def _tokens(names: set[str]) -> Found:
    existing = Token.objects.filter(name__in=names).values_list("name", flat=True)
    return {name: f"{reverse('tokens')}?{urlencode({'q': name})}" for name in existing}


def _policies(names: set[str]) -> Found:
    return dict.fromkeys(names, reverse("policies"))


def _quarantined(numbers: set[str]) -> Found:
    ids = [int(number) for number in numbers if number.isascii() and number.isdigit() and len(number) < 19]
    existing = Quarantine.objects.filter(id__in=ids).values_list("id", flat=True)
    return {str(id_): reverse("quarantined", args=[id_]) for id_ in existing}


def _alerts(numbers: set[str]) -> Found:
    ids = [int(number) for number in numbers if number.isascii() and number.isdigit() and len(number) < 19]
    existing = AlertRule.objects.filter(id__in=ids, removed_at=None).values_list("id", flat=True)
    return {str(id_): f"{reverse('alerts')}#rule-{id_}" for id_ in existing}


def _reversed(route: str, ids: Iterable[str]) -> Found:
    """Write addresses; an id that no address can hold has none."""
    links = {}
    for id_ in ids:
        try:
            links[id_] = reverse(route, args=[id_])
        except NoReverseMatch:
            continue
    return links


_LOOKS: dict[str, Callable[[set[str]], Found]] = {
    "conversation": _conversations, "approval": _approvals, "call": _calls, "run": _runs, "rule": _rules,
    "view": _views, "user": _people, "token": _tokens, "policy": _policies, "policies": _policies,
    "quarantine": _quarantined, "alert": _alerts,
}  # fmt: skip
