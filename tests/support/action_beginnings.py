"""What is there before each action of `action_rows`: a function of people prepares it, and returns the action."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from conversations.access.accounts import command_tokens, edit_grants, people, tokens
from conversations.access.permissions import Who
from conversations.alerts import deliveries, edit_rules, handle_alarms
from conversations.alerts.rule_fields import RuleFields
from conversations.conversation import annotate, control, fork, post_message
from conversations.core.principals import SYSTEM
from conversations.core.remote_agent_setting import RemoteAgent
from conversations.models import Agent, Alarm, AlertDelivery, AlertRule, ToolCall, User
from conversations.runs import edit_remote_agents, stop_and_rerun
from conversations.runs.approvals import auto_approval_edit, decide
from conversations.runs.budgets import edit_budgets
from conversations.runs.policy import edit_policy
from conversations.runs.policy.evaluate import PolicyRule as Rule
from conversations.runs.replay import request_replay
from conversations.runs.responses import cancel_or_delete, create, manual_output
from conversations.tool_calls import saved_views
from tests.support import alerting, quarantined, teamwork
from tests.support.cast import person
from tests.support.stand_in import Answer

People = Mapping[str, User]
Deed = Callable[[Who], Any]

SAID = {"type": "message", "sender": "agent:Triage", "recipient": "agent:Dialogue", "content": "Somebody is here."}
RULE = Rule("", "pay", "deny")
BUDGET = {"scope": "run", "measure": "tokens", "amount": "20000"}
ALERT = RuleFields("Failures", "run_failed", "post", "https://example.com/hook")
REMOTE = RemoteAgent("Weather", "https://weather.example/agent")
ALWAYS = auto_approval_edit.AutoApprovalScope(tool="file_incident", arguments={}, is_exact=False)


def deciding(all_: People) -> Deed:
    approval = teamwork.ask(all_["operator"]).id
    return lambda by: decide.decide(by, approval, "approve")


def deciding_each(all_: People) -> Deed:
    approval = teamwork.ask(all_["operator"]).id

    def each(by: Who) -> None:
        (outcome,) = decide.decide_each(by, [approval], "approve")
        if outcome.error is not None:
            raise outcome.error

    return each


def approving_always(all_: People) -> Deed:
    approval = teamwork.ask(all_["operator"]).id
    return lambda by: auto_approval_edit.approve_and_make_rule(by, approval, auto_approval_edit.AutoApprovalScope())


def with_an_auto_approval_rule(all_: People) -> Deed:
    made = auto_approval_edit.make_rule(SYSTEM, ALWAYS).id
    return lambda by: auto_approval_edit.revoke_rule(by, made)


def with_a_remote_agent(all_: People) -> Deed:
    edit_remote_agents.register(SYSTEM, REMOTE)
    return lambda by: edit_remote_agents.remove(by, REMOTE.name)


def with_a_view(do: Callable[[Who, int], Any]) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        made = saved_views.save_view(all_["operator"], "Slow ones", "status=failed").pk
        return lambda by: do(by, made)

    return begin


def controlling(verb: str, *before: str, is_running: bool = False) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        teamwork.say(all_["operator"])
        if is_running:
            teamwork.claim()
        for verb_before in before:
            control.perform(all_["operator"], verb_before, "flood")
        return lambda by: getattr(control, verb)(by, "flood", "because")

    return begin


def controlling_by_name(all_: People) -> Deed:
    teamwork.say(all_["operator"])
    return lambda by: control.perform(by, "pause", "flood")


def controlling_each(all_: People) -> Deed:
    teamwork.say(all_["operator"])

    def each(by: Who) -> None:
        (outcome,) = control.perform_on_each(by, "pause", ["flood"])
        if outcome.error is not None:
            raise outcome.error

    return each


def annotating(all_: People) -> Deed:
    about = teamwork.say(all_["operator"])
    return lambda by: annotate.annotate(by, "flood", about, client_id="1", thumb="up")


def speaking(all_: People) -> Deed:
    ask = {"recipient": "agent:Dialogue", "content": "Water", "client_id": "1"}
    return lambda by: post_message.post(by, "flood", **ask)


def responding(all_: People) -> Deed:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Water"}]}
    request = create.ResponseRequest(model="Dialogue", input=[item])
    return lambda by: create.receive(by, request)


def answering(all_: People) -> Deed:
    """A response waits for its client to answer a call."""
    tool = {"type": "function", "name": "rain", "parameters": {"type": "object", "properties": {}}}
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Water"}]}
    response = create.receive(all_["operator"], create.ResponseRequest(model="Dialogue", input=[item], tools=[tool]))
    answer = Answer(teamwork.claim(response.conversation))
    answer.call("rain", "{}", "c1")
    answer.finish()
    call = ToolCall.objects.get(run=response.run).id
    return lambda by: manual_output.answer_call(by, call, "4 mm")


def cancelling(all_: People) -> Deed:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Water"}]}
    response = create.receive(all_["operator"], create.ResponseRequest(model="Dialogue", input=[item])).response
    return lambda by: cancel_or_delete.cancel(by, response)


def deleting(all_: People) -> Deed:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Water"}]}
    response = create.receive(all_["operator"], create.ResponseRequest(model="Dialogue", input=[item]))
    Answer(teamwork.claim(response.conversation)).finish()
    return lambda by: cancel_or_delete.delete(by, response.response)


def running_again(all_: People) -> Deed:
    run = teamwork.fail(all_["operator"])
    return lambda by: stop_and_rerun.run_again(by, run)


def stopping(all_: People) -> Deed:
    run = teamwork.ask(all_["operator"]).run
    return lambda by: stop_and_rerun.cancel_run(by, run)


def replaying(all_: People) -> Deed:
    layers = {"qualified_name": "file_incident", "origin": "function", "schema": teamwork.SCHEMA}
    layers["lookup_key"] = "bare:file_incident"
    tool = {"name": "file_incident", "public_name": "file_incident", "effect": "unsafe", **layers}
    Agent.objects.filter(name="Dialogue").update(tools=json.dumps([tool]))
    approval = teamwork.ask(all_["operator"], **layers)
    decide.decide(all_["approver"], approval.id, "approve")
    approval.refresh_from_db()
    teamwork.go_on(approval)
    return lambda by: request_replay.request_replay(by, approval.tool_call, reason="It was lost", tool="file_incident")


def forking(all_: People) -> Deed:
    at = teamwork.say(all_["operator"])
    return lambda by: fork.fork(by, "flood", at)


def rerunning(all_: People) -> Deed:
    run = teamwork.fail(all_["operator"])
    return lambda by: fork.rerun(by, run)


def with_a_grant(all_: People) -> Deed:
    edit_grants.give_grant(SYSTEM, "otto", "speak_as", "system")
    return lambda by: edit_grants.take_grant(by, "otto", "speak_as", "system")


def in_quarantine(do: Callable[[Who, int], Any]) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        message = quarantined.quarantine(SAID).pk
        return lambda by: do(by, message)

    return begin


def with_a_rule(all_: People) -> Deed:
    edit_policy.set_policy(SYSTEM, RULE)
    return lambda by: edit_policy.remove_policy(by, RULE.target)


def alerted(do: Callable[[Who, AlertRule], Any]) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        rule = edit_rules.make_rule(SYSTEM, ALERT)
        return lambda by: do(by, rule)

    return begin


def unshelving(all_: People) -> Deed:
    rule = edit_rules.make_rule(SYSTEM, ALERT)
    handle_alarms.shelve(SYSTEM, rule.id, 3600)
    return lambda by: handle_alarms.unshelve(by, rule.id)


def ending_an_alarm(all_: People) -> Deed:
    rule = alerting.rule()
    alarm = Alarm.objects.create(rule=rule, group="g", kind=rule.kind, cause="failed", opened_at=1, last_at=1)
    return lambda by: handle_alarms.end_alarm(by, alarm.id)


def of_dead_letter(do: Callable[[Who, str], Any]) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        letter = deliveries.enqueue(alerting.rule(), "test", 1)
        AlertDelivery.objects.update(status="failed")
        return lambda by: do(by, letter.id)

    return begin


def deactivated(all_: People) -> Deed:
    people.deactivate(SYSTEM, "vera")
    return lambda by: people.activate(by, "vera")


def with_a_command(all_: People) -> Deed:
    token = command_tokens.issue("robot")
    return lambda by: command_tokens.revoke_command_token(by, token.id)


def with_a_token(all_: People) -> Deed:
    tokens.make_token(SYSTEM, "ci", "viewer")
    return lambda by: tokens.revoke_token(by, "ci")


def of_another(do: Callable[[Who, str], Any]) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        name = person("rosa").username
        return lambda by: do(by, name)

    return begin


def with_a_budget(all_: People) -> Deed:
    """A budget to remove."""
    budget = edit_budgets.set_budget(SYSTEM, **BUDGET)
    return lambda by: edit_budgets.remove_budget(by, budget.id)
