"""What an auto-approval rule is about: the tool as it was, the agent, exact or contained arguments. No database."""

import pytest

from conversations.models import AutoApprovalRule
from conversations.runs.approvals import auto_approval_rules


def call(**more):
    call_facts = {
        "agent": "Dialogue",
        "name": "pay",
        "schema": "s",
        "effect": "unsafe",
        "args": {"a": 1, "b": {"c": [1], "d": 2}},
    }
    return auto_approval_rules.call_of(call_facts | more)


@pytest.mark.parametrize(
    ("arguments", "is_exact", "fits"),
    [
        ({}, False, True),
        ({"a": 1}, False, True),
        ({"b": {"d": 2}}, False, True),
        ({"b": {"c": [1]}}, False, True),
        ({"b": {"c": []}}, False, False),
        ({"a": True}, False, False),
        ({"a": 1.0}, False, False),
        ({"a": None}, False, False),
        ({"e": None}, False, False),
        ({"b": {"d": 2, "c": [1]}, "a": 1}, True, True),
        ({"a": 1}, True, False),
    ],
)
def test_arguments_are_exact_or_contained(arguments, is_exact, fits):
    rule = AutoApprovalRule(
        lookup_key="bare:pay",
        is_exact=is_exact,
        arguments=auto_approval_rules.canonical(arguments),
        digest=auto_approval_rules.digest(arguments),
    )

    assert auto_approval_rules.fits(rule, call(), is_destructive=False) is fits


@pytest.mark.parametrize(
    ("about", "fits"),
    [
        ({"agent": "Dialogue"}, True),
        ({"agent": "Triage"}, False),
        ({"lookup_key": "bare:paid"}, False),
        ({"schema": "s"}, True),
        ({"schema": "other"}, False),
    ],
)
def test_a_rule_is_about_one_tool_as_it_was_and_one_agent(about, fits):
    rule = AutoApprovalRule(**{"lookup_key": "bare:pay", "is_exact": False, "arguments": "{}"} | about)

    assert auto_approval_rules.fits(rule, call(), is_destructive=False) is fits
    assert auto_approval_rules.fits(rule, call(schema=""), is_destructive=False) is (fits and "schema" not in about)


@pytest.mark.parametrize(
    ("agent", "is_exact", "fits"), [("Dialogue", True, True), ("", True, False), ("Dialogue", False, False)]
)
def test_a_call_that_destroys_has_to_be_named_exactly(agent, is_exact, fits):
    arguments = auto_approval_rules.canonical(call().arguments)
    rule = AutoApprovalRule(lookup_key="bare:pay", agent=agent, is_exact=is_exact, arguments=arguments)
    rule.digest = auto_approval_rules.digest(call().arguments)

    assert auto_approval_rules.fits(rule, call(), is_destructive=True) is fits


@pytest.mark.parametrize("arguments", [None, "text", {"key": "•••"}, {"n": float("nan")}])
def test_what_is_no_object_or_covers_a_secret_fits_no_rule(arguments):
    rule = AutoApprovalRule(lookup_key="bare:pay", is_exact=False, arguments="{}")

    assert not auto_approval_rules.fits(rule, call(args=arguments), is_destructive=False)
