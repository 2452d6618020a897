"""What the database holds of rights, decisions and calls, read cheaply after each step of `authority_machine`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from conversations.models import Approval, Conversation, Event, Grant, Participant, Role, Token, ToolCall, User
from tests.support.authority_model import GUESTS


@functools.cache
def _statement(query: Callable[[], QuerySet[Any, Any]]) -> tuple[str, tuple[Any, ...]]:
    """Return the SQL of some rows: Django takes longer to write it than the database to answer."""
    sql, params = query().query.sql_with_params()
    return sql, tuple(params)


def read(query: Callable[[], QuerySet[Any, Any]]) -> list[tuple[Any, ...]]:
    """Read them as tuples."""
    with connection.cursor() as cursor:
        cursor.execute(*_statement(query))
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def named_agents() -> QuerySet[Any, Any]:
    """Every agent who was let in, with the conversation."""
    return Participant.objects.filter(is_named=True).values_list("conversation__key", "name")


def steered() -> QuerySet[Any, Any]:
    """Who holds each conversation, and whether it is paused."""
    return Conversation.objects.values_list("key", "owner", "state")


def handoffs() -> QuerySet[Any, Any]:
    """Every handoff that the token of an agent told."""
    handoffs = Event.objects.filter(kind="agent.handoff", principal__in=[f"token:{name}" for name in GUESTS])
    return handoffs.order_by("pk").values_list("principal", "body")


def handlers() -> QuerySet[Any, Any]:
    """Who answers anywhere."""
    return Conversation.objects.values_list("handler").distinct()


def decisions() -> QuerySet[Any, Any]:
    """What became of every question, and by whom."""
    return Approval.objects.values_list("id", "decided_by", "decision", "status")


def calls() -> QuerySet[Any, Any]:
    """What became of every call of ours."""
    return ToolCall.objects.filter(run__isnull=False).values_list("id", "status")


def _roles() -> QuerySet[Any, Any]:
    return Role.objects.order_by("pk").values_list()


def _grants() -> QuerySet[Any, Any]:
    return Grant.objects.order_by("pk").values_list()


def _tokens() -> QuerySet[Any, Any]:
    return Token.objects.order_by("pk").values_list("name", "role", "agent", "digest", "revoked_at")


def _people() -> QuerySet[Any, Any]:
    return User.objects.order_by("pk").values_list("username", "is_active")


def all_rights() -> list[Any]:
    """Everything that gives people and tokens their rights."""
    return [read(query) for query in (_roles, _grants, _tokens, _people)]
