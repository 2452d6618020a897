"""A row for each action of `conversations/actions/`, by `module.function`: `test_actions` does it as everybody.

To join, add a line. `ROWS`: what people do, functions that begin with `by`. `begin(people)` prepares and answers the
deed, which then is done by somebody who may, by everybody who may not, and by a second person. `ELSEWHERE`: functions
that take nobody's right, each with the test that proves it, or why there is nothing to prove.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from conversations.actions import (
    answers,
    approvals,
    control,
    forks,
    grants,
    messages,
    people,
    policies,
    quarantine,
    replays,
    responses,
    runs,
    sessions,
    sign_in_links,
    tokens,
)
from conversations.models import Agent, ToolCall, User
from conversations.policy import Row as Rule
from conversations.principals import SYSTEM
from conversations.rights import Who
from tests import quarantined, teamwork
from tests.cast import PASSWORD, person
from tests.stand_in import Answer

People = Mapping[str, User]
Deed = Callable[[Who], Any]

SAID = {"type": "message", "sender": "agent:Triage", "recipient": "agent:Dialogue", "content": "Somebody is here."}
RULE = Rule("", "pay", "deny")
AGAIN = "each time is another one"
NO_CONVERSATION = "it is about no conversation: the audit log has it"


class Row(NamedTuple):
    """`right`: of `rights.TABLE`. `event`: the kind that tells of it. `late`: what a second one reads, a pattern.

    Where there is no event or no race the reason stands in its place, after a dash.
    """

    begin: Callable[[People], Deed]
    right: str
    event: str
    late: str
    verb: str = ""
    """as the audit log has it, when it is not the function's name"""
    audit: str = "done"
    """or, after a dash, why a success is not in the audit log"""


def deciding(all_: People) -> Deed:
    asked = teamwork.ask(all_["operator"]).id
    return lambda by: approvals.decide(by, asked, "approve")


def steering(verb: str, *before: str, is_running: bool = False) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        teamwork.say(all_["operator"])
        if is_running:
            teamwork.claim()
        for one in before:
            control.steer(all_["operator"], one, "flood")
        return lambda by: getattr(control, verb)(by, "flood", "because")

    return begin


def steering_by_name(all_: People) -> Deed:
    teamwork.say(all_["operator"])
    return lambda by: control.steer(by, "pause", "flood")


def steering_each(all_: People) -> Deed:
    teamwork.say(all_["operator"])

    def each(by: Who) -> None:
        (outcome,) = control.steer_each(by, "pause", ["flood"])
        if outcome.error is not None:
            raise outcome.error

    return each


def speaking(all_: People) -> Deed:
    ask = {"recipient": "agent:Dialogue", "content": "Water", "client_id": "1"}
    return lambda by: messages.post(by, "flood", **ask)


def responding(all_: People) -> Deed:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Water"}]}
    asked = responses.Asked(model="Dialogue", input=[item])
    return lambda by: responses.receive(by, asked)


def answering(all_: People) -> Deed:
    """A response waits for its client to answer a call."""
    tool = {"type": "function", "name": "rain", "parameters": {"type": "object", "properties": {}}}
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Water"}]}
    asked = responses.receive(all_["operator"], responses.Asked(model="Dialogue", input=[item], tools=[tool]))
    answer = Answer(teamwork.claim(asked.conversation))
    answer.call("rain", "{}", "c1")
    answer.finish()
    call = ToolCall.objects.get(run=asked.run).id
    return lambda by: answers.answer_call(by, call, "4 mm")


def running_again(all_: People) -> Deed:
    run = teamwork.fail(all_["operator"])
    return lambda by: runs.run_again(by, run)


def stopping(all_: People) -> Deed:
    run = teamwork.ask(all_["operator"]).run
    return lambda by: runs.stop(by, run)


def replaying(all_: People) -> Deed:
    layers = {"qualified_name": "file_incident", "origin": "function", "schema": teamwork.SCHEMA}
    layers["lookup_key"] = "bare:file_incident"
    tool = {"name": "file_incident", "public_name": "file_incident", "effect": "unsafe", **layers}
    Agent.objects.filter(name="Dialogue").update(tools=json.dumps([tool]))
    asked = teamwork.ask(all_["operator"], **layers)
    approvals.decide(all_["approver"], asked.id, "approve")
    asked.refresh_from_db()
    teamwork.go_on(asked)
    return lambda by: replays.replay(by, asked.tool_call, reason="It was lost", tool="file_incident")


def forking(all_: People) -> Deed:
    at = teamwork.say(all_["operator"])
    return lambda by: forks.fork(by, "flood", at)


def rerunning(all_: People) -> Deed:
    run = teamwork.fail(all_["operator"])
    return lambda by: forks.rerun(by, run)


def with_a_grant(all_: People) -> Deed:
    grants.give_grant(SYSTEM, "otto", "speak_as", "system")
    return lambda by: grants.take_grant(by, "otto", "speak_as", "system")


def in_quarantine(do: Callable[[Who, int], Any]) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        found = quarantined.quarantine(SAID).pk
        return lambda by: do(by, found)

    return begin


def with_a_rule(all_: People) -> Deed:
    policies.set_policy(SYSTEM, RULE)
    return lambda by: policies.remove_policy(by, RULE.target)


def deactivated(all_: People) -> Deed:
    people.deactivate(SYSTEM, "vera")
    return lambda by: people.activate(by, "vera")


def with_a_token(all_: People) -> Deed:
    tokens.make_token(SYSTEM, "ci", "viewer")
    return lambda by: tokens.revoke_token(by, "ci")


def of_another(do: Callable[[Who, str], Any]) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        name = person("rosa").username
        return lambda by: do(by, name)

    return begin


BY_FIRST = r"user:\w+ {} it( \w+)? at \d\d:\d\d:\d\d UTC"
ROWS: dict[str, Row] = {
    "answers.answer_call": Row(
        answering, "respond", "response.received", r"user:\w+ answered this call already, at 20"
    ),
    "approvals.decide": Row(deciding, "decide", "approval.decided", r"user:\w+ decided already: approve, at 20"),
    "control.pause": Row(steering("pause"), "control", "conversation.paused", BY_FIRST.format("paused")),
    "control.resume": Row(
        steering("resume", "pause"), "control", "conversation.resumed", BY_FIRST.format("resumed")
    ),
    "control.take_over": Row(
        steering("take_over"), "control", "conversation.taken_over", BY_FIRST.format("took")
    ),
    "control.hand_back": Row(
        steering("hand_back", "take_over"), "control", "conversation.handed_back", BY_FIRST.format("handed")
    ),
    "control.stop": Row(
        steering("stop", is_running=True), "control", "run.stopping", BY_FIRST.format("stopped")
    ),
    "control.abort": Row(
        steering("abort", is_running=True), "control", "run.stopping", BY_FIRST.format("stopped")
    ),
    "control.steer": Row(
        steering_by_name, "control", "conversation.paused", BY_FIRST.format("paused"), verb="pause"
    ),
    "control.steer_each": Row(
        steering_each, "control", "conversation.paused", BY_FIRST.format("paused"), verb="pause"
    ),
    "forks.fork": Row(forking, "control", "conversation.forked", f"- {AGAIN}; its client id says which"),
    "forks.rerun": Row(rerunning, "control", "run.queued", f"- {AGAIN}; its client id says which", verb="fork"),
    "grants.give_grant": Row(
        lambda all_: lambda by: grants.give_grant(by, "otto", "speak_as", "system"), "people",
        f"- {NO_CONVERSATION}", r"user:\w+ was first: otto may .* already",
    ),
    "grants.take_grant": Row(
        with_a_grant, "people", f"- {NO_CONVERSATION}", r"user:\w+ was first: otto has no such grant any more"
    ),
    "messages.post": Row(speaking, "send", "message", f"- {AGAIN}; its client id says which", verb="send"),
    "people.create_person": Row(
        lambda all_: lambda by: people.create_person(by, "maria", ["viewer"]), "people", f"- {NO_CONVERSATION}",
        "maria is taken",
    ),
    "people.set_roles": Row(
        lambda all_: lambda by: people.set_roles(by, "vera", ["auditor"], expected=["viewer"]), "people",
        f"- {NO_CONVERSATION}", r"user:\w+ was first: the roles of vera are now auditor",
    ),
    "people.deactivate": Row(
        lambda all_: lambda by: people.deactivate(by, "vera"), "people", f"- {NO_CONVERSATION}",
        r"user:\w+ was first: vera is deactivated already",
    ),
    "people.activate": Row(
        deactivated, "people", f"- {NO_CONVERSATION}", r"user:\w+ was first: vera is active already"
    ),
    "policies.set_policy": Row(
        lambda all_: lambda by: policies.set_policy(by, RULE, expected=""), "policies", f"- {NO_CONVERSATION}",
        r"is another one now: user:\w+ has changed it",
    ),
    "policies.remove_policy": Row(with_a_rule, "policies", f"- {NO_CONVERSATION}", "there is no such rule any more"),
    "policies.load_policies": Row(
        lambda all_: lambda by: policies.load_policies(by, [RULE]), "policies", f"- {NO_CONVERSATION}",
        "- the whole file is the policy, whoever was first",
    ),
    "quarantine.redrive": Row(
        in_quarantine(lambda by, number: quarantine.redrive(by, number, conversation="desk")), "quarantine",
        "- the event is the unknown sender's own: the audit log has who read it again", r"user:\w+ was first",
    ),
    "quarantine.discard": Row(
        in_quarantine(lambda by, number: quarantine.discard(by, number, "noise")), "quarantine",
        f"- {NO_CONVERSATION}", r"user:\w+ was first",
    ),
    "quarantine.discard_alike": Row(
        in_quarantine(lambda by, number: quarantine.discard_alike(by, number, "noise")), "quarantine",
        f"- {NO_CONVERSATION}", "somebody was first", verb="discard",
    ),
    "replays.replay": Row(replaying, "replay_unsafe", "replay.requested", f"- {AGAIN}"),
    "responses.receive": Row(
        responding, "respond", "response.received", f"- {AGAIN}", verb="respond",
        audit="- publishing is recorded by the event itself (law E)",
    ),
    "runs.run_again": Row(running_again, "control", "run.queued", f"- {AGAIN}: they wait for each other"),
    "runs.stop": Row(stopping, "control", "run.cancelled", "is cancelled already", verb="cancel_run"),
    "sessions.set_password": Row(
        of_another(lambda by, name: sessions.set_password(by, name, PASSWORD)), "people", f"- {NO_CONVERSATION}",
        "- the last one holds",
    ),
    "sessions.sign_out_everywhere": Row(
        of_another(sessions.sign_out_everywhere), "people", f"- {NO_CONVERSATION}", f"- {AGAIN}"
    ),
    "sign_in_links.make_link": Row(
        lambda all_: lambda by: sign_in_links.make_link(by, "vera"), "people", f"- {NO_CONVERSATION}", f"- {AGAIN}"
    ),
    "tokens.make_token": Row(
        lambda all_: lambda by: tokens.make_token(by, "ci", "viewer"), "tokens", f"- {NO_CONVERSATION}",
        "token ci exists",
    ),
    "tokens.revoke_token": Row(with_a_token, "tokens", f"- {NO_CONVERSATION}", r"user:\w+ was first: token ci"),
}  # fmt: skip

# What takes no person's right: the test that proves it, or, after a dash, why there is none
ELSEWHERE: dict[str, str] = {
    "acting.acting": "test_audit.py::test_a_refused_action_leaves_one_refusal_and_no_change",
    "acting.revoked": "test_people.py::test_a_change_of_roles_rings_after_the_commit",
    "acting.writing_as": "test_decisions.py::test_a_token_decides_by_its_right_and_is_named",
    "approvals.wrote_input": "test_decisions.py::test_with_four_eyes_nobody_decides_on_what_they_wrote",
    "calls.begin": "test_runs.py::test_a_call_is_entered_once_in_whatever_attempt",
    "calls.call_of": "- it computes an id",
    "expiry.expire_due": "test_expiry.py::test_it_is_ended_once_however_many_look_and_who_decides_then_is_told",
    "forks.answering_at": "- it reads",
    "forks.began_at": "- it reads",
    "forks.is_changeable": "- it reads",
    "people.first_owner": "test_sign_in_links.py::test_the_first_owner_gets_every_role_and_a_new_link_each_start",
    "messages.own_name": "- it writes a name",
    "policies.digest_of": "- it computes a digest",
    "policies.state_of": "- it computes a digest",
    "quarantine.alike": "- it reads",
    "quarantine.find": "- it reads",
    "quarantine.lacks_conversation": "- it reads",
    "quarantine.read_again": "- it reads",
    "quarantine.settlement": "- it reads",
    "quarantine.target_of": "- it writes a name",
    "replays.checked": "- it reads",
    "responses.agent_of": "- it reads",
    "responses.is_continued": "- it reads",
    "responses.not_continuable": "- it makes an error",
    "responses.previous_of": "- it reads",
    "runs.claim": "test_runs.py::test_one_run_of_a_conversation_at_a_time_and_all_are_answered_in_order",
    "runs.end": "test_control.py::test_a_verb_changes_the_state_tells_an_event_and_is_audited",
    "runs.finish": "test_runs.py::test_a_worker_that_lost_its_run_writes_nothing_more",
    "runs.interrupt_dead": "test_worker_fences.py::test_a_worker_whose_run_was_taken_enters_no_tool_and_writes_nothing",
    "runs.park": "test_parked_runs.py::test_an_agent_that_is_gone_from_its_team_parks_the_run",
    "runs.put_back": "test_control.py::test_a_run_that_was_asked_to_end_while_its_worker_let_go_of_it_ends",
    "runs.renew": "test_runs.py::test_a_worker_that_lost_its_run_writes_nothing_more",
    "runs.wait": "test_runs.py::test_an_approval_is_decided_once_and_its_run_goes_on_with_the_next_attempt",
    "runs.wake": "test_mcp_approvals.py::test_a_run_whose_server_is_away_waits_for_it_says_so_and_goes_on",
    "secret.digest": "- it computes a digest",
    "secret.make": "- it makes a secret",
    "sessions.end_sessions": "test_sign_in_links.py::test_sign_out_everywhere_changes_the_salt_and_voids_links",
    "sessions.fit_password": "test_people.py::test_a_weak_password_is_refused",
    "sessions.note_failed_sign_in": "test_sign_in_links.py::test_a_failed_sign_in_keeps_no_unknown_name",
    "sessions.seats": "- it reads",
    "sessions.sign_in": "test_sign_in_pages.py::test_a_deactivated_person_is_not_let_in",
    "sessions.sign_out": "test_account_page.py::test_signing_out_ends_the_session",
    "sign_in_links.new_link": "test_sign_in_links.py::test_the_first_owner_gets_every_role_and_a_new_link_each_start",
    "sign_in_links.use_link": "test_sign_in_links.py::test_of_many_who_use_a_link_at_once_one_gets_in",
    "tokens.note_use": "test_bearer_tokens.py::test_the_use_of_a_token_is_noted_at_most_each_minute",
    "tokens.token_of": "test_bearer_tokens.py::test_a_token_is_found_by_its_secret_only",
}
