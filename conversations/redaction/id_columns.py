"""Every column beside events and the audit log that has a conversation's id as text, with the new one in its place."""

import json
from collections.abc import Collection, Iterable

from django.db.models import Model, Q
from django.db.models.query import QuerySet

from conversations.core import json_values
from conversations.models import (
    Alarm,
    AlertDelivery,
    BudgetLimit,
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
from conversations.redaction.id_forms import ErasedId


def replace(row: Conversation, own: Collection[int], erased: ErasedId) -> None:
    """Put the new id in place of the old one, inside the action's transaction. Of what agents remember in it and its
    forks (`own`), the items whose text has the old one go; of a message in quarantine that has it, the reason stays."""
    _replace_alarms(erased)
    _replace_in_words(RetentionRule.objects.filter(conversation=erased.old), ("reason",), erased)
    for owned in (LegalHold.objects.filter(conversation=row), Redaction.objects.filter(conversation=row)):
        _replace_in_words(owned, ("reason",), erased)
    _replace_in_words(Meta.objects.filter(name="verification"), ("value",), erased)
    _replace_quarantined(erased)
    for rows, column in _ids(erased):
        rows.update(**{column: erased.new})
    for topic, new in erased.topics():
        Post.objects.filter(topic=topic).update(topic=new)
    _replace_requests(erased)
    for view in SavedView.objects.filter(query__contains="conversation="):
        SavedView.objects.filter(pk=view.pk).update(query=erased.in_query(view.query))
    keys = Conversation.objects.filter(pk__in=own).values("key")
    SessionItem.objects.filter(erased.held_by("payload"), conversation__in=keys).delete()
    Run.objects.filter(erased.held_by("state"), conversation__in=own).update(state=None, state_mac=None)


def count(erased: ErasedId) -> int:
    """Return how many rows have it."""
    topics = [topic for topic, _ in erased.topics()]
    return sum(rows.count() for rows, _ in _ids(erased)) + Post.objects.filter(topic__in=topics).count()


def _ids(erased: ErasedId) -> Iterable[tuple[QuerySet[Model], str]]:
    """Return rows of which a column is the id, and the column."""
    others = BudgetLimit.objects.exclude(scope="conversation").values("id")
    yield BudgetRaise.objects.filter(place=erased.old).exclude(budget__in=others), "place"
    for model in (Alarm, Quarantine, RetentionRule, SessionItem):
        yield model._default_manager.filter(conversation=erased.old), "conversation"


def _replace_in_words(rows: QuerySet[Model], columns: tuple[str, ...], erased: ErasedId) -> None:
    for record in rows:
        for column in columns:
            setattr(record, column, erased.in_words(getattr(record, column)))
        record.save(update_fields=columns)


def _replace_alarms(erased: ErasedId) -> None:
    """Have alarms go on, and what was sent of them: their group is a digest that has the id, too. What was sent of the
    conversation may belong to an alarm that is about another one by now."""
    alarms = Alarm.objects.filter(conversation=erased.old)
    about_it = [row.pk for row in AlertDelivery.objects.filter(erased.held_by("body")) if _is_about(row, erased)]
    sent = AlertDelivery.objects.filter(Q(alarm__in=alarms) | Q(pk__in=about_it))
    _replace_in_words(sent, ("subject", "body"), erased)
    _replace_in_words(alarms, ("detail",), erased)
    for alarm in alarms:
        if alarm.group == Alarm.group_of(alarm.cause, erased.old):
            group = Alarm.group_of(alarm.cause, erased.new)
            Shelf.objects.filter(rule=alarm.rule_id, group=alarm.group).update(group=group)
            Alarm.objects.filter(pk=alarm.pk).update(group=group)


def _is_about(delivery: AlertDelivery, erased: ErasedId) -> bool:
    return bool(json.loads(delivery.body).get("data", {}).get("conversation_id") == erased.old)


def _replace_quarantined(erased: ErasedId) -> None:
    topics = dict(erased.topics())
    for message in Quarantine.objects.filter(conversation=erased.old) | Quarantine.objects.filter(source__in=topics):
        message.source, message.reason = topics.get(message.source, message.source), erased.in_words(message.reason)
        if erased.old.encode() in bytes(message.raw):
            message.raw, message.digest = b"", ""
        message.save(update_fields=["source", "reason", "raw", "digest"])


def _replace_requests(erased: ErasedId) -> None:
    for request in RedactionRequest.objects.filter(erased.held_by("scope")):
        scope = json.loads(request.scope)
        if scope.get("conversation") == erased.old:
            text = json_values.compact(scope | {"conversation": erased.new})
            RedactionRequest.objects.filter(pk=request.pk).update(scope=text, reason=erased.in_words(request.reason))
