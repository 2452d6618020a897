"""The operators' policy: what rules come to, the actions on them, the file and its command."""

import io
import itertools
import json

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.core.principals import SYSTEM
from conversations.models import AuditEntry, Policy
from conversations.runs.policy import edit_policy, evaluate, file_format
from conversations.runs.policy.edit_policy import load_policies, remove_policy, set_policy, state_of
from conversations.runs.policy.evaluate import (
    EFFECTS,
    RULES,
    UNDECLARED,
    Declared,
    PolicyRule,
    effective,
    for_tool,
    matching,
)
from tests.support.cast import audit_summary, last_entry

DENY_ALL = PolicyRule("", "", "deny")
DENY_TOOL = PolicyRule("", "pay", "deny")
ASK_AGENT = PolicyRule("Clerk", "", "ask")
ALLOW_BOTH = PolicyRule("Clerk", "pay", "allow", "destructive", "for the audit")
EVERY = [DENY_ALL, ASK_AGENT, DENY_TOOL, ALLOW_BOTH]  # from the least specific to the most


def what(*rows, declared=UNDECLARED, agent="Clerk", tool="pay"):
    return effective(declared, matching({row.target: row for row in rows}, agent, tool))


# What rules come to


def test_the_most_specific_rule_wins():
    assert [what(*EVERY[:n]).rule for n in range(1, 5)] == ["deny", "ask", "deny", "allow"]


def test_a_rule_for_others_is_not_about_this_call():
    assert what(
        PolicyRule("Other", "", "deny"), PolicyRule("", "look", "deny"), PolicyRule("Other", "pay", "deny")
    ) == (
        "allow",
        "unsafe",
        None,
        None,
    )


def test_every_rule_only_tightens_what_the_code_says():
    for declared, rule in itertools.product(
        itertools.product(RULES, EFFECTS), itertools.product(RULES, ("", *EFFECTS))
    ):
        effective = what(PolicyRule("", "", *rule), declared=Declared(*declared))

        assert RULES.index(effective.rule) == max(RULES.index(declared[0]), RULES.index(rule[0]))
        strongest = max(EFFECTS.index(effect) for effect in (declared[1], rule[1]) if effect)
        assert EFFECTS.index(effective.effect) == strongest
        assert (effective.by is None) is (effective.rule == declared[0])
        assert (effective.effect_by is None) is (effective.effect == declared[1])


def test_the_effect_is_that_of_the_most_specific_row_which_tells_one():
    effective = what(
        PolicyRule("", "pay", "deny", "destructive"),
        PolicyRule("Clerk", "pay", "allow"),
        declared=Declared("allow", "read"),
    )

    assert (effective.rule, effective.effect, effective.effect_by.tool) == ("allow", "destructive", "pay")


# Stored rows, and how fresh they are


@pytest.mark.django_db
def test_what_holds_for_a_tool_is_read_once_in_half_a_second(django_assert_num_queries):
    Policy.objects.create(agent="", tool="pay", rule="ask", updated_by="x", updated_at="2026-01-01T00:00Z")

    with django_assert_num_queries(1):
        results = [for_tool("Clerk", "pay", Declared("allow", "read")) for _ in range(50)]

    assert {result.rule for result in results} == {"ask"}


@pytest.mark.django_db(transaction=True)
def test_a_rule_set_here_holds_here_at_once(team):
    assert for_tool("Clerk", "pay").rule == "allow"

    set_policy(team["admin"], DENY_TOOL)
    assert for_tool("Clerk", "pay").rule == "deny"

    remove_policy(team["admin"], DENY_TOOL.target)
    assert for_tool("Clerk", "pay").rule == "allow"


@pytest.mark.django_db
def test_rows_changed_while_they_are_read_are_not_kept(monkeypatch):
    read, reads = evaluate.stored, []

    def overtaken():
        rules = read()
        reads.append(rules)
        if len(reads) == 1:
            evaluate.forget()  # a change commits between the read and its keeping
        return rules

    monkeypatch.setattr(evaluate, "stored", overtaken)
    evaluate.rows()
    evaluate.rows()
    evaluate.rows()

    assert len(reads) == 2


# Actions


@pytest.fixture
def admin(team):
    return team["admin"]


@pytest.mark.django_db
def test_a_rule_is_set_changed_and_removed_with_its_digests_in_the_audit_log(admin):
    set_policy(admin, DENY_TOOL, reason="too dear")
    set_policy(admin, DENY_TOOL._replace(rule="ask"))
    remove_policy(admin, DENY_TOOL.target)

    first, second, third = AuditEntry.objects.order_by("seq")
    assert audit_summary(first) == ("user:ada", "set_policy", "policy:*/pay", "done")
    assert (first.before, first.after, first.reason) == ("", state_of(DENY_TOOL), "too dear")
    assert (second.before, second.after) == (first.after, state_of(DENY_TOOL._replace(rule="ask")))
    assert (third.verb, third.before, third.after) == ("remove_policy", second.after, "")
    assert not Policy.objects.exists()


@pytest.mark.django_db
def test_a_rule_changed_since_it_was_drawn_is_not_overwritten(admin):
    set_policy(admin, DENY_TOOL, expected="")
    drawn = state_of(DENY_TOOL)
    set_policy(SYSTEM, DENY_TOOL._replace(rule="ask"), expected=drawn)

    with pytest.raises(Conflict, match="system has changed it"):
        set_policy(admin, DENY_TOOL, expected=drawn)
    with pytest.raises(Conflict, match="system has changed it"):
        remove_policy(admin, DENY_TOOL.target, expected=drawn)
    with pytest.raises(Conflict, match="system has changed it"):
        set_policy(admin, DENY_TOOL, expected="")  # it was drawn as absent

    assert last_entry().outcome == "refused"
    assert Policy.objects.get().rule == "ask"


@pytest.mark.django_db
def test_a_rule_may_come_to_be_about_another_tool_unless_that_has_one(admin):
    set_policy(admin, DENY_TOOL)
    set_policy(admin, ASK_AGENT)

    set_policy(admin, DENY_TOOL._replace(tool="refund"), replaces=DENY_TOOL.target)
    with pytest.raises(Conflict, match="there is already a rule for every tool by Clerk"):
        set_policy(admin, ASK_AGENT, replaces=("", "refund"))

    assert set(evaluate.stored()) == {("", "refund"), ("Clerk", "")}


@pytest.mark.django_db
def test_a_rule_that_is_gone_cannot_be_removed(admin):
    with pytest.raises(NotFound):
        remove_policy(admin, ("", "pay"))


# The file


@pytest.mark.django_db
def test_what_is_printed_can_be_loaded(capsys, tmp_path):
    load_policies(SYSTEM, EVERY)
    before = evaluate.stored()
    call_command("policy")
    file = tmp_path / "policy.json"
    file.write_text(capsys.readouterr().out)
    load_policies(SYSTEM, [])

    call_command("policy", str(file), reason="restored")

    assert capsys.readouterr().out.endswith("4 added, 0 changed, 0 removed, 0 unchanged.\n")
    assert evaluate.stored() == before
    entry = last_entry()
    assert audit_summary(entry) == ("system", "load_policies", "policies", "done")
    assert (entry.reason, entry.before, entry.after) == (
        "restored",
        edit_policy.digest_of([]),
        edit_policy.digest_of(EVERY),
    )


@pytest.mark.django_db
def test_a_load_makes_the_file_the_whole_policy():
    load_policies(SYSTEM, EVERY)

    loaded = load_policies(SYSTEM, [DENY_ALL, DENY_TOOL._replace(rule="ask"), PolicyRule("New", "", "ask")])

    assert loaded == (1, 1, 2, 1)
    assert [row.rule for row in evaluate.stored().values()] == ["deny", "ask", "ask"]


@pytest.mark.django_db
def test_an_empty_policy_is_printed_as_one_that_can_be_loaded(capsys, monkeypatch):
    call_command("policy")
    content = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", io.StringIO(content))

    call_command("policy", "-")

    assert file_format.read(content) == []


WRONG = [
    ("{", "line 1, column 2: must be JSON"),
    ("[]", 'the file must be an object with "format": "switchboard-policy/1"'),
    (
        '{"format": "switchboard-policy/2", "policies": []}',
        'the file must be an object with "format": "switchboard-policy/1"',
    ),
    ({"policies": {}}, "policies must be a list of rules"),
    ({"policies": [], "rules": []}, "rules: unknown field"),
    ({"policies": [{"rule": "ask"}, 7]}, r"policies\[1\] must be an object"),
    ({"policies": [{"rule": "never"}]}, r"policies\[0\].rule must be one of allow, ask, deny"),
    ({"policies": [{"rule": "ask", "effect": "bad"}]}, r"policies\[0\].effect must be one of read, idempotent"),
    ({"policies": [{"rule": "ask", "tools": "x"}]}, r"policies\[0\].tools: unknown field"),
    ({"policies": [{"rule": "ask", "tool": 7}]}, r"policies\[0\].tool must be a string"),
    (
        {"policies": [{"rule": "ask", "tool": "a\u202eb"}]},
        r"policies\[0\].tool must not contain control characters",
    ),
    (
        {"policies": [{"rule": "ask", "agent": "x" * 201}]},
        r"policies\[0\].agent must be at most 200 characters; got 201",
    ),
    (
        {"policies": [{"rule": "ask"}, {"rule": "deny"}]},
        r"policies\[1\]: there is already a rule for every tool by every agent",
    ),
    ({"policies": [{"rule": "x"}, {"rule": "y"}]}, r"policies\[0\].rule must be .*; policies\[1\].rule must be "),
    ({"policies": [{"rule": "ask"}] * 1001}, "policies must have at most 1,000 rules; got 1,001"),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("content", "words"), WRONG)
def test_a_wrong_file_changes_nothing_and_says_where(content, words, tmp_path):
    load_policies(SYSTEM, [DENY_TOOL])
    file = tmp_path / "policy.json"
    file.write_text(content if isinstance(content, str) else json.dumps({"format": file_format.FORMAT, **content}))

    with pytest.raises(CommandError, match=f"was not loaded; nothing has changed: {words}"):
        call_command("policy", str(file))

    assert list(evaluate.stored()) == [DENY_TOOL.target]


def test_a_file_that_is_not_there_is_said_so(db, tmp_path):
    with pytest.raises(CommandError, match="No such file"):
        call_command("policy", str(tmp_path / "none.json"))


def test_a_field_of_a_form_is_named_when_it_is_wrong():
    with pytest.raises(Invalid) as caught:
        file_format.row_of({"rule": "perhaps"})

    assert (caught.value.field, caught.value.message) == ("rule", "must be one of allow, ask, deny")


def test_the_rows_about_a_call_are_the_same_in_memory_and_in_a_query(db):
    names = ("", "Clerk", "Desk", "clerk", "100%", "a_b")
    for agent, tool in itertools.product(names, names):
        Policy.objects.create(agent=agent, tool=tool, rule="ask", updated_at=timezone.now())

    for agent, tool in itertools.product((*names, "stranger"), repeat=2):
        in_query, in_memory = evaluate.about(agent, tool), evaluate.matching(evaluate.stored(), agent, tool)
        assert in_query == in_memory
        expected = set(evaluate.targets(agent, tool)) & set(itertools.product(names, names))
        assert {row.target for row in in_query} == expected
