"""Turn state rows into cases: approval requests that wait too long, budgets that are spent, runs that look stuck. They
last until the rows change. Events that raise alarms are turned into cases by `noted_events`."""

from typing import NamedTuple

from django.db.models import OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce, NullIf

from conversations.alerts.kinds import Case
from conversations.models import AlertRule, Approval, Conversation, Run, ToolCall
from conversations.runs import stuck_detection
from conversations.runs.budgets.evaluate import ORIGIN
from conversations.runs.policy.file_format import time_of

MAX_CASES = 2000  # of one rule and one look


class CurrentCases(NamedTuple):
    """The cases of a rule, oldest first; `is_cut`: there may be more than are looked at."""

    cases: list[Case]
    is_cut: bool


def cases_of(rule: AlertRule, now: int) -> CurrentCases:
    """Return the current cases of a rule about a lasting condition."""
    if rule.kind == "budget_passed":
        return _passed_budgets(rule)
    return _late_approvals(rule, now) if rule.kind == "approval_waiting" else _stuck_runs(rule)


def _late_approvals(rule: AlertRule, now: int) -> CurrentCases:
    """Return approval requests that have waited longer than the rule says, by the index of pending ones. They are of
    the agent that makes the call, which a handoff may have made another than the run's."""
    call, run = ToolCall.objects.filter(id=OuterRef("tool_call")), Run.objects.filter(id=OuterRef("run"))
    late = Approval.objects.open().filter(asked_at__lt=now - rule.after_s * 1_000_000, conversation__is_demo=False)
    late = late.annotate(
        agent=Coalesce(NullIf(Subquery(call.values("agent")), Value("")), Subquery(run.values("agent"))),
        tool=Subquery(call.values("name")),
        origin=Subquery(call.values("origin")),
        replay_of=Subquery(call.values("replay_of")),
    ).filter(_of_agent(rule))
    columns = ("id", "conversation__key", "asked_seq", "agent", "tool", "origin", "replay_of")
    rows = list(late.order_by("asked_at").values_list(*columns)[:MAX_CASES])
    cause = f"waiting for a decision longer than {time_of(rule.after_s)}"
    cases = [
        Case(cause, key, seq, agent, _wish(agent, tool, origin, replay_of), id_)
        for id_, key, seq, agent, tool, origin, replay_of in rows
    ]
    return CurrentCases(cases, is_cut=len(rows) == MAX_CASES)


def _wish(agent: str, tool: str | None, origin: str | None, replay_of: str | None) -> str:
    if replay_of is not None:
        return f"a replay of {tool or 'a tool'} by {agent} waits for approval"
    return f"a budget is spent while {agent} works" if origin == ORIGIN else f"{agent} wants to call {tool or 'a tool'}"


def _passed_budgets(rule: AlertRule) -> CurrentCases:
    """Return the runs that wait for a budget to be raised, oldest first."""
    waiting = (
        ToolCall.objects.filter(origin=ORIGIN, status="waiting").order_by("started_at").select_related("conversation")
    )
    waiting = waiting.filter(_of_agent(rule), conversation__is_demo=False, conversation__is_staged=False)
    columns = ("id", "conversation__key", "called_seq", "agent")
    cases = [
        Case("has spent a budget", key, seq, agent, f"a budget is spent while {agent} works", id_)
        for id_, key, seq, agent in waiting.values_list(*columns)[:MAX_CASES]
    ]
    return CurrentCases(cases, is_cut=len(cases) == MAX_CASES)


def _stuck_runs(rule: AlertRule) -> CurrentCases:
    working = Run.objects.filter(status="running", kind="agent", parent_call=None)
    working = working.filter(conversation__is_demo=False)
    places = dict(working.values_list("conversation_id", "conversation__key")[:MAX_CASES])
    heads = dict(Conversation.objects.filter(id__in=places).values_list("id", "head_seq"))
    stuck = stuck_detection.stuck_runs(places)
    causes = {
        "repeats": "repeats itself", "silent": "makes no progress", "turns": "is near its limit of turns"
    }  # fmt: skip
    cases = [
        Case(causes[run.kind], places[id_], heads[id_], run.agent, f"{run.agent} {run.words}", run.run)
        for id_, run in stuck.items()
        if rule.agent in ("", run.agent)
    ]
    return CurrentCases(cases, is_cut=len(places) == MAX_CASES)


def _of_agent(rule: AlertRule) -> Q:
    return Q(agent=rule.agent) if rule.agent else Q()
