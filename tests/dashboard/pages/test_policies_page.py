"""The admin's page of policies: rules in words, set, edited and removed; and what one rule does to another."""

import html
import json
import re

import pytest

from conversations.core.principals import SYSTEM
from conversations.models import Agent, AuditEntry, Policy
from conversations.runs.policy import evaluate
from conversations.runs.policy.edit_policy import load_policies, state_of
from conversations.runs.policy.evaluate import Declared, PolicyRule
from conversations.runs.policy.view import remarks
from tests.support.visits import text_of

pytestmark = pytest.mark.django_db


def serve(name, *tools):
    offers = [{"name": tool, "needs_approval": asks, "effect": effect} for tool, asks, effect in tools]
    Agent.objects.create(team="t", name=name, tools=json.dumps(offers), served_until=1 << 62)


def add(client, **fields):
    return client.post("/policies/", {"tool": "pay", "rule": "deny", "expected": ""} | fields)


def test_without_rules_the_page_says_so_and_how_to_make_one(admin):
    page = admin.get("/policies/")

    assert "No rules yet" in text_of(page)
    assert "Add rule" in text_of(page)
    assert 'href="/policies/" aria-current="page"' in page.content.decode()


def test_the_notice_says_that_no_agent_has_the_tool_of_the_saved_rule(admin):
    serve("Clerk", ("pay", False, "unsafe"))
    misspelled, correct = (text_of(admin.get(add(admin, tool=tool)["Location"])) for tool in ("pya", "pay"))

    assert "including in current runs. No available agent has this tool." in misspelled
    assert "including in current runs. No available agent" not in correct


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"on_expiry": "never"}, "On expiry must be one of"),
        ({"deadline_s": "soon"}, "Must be a duration such as"),
    ],
)
def test_what_does_not_fit_is_told_once_beside_its_field_or_over_the_form(admin, fields, why):
    answer = add(admin, **fields)

    assert answer.status_code == 422
    assert text_of(answer).count(why) == 1


def test_a_rule_is_added_and_told_in_words(admin):
    serve("Clerk", ("pay", False, "unsafe"))

    answer = add(admin, agent="Clerk", effect="destructive", note="no money", reason="audit")
    page = text_of(admin.get(answer["Location"]))

    assert answer.status_code == 302
    assert "Rule saved." in page
    assert (
        "Call is denied before it runs; the model is informed and the run continues. Treated as at least destructive"
        in page
    )
    assert "by ada" in page
    assert AuditEntry.objects.get().reason == "audit"


def test_a_rule_is_edited_to_be_about_another_tool(admin):
    load_policies(SYSTEM, [PolicyRule("Clerk", "pay", "ask", "", "n")])
    page = admin.get("/policies/?edit=1&agent=Clerk&tool=pay").content.decode()
    hidden = dict(
        re.findall(r'type="hidden" name="(was\w*|expected)" value="([^"]*)"', page[page.index('id="rule"') :])
    )
    assert hidden == {"was": "yes", "was_agent": "Clerk", "was_tool": "pay",
                      "expected": state_of(PolicyRule("Clerk", "pay", "ask", "", "n"))}  # fmt: skip

    add(admin, agent="Clerk", tool="refund", rule="deny", **hidden)

    assert list(evaluate.stored()) == [("Clerk", "refund")]


@pytest.mark.parametrize(
    ("fields", "status", "words_of_it"),
    [
        ({"rule": "perhaps"}, 422, "Must be one of allow, ask, deny"),
        ({"tool": "x" * 402}, 422, "Must be at most 401 characters; got 402"),
        ({"effect": "bad"}, 422, "Must be one of read, idempotent, unsafe, destructive"),
        ({"agent": "Clerk"}, 409, "The rule for pay by Clerk has changed: system has changed it"),
    ],
)
def test_what_is_wrong_is_said_and_what_was_entered_stays(admin, fields, status, words_of_it):
    load_policies(SYSTEM, [PolicyRule("Clerk", "pay", "ask")])

    answer = add(admin, note="my words", **fields)

    assert answer.status_code == status
    assert words_of_it in text_of(answer)
    assert 'value="my words"' in answer.content.decode()
    assert [row.rule for row in evaluate.stored().values()] == ["ask"]


def test_a_rule_is_removed_unless_somebody_changed_it(admin):
    load_policies(SYSTEM, [PolicyRule("", "pay", "ask")])
    target = {"agent": "", "tool": "pay"}

    stale = admin.post("/policies/removals/", target | {"expected": "0" * 64})
    assert (stale.status_code, Policy.objects.count()) == (409, 1)

    answer = admin.post("/policies/removals/", target | {"expected": state_of(PolicyRule("", "pay", "ask"))})
    assert "Rule removed." in text_of(admin.get(answer["Location"]))
    assert admin.post("/policies/removals/", target).status_code == 404


def test_names_are_text_and_long_ones_are_found(admin):
    load_policies(
        SYSTEM,
        [
            PolicyRule("<b>נועה</b>" * 10, "t" * 401, "ask", "", "<script>alert(1)</script>"),
            PolicyRule("", "pay", "ask"),
        ],
    )

    page = admin.get("/policies/?q=SCRIPT")

    assert "<script>alert" not in page.content.decode()
    assert "<script>alert(1)</script>" in words_with_markup(page)
    assert "1 rule" in text_of(page)
    assert "No rule matches" in text_of(admin.get("/policies/?q=nothing"))


def words_with_markup(response):
    return html.unescape(response.content.decode())


# The API


def test_the_api_answers_and_takes_the_policy_as_a_whole(admin):
    load_policies(SYSTEM, [PolicyRule("", "pay", "ask")])
    body = admin.get("/api/v1/policies").json()
    body["policies"].append({"agent": "Clerk", "rule": "deny"})

    answer = admin.put("/api/v1/policies", body, content_type="application/json")

    assert (answer.status_code, answer.json()) == (200, body)
    assert list(evaluate.stored()) == [("", "pay"), ("Clerk", "")]
    entry = AuditEntry.objects.latest("seq")
    assert (entry.principal, entry.verb) == ("user:ada", "load_policies")


def test_the_api_says_where_a_policy_is_wrong_and_changes_nothing(admin):
    load_policies(SYSTEM, [PolicyRule("", "pay", "ask")])
    wrong = {"format": "switchboard-policy/1", "policies": [{"rule": "ask"}, {"rule": "no"}]}

    answer = admin.put("/api/v1/policies", wrong, content_type="application/json")

    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "policies[1].rule must be one of allow, ask, deny"
    assert list(evaluate.stored()) == [("", "pay")]


# Remarks

CODES = {
    ("Clerk", "pay"): Declared("allow", "unsafe"),
    ("Clerk", "look"): Declared("allow", "read"),
    ("Boss", "pay"): Declared("ask", "unsafe"),
}


def remarks_text(row, *others):
    rows = {row_.target: row_ for row_ in (row, *others)}
    return " ".join(remarks(row, rows, CODES))


@pytest.mark.parametrize(
    ("row", "others", "remark"),
    [
        (
            PolicyRule("", "pya", "ask"),
            [],
            "No available agent has this tool. It may belong to an agent inside a tool",
        ),
        (PolicyRule("Nobody", "", "ask"), [], "No available agent with tools has this name"),
        (PolicyRule("Clerk", "transfer_to_boss", "deny"), [], "Rules do not apply to handoffs, only to tools"),
        (
            PolicyRule("", "pay", "deny"),
            [PolicyRule("Boss", "pay", "ask")],
            "Overridden by more specific rules: ask pay by Boss.",
        ),
        (
            PolicyRule("Clerk", "", "deny"),
            [PolicyRule("", "pay", "ask")],
            "Overridden by more specific rules: ask pay by every",
        ),
        (
            PolicyRule("Boss", "pay", "ask"),
            [PolicyRule("", "pay", "deny")],
            "Overrides stricter rules: deny pay by every agent.",
        ),
        (PolicyRule("Boss", "pay", "ask"), [], "Currently redundant"),
        (PolicyRule("", "", "allow", "read"), [], "Currently redundant"),
        (PolicyRule("Boss", "", "ask"), [PolicyRule("", "pay", "deny")], "Currently unused"),
        (PolicyRule("", "pay", "deny"), [PolicyRule("", "", "deny")], "Currently redundant"),
    ],
)
def test_a_rule_tells_what_one_would_not_see_by_it_alone(row, others, remark):
    assert remark in remarks_text(row, *others)


@pytest.mark.parametrize(
    ("row", "others"),
    [
        (PolicyRule("Clerk", "pay", "ask"), []),
        (PolicyRule("", "", "allow", "destructive"), []),
    ],
)
def test_a_plain_rule_needs_no_remark(row, others):
    assert remarks_text(row, *others) == ""
