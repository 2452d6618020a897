"""Auto-approval rules: what one is about, when it counts, how it is made and revoked; n uses are n, whoever counts."""

import json
import time

import pytest

from conversations.access.accounts import tokens
from conversations.conversation import control
from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.events.log.rebuild import rebuild
from conversations.models import Approval, AuditEntry, AutoApprovalRule, Event, Role, Run, ToolCall
from conversations.runs import stop_and_rerun
from conversations.runs.approvals import auto_approval, auto_approval_edit, auto_approval_rules, decide
from conversations.runs.approvals.auto_approval_edit import AutoApprovalScope
from conversations.runs.policy import edit_policy
from conversations.runs.policy.evaluate import PolicyRule
from tests.runs.approvals.test_decision_races import at_once
from tests.support import teamwork
from tests.support.agents_running import event_bodies
from tests.support.cast import audit_summary, last_entry

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("town")]

ELM = AutoApprovalScope(
    is_exact=True, arguments={"street": "Elm"}, agent="Dialogue", tool="file_incident", lookup_key="bare:x"
)


def rule(by="user:april", **more):
    """Make a rule as a row, about any call of the tool."""
    arguments = more.pop("arguments", {})
    fields = {"lookup_key": "bare:file_incident", "tool": "file_incident", "is_exact": False, "made_by": by}
    fields |= {"arguments": auto_approval_rules.canonical(arguments), "digest": auto_approval_rules.digest(arguments)}
    return AutoApprovalRule.objects.create(
        id=f"rule-{AutoApprovalRule.objects.count()}", made_at=time.time_ns() // 1000, **fields | more
    )


# What waits


def test_what_waits_is_approved_by_a_rule_and_the_record_says_whose(people):
    approval = teamwork.ask(people["operator"])
    made = rule(uses=3)

    assert auto_approval.approve_waiting() == [approval.id]

    approval.refresh_from_db()
    made.refresh_from_db()
    assert (approval.status, approval.decision, approval.rule, approval.decided_by) == (
        "decided",
        "approve",
        made.id,
        "system",
    )
    assert (made.used, Run.objects.get().status, ToolCall.objects.get().status) == (1, "queued", "approved")
    event = Event.objects.get(kind="approval.decided")
    (decided,) = event_bodies("approval.decided", "flood")
    assert (event.principal, decided["rule"], decided["rule_by"]) == ("system", made.id, "user:april")
    assert audit_summary(last_entry()) == ("system", "decide", f"approval:{approval.id}", "done")
    assert json.loads(last_entry().correlation)["rule"] == made.id
    assert auto_approval.approve_waiting() == []
    with pytest.raises(Conflict, match="an auto-approval rule by user:april already decided: approve"):
        decide.decide(people["approver"], approval.id, "reject")


def pausing(people):
    control.pause(people["operator"], "flood")


def taking_over(people):
    control.take_over(people["operator"], "flood")


def denied(people):
    edit_policy.set_policy(people["admin"], PolicyRule("", "file_incident", "deny"))


def forbidden(people):
    edit_policy.set_policy(people["admin"], PolicyRule("Dialogue", "", "ask", no_always=True))


def destructive(people):
    edit_policy.set_policy(people["admin"], PolicyRule("", "file_incident", "ask", "destructive"))


def without_the_right(people):
    Role.objects.filter(user=people["approver"]).delete()


def signed_off(people):
    people["approver"].is_active = False
    people["approver"].save()


def revoked(people):
    auto_approval_edit.revoke_rule(people["admin"], "rule-0")


def used_up(people):
    AutoApprovalRule.objects.update(uses=2, used=2)


def too_old(people):
    AutoApprovalRule.objects.update(until=1)


def made_again(people):
    Run.objects.update(kind="replay")


OBSTACLES = [
    made_again,
    pausing,
    taking_over,
    denied,
    forbidden,
    destructive,
    without_the_right,
    signed_off,
    revoked,
    used_up,
    too_old,
]


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_a_rule_does_not_count(people, obstacle):
    teamwork.ask(people["operator"])
    rule()

    obstacle(people)

    assert auto_approval.approve_waiting() == []
    assert Approval.objects.get().status == "pending"
    assert not Approval.objects.exclude(rule=None).exists()


def test_an_operators_ask_is_answered_by_a_rule(people):
    edit_policy.set_policy(people["admin"], PolicyRule("", "file_incident", "ask"))
    approval = teamwork.ask(people["operator"])
    rule()

    assert auto_approval.approve_waiting() == [approval.id]


def test_what_was_held_is_approved_when_it_is_handed_back(people):
    approval = teamwork.ask(people["operator"])
    rule()
    taking_over(people)
    assert auto_approval.approve_waiting() == []

    control.hand_back(people["operator"], "flood")

    assert auto_approval.approve_waiting() == [approval.id]


def test_with_four_eyes_a_rule_does_not_count_for_what_its_maker_wrote(people):
    edit_policy.set_policy(people["admin"], PolicyRule("", "file_incident", "ask", four_eyes=True))
    teamwork.ask(people["admin"])
    tokens.make_token(people["admin"], "robot", "approver")
    rule(by="user:ada")
    rule(by="token:robot")

    assert auto_approval.approve_waiting() == []
    rule(by="user:april")
    assert len(auto_approval.approve_waiting()) == 1
    assert Approval.objects.get().rule == "rule-2"


def test_a_rule_with_a_number_of_uses_is_spared_by_one_without(people):
    teamwork.ask(people["operator"])
    rule(uses=1)
    rule()

    auto_approval.approve_waiting()

    assert dict(AutoApprovalRule.objects.values_list("id", "used")) == {"rule-0": 0, "rule-1": 1}


@pytest.mark.slow
def test_so_many_uses_are_so_many_however_many_count_at_once(people):
    for n in range(6):
        teamwork.ask(people["operator"], key=f"c{n}")
    made = rule(uses=3)

    outcomes, _ = at_once(*[auto_approval.approve_waiting] * 4)

    made.refresh_from_db()
    done = [result for outcome in outcomes for result in outcome]
    assert (len(done), len(set(done)), made.used) == (3, 3, 3)
    assert Approval.objects.filter(rule=made.id).count() == 3
    assert Event.objects.filter(kind="approval.decided").count() == 3
    assert AuditEntry.objects.filter(verb="decide", outcome="done").count() == 3


def test_a_use_is_counted_as_the_rule_stands_now_and_not_as_it_was_read():
    made = rule(uses=1)

    assert auto_approval._counted(made)
    assert not auto_approval._counted(made)
    made.refresh_from_db()
    assert made.used == 1


def test_a_rule_and_a_person_at_once_make_one_decision(people):
    approval = teamwork.ask(people["operator"])
    made = rule()

    outcomes, _ = at_once(
        auto_approval.approve_waiting, lambda: decide.decide(people["approver"], approval.id, "reject")
    )

    made.refresh_from_db()
    by_rule = outcomes[0] == [approval.id]
    assert by_rule is isinstance(outcomes[1], Conflict)
    assert made.used == by_rule
    assert Event.objects.filter(kind="approval.decided").count() == 1


def test_a_call_of_a_run_is_approved_before_it_waits_unless_the_run_is_anothers_now(people):
    teamwork.say(people["operator"])
    claimed = teamwork.claim()
    facts = {"event": "approval.requested", "approval_id": "a", "tool_call": "t", **teamwork.ASKED}
    assert auto_approval.approve_call(claimed, facts) is None
    made = rule()

    assert auto_approval.approve_call(claimed, facts) == made
    with pytest.raises(Conflict):
        auto_approval.approve_call(claimed._replace(attempt=9), facts | {"approval_id": "b", "tool_call": "u"})

    assert Approval.objects.get().rule == made.id
    assert AutoApprovalRule.objects.get().used == 1
    assert ToolCall.objects.get().status == "approved"


# Made and revoked


def test_approving_always_approves_the_question_by_the_person_and_makes_a_rule(people):
    approval = teamwork.ask(people["operator"])

    made = auto_approval_edit.approve_and_make_rule(
        people["approver"], approval.id, AutoApprovalScope(uses=5), message="yes", reason="harmless"
    )

    approval.refresh_from_db()
    assert (approval.decided_by, approval.rule, made.used) == ("user:april", None, 0)
    (decided,) = event_bodies("approval.decided", "flood")
    assert decided["makes_rule"] == made.id
    assert (made.agent, made.tool, made.lookup_key) == ("Dialogue", "file_incident", "bare:file_incident")
    assert (made.is_exact, json.loads(made.arguments), made.uses) == (True, {"street": "Elm"}, 5)
    assert (made.approval, made.made_by, made.reason) == (approval.id, "user:april", "harmless")
    verbs = AuditEntry.objects.order_by("-seq").values_list("verb", "principal")[:2]
    assert list(verbs) == [("make_rule", "user:april"), ("decide", "user:april")]


def test_the_next_call_like_it_is_approved_and_another_waits(people):
    first = teamwork.ask(people["operator"], key="one")
    auto_approval_edit.approve_and_make_rule(people["approver"], first.id, AutoApprovalScope())
    like = teamwork.ask(people["operator"], key="two")
    teamwork.ask(people["operator"], key="three", args={"street": "Mill"})

    assert auto_approval.approve_waiting() == [like.id]


def test_of_two_who_approve_always_one_makes_a_rule(people):
    approval = teamwork.ask(people["operator"])

    outcomes, _ = at_once(
        *[
            lambda who=who: auto_approval_edit.approve_and_make_rule(people[who], approval.id, AutoApprovalScope())
            for who in ("approver", "admin")
        ]
    )

    assert sorted(type(outcome) is AutoApprovalRule for outcome in outcomes) == [False, True]
    assert AutoApprovalRule.objects.count() == 1


@pytest.mark.parametrize(
    ("scope", "field"),
    [
        (AutoApprovalScope(is_exact=False, arguments={"street": "Mill"}), "arguments"),
        (AutoApprovalScope(uses=0), "uses"),
        (AutoApprovalScope(until=1), "until"),
    ],
)
def test_a_scope_that_is_none_is_refused_and_the_question_stays(people, scope, field):
    approval = teamwork.ask(people["operator"])

    with pytest.raises(Invalid) as wrong:
        auto_approval_edit.approve_and_make_rule(people["approver"], approval.id, scope)

    assert wrong.value.field == field
    assert Approval.objects.get().status == "pending"


@pytest.mark.parametrize(
    ("row", "field"),
    [
        (PolicyRule("", "file_incident", "ask", no_always=True), "tool"),
        (PolicyRule("", "", "ask", "destructive"), "match"),
    ],
)
def test_where_the_policy_wants_a_person_no_rule_is_made(people, row, field):
    edit_policy.set_policy(people["admin"], row)
    approval = teamwork.ask(people["operator"])

    with pytest.raises(Invalid) as wrong:
        auto_approval_edit.approve_and_make_rule(
            people["approver"], approval.id, AutoApprovalScope(is_exact=False, arguments={})
        )

    assert wrong.value.field == field
    assert not AutoApprovalRule.objects.exists()


def test_a_rule_is_made_by_hand_for_a_tool_that_is_served(people):
    scope = AutoApprovalScope(is_exact=False, arguments={"street": "Elm"}, agent="Coordinator", tool="file_incident")

    made = auto_approval_edit.make_rule(people["approver"], scope)

    assert (made.lookup_key, made.schema, made.agent) == ("bare:file_incident", teamwork.SCHEMA, "Coordinator")
    assert audit_summary(last_entry()) == ("user:april", "make_rule", f"rule:{made.id}", "done")
    with pytest.raises(Invalid, match="no available agent named Triage has this tool"):
        auto_approval_edit.make_rule(people["approver"], scope._replace(agent="Triage"))
    with pytest.raises(Invalid, match="masks a secret"):
        auto_approval_edit.make_rule(people["approver"], scope._replace(arguments={"key": "•••"}))


def test_a_rule_is_revoked_once(people):
    made = rule()

    assert auto_approval_edit.revoke_rule(people["admin"], made.id, reason="enough").revoked_by == "user:ada"

    entry = last_entry()
    assert (*audit_summary(entry), entry.reason) == ("user:ada", "revoke_rule", f"rule:{made.id}", "done", "enough")
    with pytest.raises(Conflict, match="user:ada already revoked this rule"):
        auto_approval_edit.revoke_rule(people["approver"], made.id)
    with pytest.raises(NotFound):
        auto_approval_edit.revoke_rule(people["approver"], "none")


def test_rebuild_changes_nothing_of_what_rules_approved(people):
    teamwork.ask(people["operator"])
    rule()
    auto_approval.approve_waiting()
    before = [list(model.objects.order_by("id").values()) for model in (Approval, AutoApprovalRule, ToolCall, Run)]

    list(rebuild())

    assert [
        list(model.objects.order_by("id").values()) for model in (Approval, AutoApprovalRule, ToolCall, Run)
    ] == before


def test_a_claim_from_outside_uses_no_rule_and_approves_nothing(people):
    approval = teamwork.ask(people["operator"])
    made = rule()

    claim = {
        "event": "approval.decided",
        "approval_id": approval.id,
        "tool_call": approval.tool_call,
        "decision": "approve",
    }
    teamwork.claim_from_outside("flood", claim | {"rule": made.id, "rule_by": "user:april", "run_id": approval.run})

    assert Approval.objects.get().status == "pending"
    stop_and_rerun.cancel_run(people["operator"], approval.run)
    assert Approval.objects.get().rule is None
