"""What alarms and alerts say of events that are redacted. Called by `redact`, and by `scope`, which counts it.

A detail is taken out if its own event is redacted; that of a run that looks stuck always: it tells of many events.
A message keeps the conversation and event of which it was made; its alarm may be about another conversation by now.
"""

import json
from collections.abc import Collection, Iterator
from typing import Any

from django.db.models import Q

from conversations.models import Alarm, AlertDelivery, Conversation

_OF_MANY_EVENTS = "run_stuck"
_UNSENT = ("waiting", "failed")  # a dead letter can be sent again


def alarms_about(row: Conversation, seqs: Collection[int]) -> list[int]:
    """Return the ids of the alarms whose detail tells of these events."""
    alarms = Alarm.objects.filter(conversation=row.key).exclude(detail="")
    return [pk for pk, seq, kind in alarms.values_list("pk", "seq", "kind") if seq in seqs or kind == _OF_MANY_EVENTS]


def erase(row: Conversation, seqs: Collection[int]) -> None:
    """Take the details out: what was sent loses all of its text, what may yet be sent only its detail."""
    for delivery, payload in _deliveries_about(row, seqs):
        if delivery.status in _UNSENT:
            payload["data"]["detail"] = ""
            changed = {"body": json.dumps(payload, ensure_ascii=False)}
        else:
            changed = {"subject": "redacted", "body": "{}"}
        AlertDelivery.objects.filter(pk=delivery.pk).update(**changed)
    Alarm.objects.filter(pk__in=alarms_about(row, seqs)).update(detail="")


def _deliveries_about(row: Conversation, seqs: Collection[int]) -> Iterator[tuple[AlertDelivery, dict[str, Any]]]:
    is_of_one = Q(alarm__conversation=row.key)
    is_of_several = ~Q(rule__grouping="conversation") & Q(body__contains=json.dumps(row.key, ensure_ascii=False))
    for delivery in AlertDelivery.objects.filter(is_of_one | is_of_several, alarm__isnull=False):
        payload = json.loads(delivery.body)
        data = payload.get("data", {})
        is_about = data.get("seq") in seqs or data.get("kind") == _OF_MANY_EVENTS
        if data.get("conversation_id") == row.key and data.get("detail") and is_about:
            yield delivery, payload
