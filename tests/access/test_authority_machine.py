"""Whatever agents, tools, buses and people do: nobody gains a right that people's acts do not give, or it is seen."""

from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from agents_app.worker import run_bus
from conversations.access import permissions
from conversations.asgi import published_message
from conversations.events.log import sql_runs
from conversations.events.projections import ConversationHead, EventFacts, RowChanges, approvals, messages, token_access
from tests.support import shares
from tests.support.authority_machine import Authority
from tests.support.tiers import rounds

pytestmark = pytest.mark.django_db(transaction=True)
STEPS = 40  # of one play
DANGEROUS = (
    "a tool was refused", "an agent had itself named", "a run wrote past the bus", "a decision said another",
    "a run handed over", "a model said it", "an agent was refused another's handoff",
)  # fmt: skip


def play(steps: int) -> None:
    """Play so many steps in all."""
    limits = settings(
        max_examples=max(1, steps // STEPS),
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],  # a play is short: shrinking it costs minutes
        report_multiple_bugs=False,
    )
    run_state_machine_as_test(seed(shares.seed())(Authority), settings=limits)


@pytest.mark.slow
@pytest.mark.any_database
def test_nobody_gains_a_right():
    Authority.deeds.clear()

    play(rounds(160, 400))

    assert all(Authority.deeds[deed] for deed in DANGEROUS), Authority.deeds


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_nobody_gains_a_right_in_ten_thousand_steps():
    Authority.deeds.clear()

    play(shares.amount_of(10_000))

    assert all(Authority.deeds[deed] > 50 for deed in DANGEROUS), Authority.deeds


def take_any_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run's bus take what changes state."""
    monkeypatch.setattr(run_bus, "_require_stateless", lambda claim, topic, event: None)


def believe_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take who decided from the payload."""
    monkeypatch.setattr(approvals, "doer_of", lambda facts, claim_facts: claim_facts.by or facts.principal)


def decide_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settle a question of whichever conversation."""
    monkeypatch.setattr(sql_runs, "_DECIDE", sql_runs._DECIDE.replace("conversation_id=%s", "%s>0"))


def forget_who_caused_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run let in whom it names, whoever made it do so."""
    was = token_access.may_let_in

    def may_let_in(changes: RowChanges, head: ConversationHead, facts: EventFacts) -> bool:
        return facts.principal.startswith("agent:") or was(changes, head, facts)

    monkeypatch.setattr(messages, "token_access", SimpleNamespace(may_let_in=may_let_in))


def mistake_for_inbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let who may view a conversation read all of the topic of its name."""
    was = permissions.reach_of
    monkeypatch.setattr(permissions, "reach_of", lambda agent, topic: was(agent, topic) and "all")


def hand_over_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an agent's token say that another agent hands over."""
    monkeypatch.setattr(published_message, "_require_own_handoff", lambda text, caller: None)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("fault", "seen_by"),
    [
        (hand_over_for_others, "every_handoff_is_its_agents_own"),
        pytest.param(take_any_kind, "_relay", marks=pytest.mark.thorough),
        pytest.param(believe_by, "only_people_decided", marks=pytest.mark.thorough),
        pytest.param(decide_anywhere, "only_people_decided", marks=pytest.mark.thorough),
        pytest.param(forget_who_caused_it, "every_inbox_is_its_own", marks=pytest.mark.thorough),
        pytest.param(mistake_for_inbox, "every_inbox_is_its_own", marks=pytest.mark.thorough),
    ],
)
def test_a_right_gained_by_a_fault_is_seen(fault, seen_by, monkeypatch):
    fault(monkeypatch)

    with pytest.raises(AssertionError) as caught:
        play(400)

    assert caught.traceback[-1].name == seen_by
