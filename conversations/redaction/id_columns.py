"""Every column beside events and the audit log that has a conversation's id as text, with the new one in its place."""

import hashlib
import json
from typing import Any

from django.db.models import Model

from conversations.models import (
    Alarm,
    AlertDelivery,
    BudgetRaise,
    Conversation,
    LegalHold,
    Meta,
    Post,
    Quarantine,
    Redaction,
    RedactionRequest,
    RetentionRule,
    Run,
    SavedView,
    SessionItem,
    Shelf,
)
from conversations.models.run import LIVE
from conversations.redaction.id_forms import ErasedId

IDS: tuple[tuple[type[Model], str], ...] = (
    (Alarm, "conversation"), (BudgetRaise, "place"), (Quarantine, "conversation"), (RetentionRule, "conversation"),
    (SessionItem, "conversation"),
)  # fmt: skip
TEXTS: tuple[tuple[type[Model], tuple[str, ...]], ...] = (
    (Alarm, ("detail",)), (AlertDelivery, ("subject", "body")), (LegalHold, ("reason",)), (Meta, ("value",)),
    (Post, ("topic", "body")), (Quarantine, ("source", "reason")), (Redaction, ("reason",)),
    (RedactionRequest, ("scope", "reason")), (RetentionRule, ("reason",)), (SavedView, ("query",)),
    (Shelf, ("reason",)),
)  # fmt: skip


def count(erased: ErasedId) -> int:
    """Return how many rows have it."""
    ids = sum(model._default_manager.filter(**{column: erased.old}).count() for model, column in IDS)
    return ids + sum(model._default_manager.filter(erased.held_by(*columns)).count() for model, columns in TEXTS)


def replace(row: Conversation, erased: ErasedId) -> None:
    """Put the new id in place of the old one, inside the action's transaction. What agents remember with the old one in
    its words, and messages in quarantine that have it, lose these."""
    _move_alarms(erased)
    for model, column in IDS:
        model._default_manager.filter(**{column: erased.old}).update(**{column: erased.new})
    for model, columns in TEXTS:
        for record in model._default_manager.filter(erased.held_by(*columns)):
            _replace_texts(record, columns, erased)
    SessionItem.objects.filter(erased.held_by("payload"), conversation=erased.new).delete()
    Run.objects.filter(conversation=row).exclude(status__in=LIVE).update(state=None, state_mac=None)
    old = erased.old.encode()
    for message in Quarantine.objects.filter(conversation=erased.new):
        if old in bytes(message.raw):
            Quarantine.objects.filter(pk=message.pk).update(raw=b"", digest="")


def _replace_texts(record: Any, columns: tuple[str, ...], erased: ErasedId) -> None:  # Any: of any model
    for column in columns:
        if (text := getattr(record, column)) is not None:
            setattr(record, column, erased.in_text(text))
    record.save(update_fields=columns)


def _move_alarms(erased: ErasedId) -> None:
    """Have alarms of this conversation go on: their group is a digest, which has the id too."""
    for alarm in Alarm.objects.filter(conversation=erased.old):
        if alarm.group == _group(alarm.cause, erased.old):
            group = _group(alarm.cause, erased.new)
            Shelf.objects.filter(rule=alarm.rule_id, group=alarm.group).update(group=group)
            Alarm.objects.filter(pk=alarm.pk).update(group=group)


def _group(cause: str, conversation: str) -> str:
    return hashlib.sha256(json.dumps([cause, conversation]).encode()).hexdigest()
