"""Functions that have no row in `action_rows`, by `module.function`: the test that proves each, or, after a dash, why
there is nothing to prove. `action_modules` finds the actions."""

import ast
from collections.abc import Iterator

from tests.support.live import ROOT

# Below `conversations`: every public function here is listed below or has a row, whoever may call it.
WHOLE_MODULES = (
    "access.accounts.command_tokens",
    "access.accounts.edit_grants",
    "access.accounts.one_time_secret",
    "access.accounts.people",
    "access.accounts.sign_in",
    "access.accounts.sign_in_links",
    "access.accounts.tokens",
    "access.action_context",
    "access.list_export",
    "alerts.edit_rules",
    "alerts.handle_alarms",
    "runs.edit_remote_agents",
    "conversation.control",
    "conversation.fork",
    "conversation.post_message",
    "runs.approvals.auto_approval",
    "runs.approvals.decide",
    "runs.approvals.auto_approval_edit",
    "runs.approvals.overdue_requests",
    "runs.claims",
    "runs.leases",
    "runs.policy.edit_policy",
    "runs.budgets.edit_budgets",
    "runs.replay.request_replay",
    "runs.responses.cancel_or_delete",
    "runs.responses.create",
    "runs.responses.manual_output",
    "runs.stop_and_rerun",
    "tool_calls.saved_views",
    "transport.quarantine",
)


def action_modules() -> Iterator[str]:
    """Yield every module of `conversations` that imports `audited_action`: a function of it that begins with `by` is an
    action."""
    package = ROOT / "conversations"
    for path in sorted(package.rglob("*.py")):
        names = [alias.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
                 for alias in node.names]  # fmt: skip
        if "audited_action" in names:
            yield ".".join(path.relative_to(package).with_suffix("").parts)


ELSEWHERE: dict[str, str] = {
    "audit_entries.erase": (
        "test_audit_entries.py::test_only_an_admin_erases_and_a_hold_keeps_what_the_log_says_of_a_conversation"
    ),
    "background_check.begin": (
        "test_record_check.py::test_of_two_who_begin_one_the_second_is_told_and_a_lost_one_is_begun_again"
    ),
    "expiry.expire": "test_redact.py::test_what_is_too_old_expires_and_what_is_held_or_of_another_kind_stays",
    "erase_id.erase_id": "test_erase_id.py::test_who_may_not_and_what_stands_in_the_way_is_refused",
    "legal_holds.place": "test_redact.py::test_only_an_admin_redacts_and_holds",
    "legal_holds.release": (
        "test_redact.py::test_a_hold_beats_a_redaction_until_it_is_released_and_a_regulated_one_for_good"
    ),
    "redact.redact": "test_redact.py::test_only_an_admin_redacts_and_holds",
    "redact.redact_call": "test_scope.py::test_a_field_of_a_call_goes_wherever_the_call_says_it_and_the_rest_stays",
    "requests.confirm": "test_scope.py::test_where_two_people_are_needed_a_second_one_confirms",
    "requests.count_for": (
        "test_redaction_pages.py::test_every_page_tells_the_second_admin_and_nobody_else_that_a_request_waits"
    ),
    "requests.decline": "test_scope.py::test_a_declined_request_changes_nothing_and_one_about_a_person_keeps_no_words",
    "requests.submit": "test_scope.py::test_where_two_people_are_needed_a_second_one_confirms",
    "retention_clock.confirm": "test_retention_clock.py::test_an_admin_alone_confirms_it_and_retention_goes_on",
    "requests.submit_rule": "test_retention_two_admins.py::test_a_rule_over_the_api_waits_for_a_second_admin",
    "retention_rules.remove_rule": "test_retention.py::test_only_an_admin_sets_and_removes_rules_and_each_is_audited",
    "retention_rules.set_rule_once": (
        "test_retention_two_admins.py::test_a_confirmation_that_was_cut_off_sets_its_rule_once"
    ),
    "retention_rules.set_rule": "test_retention.py::test_only_an_admin_sets_and_removes_rules_and_each_is_audited",
    "reveal.reveal": "test_reveal.py::test_nobody_else_looks_and_who_tries_is_an_entry",
    "action_context.audited_action": "test_audit.py::test_a_refused_action_leaves_one_refusal_and_no_change",
    "action_context.revoked": "test_people.py::test_a_change_of_roles_rings_after_the_commit",
    "action_context.check_reason": "- it checks a length",
    "action_context.required_reason": "- it checks a text",
    "action_context.find_conversation": "- it reads",
    "action_context.event_author": "test_decisions.py::test_a_token_decides_by_its_right_and_is_named",
    "command_tokens.issue": "test_command_tokens.py::test_each_is_revoked_alone_with_what_is_under_way",
    "command_tokens.live": "- it reads",
    "decide.request_body": "- it reads",
    "decide.authors": "- it reads",
    "decide.store_decision": "test_auto_approval.py::test_a_rule_and_a_person_at_once_make_one_decision",
    "decide.requeue_or_end_if_decided": "test_external_approvals.py::test_a_decision_ends_the_waiting",
    "decide.apply_decision": "test_auto_approval.py::test_of_two_who_approve_always_one_makes_a_rule",
    "claims.begin_execution": "test_runs.py::test_a_call_is_entered_once_in_whatever_attempt",
    "claims.our_call_id": "- it computes an id",
    "overdue_requests.handle_due": (
        "test_overdue_requests.py::test_it_is_ended_once_however_many_look_and_who_decides_then_is_told"
    ),
    "fork.answering_at": "- it reads",
    "fork.began_at": "- it reads",
    "fork.is_changeable": "- it reads",
    "people.spelled": "- it writes a name",
    "people.first_owner": "test_sign_in_links.py::test_the_first_owner_gets_every_role_and_a_new_link_each_start",
    "auto_approval.approve_call": (
        "test_auto_approval_gate.py::test_of_several_calls_each_finds_its_own_rule_and_the_rest_wait"
    ),
    "auto_approval.approve_waiting": "test_auto_approval.py::test_so_many_uses_are_so_many_however_many_count_at_once",
    "auto_approval.makers_right": "- it reads",
    "post_message.own_name": "- it writes a name",
    "edit_policy.digest_of": "- it computes a digest",
    "edit_policy.state_of": "- it computes a digest",
    "edit_policy.target_of": "- it writes a name",
    "edit_budgets.target_of": "- it writes a name",
    "auto_approval_edit.digest_of": "- it computes a digest",
    "edit_grants.facts_of": "- it reads",
    "tokens.state_of": "- it computes a digest",
    "edit_rules.state_of": "- it computes a digest",
    "edit_remote_agents.address_of": "- it computes an address",
    "edit_remote_agents.delete_rows_of_removed": (
        "test_removed_agents.py::test_the_row_that_a_worker_wrote_while_the_agent_was_removed_goes"
    ),
    "edit_remote_agents.listed": "- it reads",
    "edit_remote_agents.registered_now": "- it reads",
    "quarantine.alike": "- it reads",
    "quarantine.find": "- it reads",
    "quarantine.lacks_conversation": "- it reads",
    "quarantine.read_again": "- it reads",
    "quarantine.settlement": "- it reads",
    "quarantine.target_of": "- it writes a name",
    "request_replay.read_arguments": "- it reads",
    "create.agent_of": "- it reads",
    "create.begin": "test_new_responses.py::test_a_token_revoked_before_the_commit_is_refused_as_by_any_action",
    "create.is_continued": "- it reads",
    "create.keep_host": "test_hosted_elsewhere.py::test_run_again_or_in_a_fork_it_runs_where_the_tool_is_hosted",
    "create.not_continuable": "- it makes an error",
    "create.previous_of": "- it reads",
    "create.remembered": "- it reads",
    "claims.claim": "test_runs.py::test_one_run_of_a_conversation_at_a_time_and_all_are_answered_in_order",
    "stop_and_rerun.end": "test_control.py::test_a_verb_changes_the_state_tells_an_event_and_is_audited",
    "leases.end_of_new": "- it computes a time",
    "leases.is_abandoned": "- it reads",
    "leases.interrupt_queued": "test_recorder_restored.py::test_after_a_restore_no_message_starts_a_second_run",
    "leases.interrupt_locked": "test_stuck_runs.py::test_a_run_with_an_ended_lease_is_freed_without_any_worker",
    "leases.interrupt_all": "test_stuck_runs.py::test_who_alone_runs_agents_ends_what_others_left",
    "leases.interrupt_expired": (
        "test_worker_fences.py::test_a_worker_whose_run_was_taken_enters_no_tool_and_writes_nothing"
    ),
    "stop_and_rerun.end_as_incompatible": "test_incompatible_runs.py::test_a_run_whose_agent_left_its_team_ends",
    "claims.requeue": "test_control_runs.py::test_a_run_that_was_asked_to_end_while_its_worker_let_go_of_it_ends",
    "claims.renew": "test_runs.py::test_a_worker_that_lost_its_run_writes_nothing_more",
    "claims.suspend": "test_runs.py::test_an_approval_is_decided_once_and_its_run_goes_on_with_the_next_attempt",
    "stop_and_rerun.requeue_waiting_for_server": (
        "test_mcp_approvals.py::test_a_run_whose_server_is_away_waits_for_it_says_so_and_goes_on"
    ),
    "one_time_secret.digest": "- it computes a digest",
    "one_time_secret.make": "- it makes a secret",
    "sign_in.end_sessions": "test_sign_in_links.py::test_sign_out_everywhere_changes_the_salt_and_voids_links",
    "sign_in.fit_password": "test_people.py::test_a_weak_password_is_refused",
    "sign_in.note_failed_sign_in": "test_sign_in_links.py::test_a_failed_sign_in_keeps_no_unknown_name",
    "sign_in.seat_keys": "- it reads",
    "sign_in.devices_of": "- it reads",
    "sign_in.sign_in": "test_sign_in_pages.py::test_a_deactivated_person_is_not_let_in",
    "sign_in.sign_out": "test_account_page.py::test_signing_out_ends_the_session",
    "sign_in_links.new_link": "test_sign_in_links.py::test_the_first_owner_gets_every_role_and_a_new_link_each_start",
    "sign_in_links.use_link": "test_sign_in_links.py::test_of_many_who_use_a_link_at_once_one_gets_in",
    "cancel_or_delete.not_there": "- it makes an error",
    "tokens.note_use": "test_bearer_tokens.py::test_the_use_of_a_token_is_noted_at_most_each_minute",
    "tokens.token_of": "test_bearer_tokens.py::test_a_token_is_found_by_its_secret_only",
}
