"""Take out what is older than it may be kept, in short transactions beside live work. Called by the command `expire`.

What is on legal hold stays, and so does what a run at work may need: a later call finds it again.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple

from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import Conflict
from conversations.events.log.refold import Refold
from conversations.events.types.redaction import REDACTED
from conversations.models import Agent, Conversation, Event
from conversations.redaction import legal_holds, redact, selection

PAGE = 200  # events of one transaction
SHARE = 1.0  # seconds of rest for each second of work

Progress = Callable[[int, int], None]  # expired, looked at


class RetentionRule(NamedTuple):
    """What is kept for how long. Empty: of any kind, in any conversation, of any team."""

    older_than: int  # µs UTC
    kinds: Sequence[str] = ()
    conversation: str = ""
    team: str = ""  # of the agent that handles the conversation


def matching(rule: RetentionRule, after: int = 0) -> Sequence[tuple[int, int, int, str]]:
    """Return the next page of events that a rule takes: row, conversation's row, seq, kind."""
    events = Event.objects.filter(pk__gt=after, at__lt=rule.older_than, salt__isnull=False).exclude(kind=REDACTED)
    events = events.filter(conversation__is_staged=False)
    if rule.kinds:
        events = events.filter(kind__in=rule.kinds)
    if rule.conversation:
        events = events.filter(conversation__key=rule.conversation)
    if rule.team:
        agents = list(Agent.objects.filter(team=rule.team).values_list("name", flat=True))
        events = events.filter(conversation__handler__in=agents)
    return list(events.order_by("pk").values_list("pk", "conversation_id", "seq", "kind")[:PAGE])


def preview(rule: RetentionRule) -> tuple[Counter[str], int]:
    """Count by kind what a rule would take, and how many of these are held back now."""
    counts: Counter[str] = Counter()
    held = 0
    after = 0
    while page := matching(rule, after):
        after = page[-1][0]
        for conversation, rows in groupby(page, key=lambda row: row[1]):
            kinds = [kind for *_, kind in rows]
            counts.update(kinds)
            held += len(kinds) if _is_held(conversation) else 0
    return counts, held


def expire(by: Who, rule: RetentionRule, reason: str, progress: Progress) -> tuple[int, int]:
    """Take them out; return how many events lost their words, and how many were held back."""
    reason = legal_holds.checked_reason(reason)
    touched: set[int] = set()
    expired = held = after = 0
    try:
        while page := matching(rule, after):
            began = time.monotonic()
            after = page[-1][0]
            for conversation, rows in groupby(sorted(page, key=lambda row: row[1:3]), key=lambda row: row[1]):
                seqs = [seq for _, _, seq, _ in rows]
                if _expire(by, conversation, seqs, rule, reason):
                    touched.add(conversation)
                    expired += len(seqs)
                else:
                    held += len(seqs)
            progress(expired, expired + held)
            time.sleep((time.monotonic() - began) * SHARE)
    finally:  # captions and rows are those of what stands there now
        for row in Conversation.objects.filter(pk__in=touched):
            Refold(row.pk, row.key).run()
    return expired, held


def _expire(by: Who, conversation: int, seqs: Sequence[int], rule: RetentionRule, reason: str) -> bool:
    """Take out events of one conversation; return False where a hold is in force or a run is at work."""
    if _is_held(conversation):
        return False  # nobody's wish is refused: no entry
    row = Conversation.objects.get(pk=conversation)
    target = f"conversation:{row.key}"
    try:
        with audited_action(by, "expire", target, right="redact") as principal:
            part = selection.part_of(row, seqs)
            redact.lock([part])
            legal_holds.require_none([row.pk])
            redact.require_idle([part])
            redact.erase(part, principal, reason, older_than=rule.older_than, refolds=False)
            facts = {"conversation": row.key, "seqs": part.seqs}
            chain.enter(principal, "expire", target, reason=reason, correlation=facts)
    except Conflict:
        return False
    return True


def _is_held(conversation: int) -> bool:
    try:
        legal_holds.require_none([conversation])
        row = Conversation.objects.get(pk=conversation)
        redact.require_idle([selection.Part(row, ())])
    except Conflict:
        return True
    return False
