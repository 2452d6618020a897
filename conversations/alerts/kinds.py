"""The kinds of alarms, and one case of an alarm."""

from typing import NamedTuple

from conversations.models import Alarm

GROUPINGS = {
    "conversation": "One alarm per cause and conversation",
    "agent": "One alarm per cause and agent",
    "all": "One alarm per cause",
}


class AlarmKind(NamedTuple):
    """A kind of alarm: its name, what raises it, and whether it lasts, so that it closes with its condition."""

    label: str
    help: str
    is_lasting: bool


KINDS = {
    "approval_waiting": AlarmKind("Approval waiting", "an approval request waits longer than a time", True),
    "budget_passed": AlarmKind("Budget passed", "a run, a conversation or an agent has spent its budget", True),
    "run_failed": AlarmKind("Run failed", "a run fails, loses its worker or cannot resume", False),
    "run_stuck": AlarmKind("Run stuck", "a run looks stuck", True),
    "record_gap": AlarmKind("Gap in the record", "events were lost before they were recorded", False),
}


class Case(NamedTuple):
    """One case for a rule. `cause` is equal for all cases of one alarm."""

    cause: str
    conversation: str
    seq: int
    agent: str
    detail: str
    source_id: str  # of the request, call or run that it is about, one of its alarm's `subjects`; empty of events


def group_of(grouping: str, case: Case) -> str:
    """Return the key that distinguishes the alarms of a rule."""
    place = {"conversation": case.conversation, "agent": case.agent}.get(grouping, "")
    return Alarm.group_of(case.cause, place)
