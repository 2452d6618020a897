"""Turn cases into alarms: what opens, extends and closes one, with its delivery in the same transaction (law E).

Called inside `write_transaction()` after `lock_actions()`, so that two evaluations run one after the other.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conversations.alerts import deliveries
from conversations.alerts.kinds import Case, group_of
from conversations.core.principals import SYSTEM
from conversations.models import Alarm, AlertRule, Shelf

MAX_SUBJECTS = 500  # that an alarm remembers; of more it counts each look's anew

Groups = Mapping[str, Sequence[Case]]


def grouped(rule: AlertRule, cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Return the cases of each alarm, in order."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(group_of(rule.grouping, case), []).append(case)
    return groups


def add(rule: AlertRule, groups: Groups, now: int) -> None:
    """Open an alarm for each group, or add to the one that is open."""
    open_alarms = _open_of(rule, groups)
    _open(rule, {group: cases for group, cases in groups.items() if group not in open_alarms}, now)
    for group, alarm in open_alarms.items():
        _extend(alarm, groups.get(group, ()), now)


def match(rule: AlertRule, groups: Groups, now: int) -> None:
    """Make the rule's open alarms match what is the case now: new cases are counted, alarms of ended ones are
    closed."""
    open_alarms = {alarm.group: alarm for alarm in Alarm.objects.filter(rule=rule, closed_at=None)}
    for alarm in open_alarms.values():
        alarm.rule = rule
        cases = groups.get(alarm.group, ())
        if not cases:
            close(alarm, str(SYSTEM), now)
            continue
        known = set(json.loads(alarm.subjects))
        _extend(alarm, [case for case in cases if case.subject not in known], now)
        _remember(alarm, cases)
    _open(rule, {group: cases for group, cases in groups.items() if group not in open_alarms}, now)


def differs(rule: AlertRule, groups: Groups) -> bool:
    """Return whether `match` would change anything."""
    stored = dict(Alarm.objects.filter(rule=rule, closed_at=None).values_list("group", "subjects"))
    return stored != {group: _subjects(cases) for group, cases in groups.items()}


def close(alarm: Alarm, by: str, now: int) -> bool:
    """Close an alarm, with a notification if the rule wants one and its opening was sent. Return whether it was
    open."""
    if not Alarm.objects.filter(id=alarm.id, closed_at=None).update(closed_at=now, closed_by=by, subjects="[]"):
        return False
    alarm.closed_at, alarm.closed_by = now, by
    if alarm.rule.sends_end and alarm.notified_at is not None and alarm.group not in shelved(alarm.rule, now):
        deliveries.enqueue(alarm.rule, "alarm.closed", now, alarm)
    return True


def notify(alarm: Alarm, now: int) -> None:
    """Send an open alarm: when it opens, or when its shelf ends."""
    Alarm.objects.filter(id=alarm.id).update(notified_at=now)
    deliveries.enqueue(alarm.rule, "alarm.opened", now, alarm)


class _Everything:
    """A set that contains every group: of a rule that is shelved as a whole."""

    def __contains__(self, group: object) -> bool:
        return True


def shelved(rule: AlertRule, now: int) -> Any:  # a container of groups
    """Return the groups of a rule for which nothing is sent now."""
    groups = set(Shelf.objects.filter(rule=rule, until__gt=now).values_list("group", flat=True))
    return _Everything() if "" in groups else groups


def _open(rule: AlertRule, groups: Groups, now: int) -> None:
    """Open an alarm for each group, and send those that are not shelved."""
    if not groups:
        return
    silent = shelved(rule, now)
    rows = [
        Alarm(
            rule=rule, group=group, kind=rule.kind, cause=newest.cause[:200], conversation=newest.conversation,
            seq=newest.seq, agent=newest.agent, detail=newest.detail[:300], subjects=_subjects(cases),
            count=len(cases), opened_at=now, last_at=now, notified_at=None if group in silent else now,
        )
        for group, cases in groups.items() for newest in [cases[-1]]
    ]  # fmt: skip
    opened = Alarm.objects.bulk_create(rows)
    deliveries.enqueue_all(rule, "alarm.opened", now, [alarm for alarm in opened if alarm.notified_at])


def _extend(alarm: Alarm, cases: Sequence[Case], now: int) -> None:
    if not cases:
        return
    newest = cases[-1]
    Alarm.objects.filter(id=alarm.id).update(
        count=alarm.count + len(cases), last_at=now, conversation=newest.conversation, seq=newest.seq,
        agent=newest.agent, detail=newest.detail[:300],
    )  # fmt: skip


def _remember(alarm: Alarm, cases: Sequence[Case]) -> None:
    if (subjects := _subjects(cases)) != alarm.subjects:
        Alarm.objects.filter(id=alarm.id).update(subjects=subjects)


def _open_of(rule: AlertRule, groups: Groups) -> dict[str, Alarm]:
    rows = Alarm.objects.filter(rule=rule, closed_at=None)
    return {alarm.group: alarm for alarm in (rows.filter(group__in=list(groups)) if len(groups) < 500 else rows)}


def _subjects(cases: Sequence[Case]) -> str:
    return json.dumps(sorted({case.subject for case in cases if case.subject})[:MAX_SUBJECTS])
