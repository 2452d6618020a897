"""Turn cases into alarms: what opens, extends and closes one, with its delivery in the same transaction (law E).

Called inside `write_transaction()` after `lock_actions()`, so that two evaluations run one after the other.
"""

import json
from collections.abc import Iterable, Mapping, Sequence

from conversations.alerts import deliveries
from conversations.alerts.kinds import Case, group_of
from conversations.core.principals import SYSTEM
from conversations.models import Alarm, AlertRule

MAX_SUBJECTS = 500  # that an alarm remembers; of more it counts each look's again

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


def match(rule: AlertRule, groups: Groups, now: int, *, is_cut: bool = False) -> None:
    """Make the rule's open alarms match what is the case now: new cases are counted, alarms of ended ones are closed,
    unless these are not all cases (`is_cut`) or the alarm was opened after `now`: the clock has been set back."""
    open_alarms = {alarm.group: alarm for alarm in Alarm.objects.filter(rule=rule, closed_at=None)}
    for alarm in open_alarms.values():
        alarm.rule = rule
        cases = groups.get(alarm.group, ())
        if not cases:
            if not is_cut and alarm.opened_at <= now:
                close(alarm, str(SYSTEM), now)
            continue
        known = set(json.loads(alarm.subjects))
        _extend(alarm, [case for case in cases if case.source_id not in known], now)
        _remember(alarm, cases)
    _open(rule, {group: cases for group, cases in groups.items() if group not in open_alarms}, now)


def differs(rule: AlertRule, groups: Groups, *, is_cut: bool = False) -> bool:
    """Return whether `match` would change anything."""
    stored = dict(Alarm.objects.filter(rule=rule, closed_at=None).values_list("group", "subjects"))
    stored = {group: subjects for group, subjects in stored.items() if group in groups or not is_cut}
    return stored != {group: _subjects(cases) for group, cases in groups.items()}


def close(alarm: Alarm, by: str, now: int) -> bool:
    """Close an alarm, with a notification if the rule wants one and its opening was sent, shelved or not: else it would
    stay open for the receiver. Return whether it was open."""
    if not Alarm.objects.filter(id=alarm.id, closed_at=None).update(closed_at=now, closed_by=by, subjects="[]"):
        return False
    alarm.closed_at, alarm.closed_by = now, by
    if alarm.rule.sends_end and alarm.notified_at is not None:
        deliveries.enqueue(alarm.rule, "alarm.closed", now, alarm)
    return True


def notify(alarm: Alarm, now: int) -> None:
    """Send an open alarm: when it opens, or when its shelf ends."""
    Alarm.objects.filter(id=alarm.id).update(notified_at=now)
    deliveries.enqueue(alarm.rule, "alarm.opened", now, alarm)


def _open(rule: AlertRule, groups: Groups, now: int) -> None:
    """Open an alarm for each group, and send those that are not shelved."""
    if not groups:
        return
    rows = [
        Alarm(
            rule=rule, group=group, kind=rule.kind, cause=newest.cause[:200], conversation=newest.conversation,
            seq=newest.seq, agent=newest.agent, detail=newest.detail[:300], subjects=_subjects(cases),
            count=len(cases), opened_at=now, last_at=now,
        )
        for group, cases in groups.items() for newest in [cases[-1]]
    ]  # fmt: skip
    opened = {alarm.id: alarm for alarm in Alarm.objects.bulk_create(rows)}
    unshelved = Alarm.objects.unshelved(now).filter(rule=rule, id__gte=min(opened))
    sent = [opened[id_] for id_ in unshelved.order_by("id").values_list("id", flat=True)]
    unshelved.update(notified_at=now)
    deliveries.enqueue_all(rule, "alarm.opened", now, sent)


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
    return json.dumps(sorted({case.source_id for case in cases if case.source_id})[:MAX_SUBJECTS])
