"""Which page answers which address (§3.6)."""

from django.urls import URLPattern, URLResolver, path, register_converter

from conversations.access.accounts import sign_in_links
from conversations.core.url_converters import ConversationId, RowNumber
from dashboard.api import alerts as api_alerts
from dashboard.api import approvals as api_approvals
from dashboard.api import audit as api_audit
from dashboard.api import auto_approvals as api_auto_approvals
from dashboard.api import budgets as api_budgets
from dashboard.api import control, tool_calls
from dashboard.api import conversations as api
from dashboard.api import forks as api_forks
from dashboard.api import policies as api_policies
from dashboard.api import redactions as api_redactions
from dashboard.api import retention as api_retention
from dashboard.api import runs as api_runs
from dashboard.api import search as api_search
from dashboard.api import tool_call_detail as api_tool_call
from dashboard.api.annotations import annotations
from dashboard.api.conversation_export import export as api_export
from dashboard.api.events import events
from dashboard.api.evidence import evidence as api_evidence
from dashboard.api.evidence import evidence_of_filter
from dashboard.api.messages import messages
from dashboard.api.openapi.document import openapi
from dashboard.api.presence import presence
from dashboard.api.read_markers import read_markers
from dashboard.pages import (
    account,
    agents,
    alerts,
    approvals,
    audit,
    auto_approvals,
    budgets,
    call_list,
    call_page,
    compare,
    connect,
    conversation,
    conversation_print,
    first_steps,
    forks,
    form_actions,
    grants,
    imports,
    outline,
    people,
    playhead,
    policies,
    quarantine,
    redaction,
    remote_agents,
    retention,
    search,
    sign_in,
    tokens,
    tools,
)
from dashboard.pages.conversations import conversations
from dashboard.pages.conversations import dismissal as since_left_dismissal
from dashboard.pages.operations import ops
from dashboard.pages.statistics import statistics

register_converter(ConversationId, "cid")
register_converter(RowNumber, "number")

urlpatterns: list[URLPattern | URLResolver] = [
    path("", conversations, name="conversations"),
    path("conversations/<cid:cid>/", conversation.conversation, name="conversation"),
    path("conversations/<cid:cid>/entries/", conversation.entries, name="conversation-entries"),
    path("conversations/<cid:cid>/panel/", conversation.panel, name="conversation-panel"),
    path("conversations/<cid:cid>/outline/", outline.outline, name="conversation-outline"),
    path("conversations/<cid:cid>/playhead/", playhead.playhead, name="conversation-playhead"),
    path("conversations/<cid:cid>/print/", conversation_print.printed, name="conversation-print"),
    path("conversations/<cid:cid>/prospect/", conversation.prospect, name="conversation-prospect"),
    path("conversations/<cid:cid>/fork/", forks.fork_page, name="fork"),
    path("conversations/<cid:cid>/standing/", conversation.standing, name="conversation-standing"),
    path("since-left/dismissal/", since_left_dismissal, name="since-left-dismissal"),
    path("first-steps/", first_steps.steps, name="first-steps"),
    path("first-steps/dismissal/", first_steps.dismissal, name="first-steps-dismissal"),
    path("connect/", connect.connect, name="connect"),
    path("connect/agents/", remote_agents.remote_agents, name="remote-agents"),
    path("connect/agents/removals/", remote_agents.removals, name="remote-agent-removals"),
    path("compare/", compare.compare, name="compare"),
    path("import/", imports.imports, name="imports"),
    path("import/pieces/", imports.pieces, name="import-pieces"),
    path("agents/", agents.agents, name="agents"),
    path("agents/<cid:team>/<cid:name>/", agents.agent, name="agent"),
    path("alerts/", alerts.alerts, name="alerts"),
    path("alerts/rules/", alerts.rules, name="alert-rules"),
    path("alerts/rules/<number:number>/<str:verb>/", alerts.rule, name="alert-rule"),
    path("alerts/alarms/<number:number>/ends/", alerts.ends, name="alarm-ends"),
    path("alerts/deliveries/<str:id>/<str:verb>/", alerts.delivery, name="alert-delivery"),
    path("tools/<cid:team>/<cid:name>/", tools.tool, name="tool"),
    path("schemas/<str:hash>/", tools.schema, name="schema"),
    path("calls/", call_list.calls, name="calls"),
    path("calls/export/<str:form>", call_list.export, name="calls-export"),
    path("calls/views/", call_list.save, name="calls-views"),
    path("calls/views/<number:number>/", call_list.change, name="calls-view"),
    path("calls/compare/", call_page.compare, name="call-compare"),
    path("calls/answers/", form_actions.answers, name="call-answers"),
    path("calls/<str:id>/", call_page.call, name="call"),
    path("calls/<str:id>/replays/", call_page.create_replay, name="call-replays"),
    path("numbers/", statistics, name="numbers"),
    path("approvals/", approvals.approvals, name="approvals"),
    path("approvals/rules/", auto_approvals.rules, name="approval-rules"),
    path("approvals/rules/revocations/", auto_approvals.revocations, name="approval-rule-revocations"),
    path("approvals/<str:id>/", approvals.approval, name="approval"),
    path("runs/again/", form_actions.again, name="runs-again"),
    path("runs/stop/", form_actions.stop, name="runs-stop"),
    path("audit/", audit.entries, name="audit"),
    path("audit/verification/", audit.verification, name="audit-verification"),
    path("audit/record/", audit.record, name="audit-record"),
    path("audit/export/<str:form>", audit.export, name="audit-export"),
    path("audit/<number:number>/", audit.entry, name="audit-entry"),
    path("audit/<number:number>/reveal/", audit.revealed, name="audit-reveal"),
    path("account/", account.account, name="account"),
    path("ops/", ops, name="ops"),
    path("ops/quarantine/", quarantine.entries, name="quarantine"),
    path("ops/quarantine/<number:number>/", quarantine.entry, name="quarantined"),
    path("ops/quarantine/<number:number>/discards/", quarantine.discards, name="quarantine-discards"),
    path("ops/quarantine/<number:number>/redrives/", quarantine.redrives, name="quarantine-redrives"),
    path("redaction/", redaction.redaction, name="redaction"),
    path("redaction/decisions/", redaction.decisions, name="redaction-decisions"),
    path("retention/", retention.retention, name="retention"),
    path("retention/holds/", retention.holds, name="holds"),
    path("retention/releases/", retention.releases, name="hold-releases"),
    path("retention/clock/", retention.clock, name="retention-clock"),
    path("retention/removals/", retention.removals, name="retention-removals"),
    path("people/", people.people, name="people"),
    path("people/grants/", grants.grants, name="grants"),
    path("people/grants/removals/", grants.removals, name="grant-removals"),
    path("people/<name>/activity/", people.activity, name="person-activity"),
    path("people/<name>/link/", people.link, name="person-link"),
    path("people/<name>/roles/", people.roles, name="person-roles"),
    path("people/<name>/sign-outs/", people.sign_outs, name="person-sign-outs"),
    path("policies/", policies.policies, name="policies"),
    path("policies/budgets/", budgets.budgets, name="budgets"),
    path("policies/budgets/removals/", budgets.removals, name="budget-removals"),
    path("policies/removals/", policies.removals, name="policy-removals"),
    path("search/", search.find, name="search"),
    path("sign-in/", sign_in.sign_in, name="sign-in"),
    path(sign_in_links.PATH[1:], sign_in.sign_in_link, name="sign-in-link"),
    path("sign-out/", sign_in.sign_out, name="sign-out"),
    path("sign-out-everywhere/", sign_in.sign_out_everywhere, name="sign-out-everywhere"),
    path("tokens/", tokens.tokens, name="tokens"),
    path("tokens/revocations/", tokens.revocations, name="token-revocations"),
    path("api/v1/conversations", api.conversations, name="api-conversations"),
    path("api/v1/conversations/<cid:cid>", api.conversation, name="api-conversation"),
    path("api/v1/conversations/<cid:cid>/events", events, name="api-events"),
    path("api/v1/conversations/<cid:cid>/export", api_export, name="api-export"),
    path("api/v1/evidence", evidence_of_filter, name="api-evidence-of-filter"),
    path("api/v1/conversations/<cid:cid>/evidence", api_evidence, name="api-evidence"),
    path("api/v1/conversations/<cid:cid>/messages", messages, name="api-messages"),
    path("api/v1/conversations/<cid:cid>/annotations", annotations, name="api-annotations"),
    path("api/v1/conversations/<cid:cid>/control", control.control, name="api-control"),
    path("api/v1/conversations/<cid:cid>/presence", presence, name="api-presence"),
    path("api/v1/control", control.control_many, name="api-control-many"),
    path("api/v1/conversations/<cid:cid>/forks", api_forks.forks, name="api-forks"),
    path("api/v1/approvals", api_approvals.approvals, name="api-approvals"),
    path("api/v1/approvals/decisions", api_approvals.decisions, name="api-decisions"),
    path("api/v1/approval-rules", api_auto_approvals.rules, name="api-approval-rules"),
    path(
        "api/v1/approval-rules/<str:id>/revocation", api_auto_approvals.revocation, name="api-approval-rule-revocation"
    ),
    path("api/v1/approvals/<str:id>", api_approvals.approval, name="api-approval"),
    path("api/v1/approvals/<str:id>/decision", api_approvals.decision, name="api-decision"),
    path("api/v1/tool-calls/<str:id>/answer", api_runs.answer, name="api-answer"),
    path("api/v1/runs/<str:id>/again", api_runs.again, name="api-again"),
    path("api/v1/runs/<str:id>/cancellation", api_runs.cancellation, name="api-cancellation"),
    path("api/v1/tool-calls", tool_calls.tool_calls, name="api-tool-calls"),
    path("api/v1/audit", api_audit.entries, name="api-audit"),
    path("api/v1/audit/<number:number>/reveal", api_audit.revealed, name="api-audit-reveal"),
    path("api/v1/saved-views", tool_calls.saved_views, name="api-saved-views"),
    path("api/v1/saved-views/<number:number>", tool_calls.saved_view, name="api-saved-view"),
    path("api/v1/saved-views/<number:number>/removal", tool_calls.removal, name="api-saved-view-removal"),
    path("api/v1/runs/<str:id>/forks", api_forks.reruns, name="api-reruns"),
    path("api/v1/tool-calls/<str:id>", api_tool_call.tool_call, name="api-tool-call"),
    path("api/v1/tool-calls/<str:id>/replays", api_tool_call.replays, name="api-replays"),
    path("api/v1/budgets", api_budgets.budgets, name="api-budgets"),
    path("api/v1/budgets/<str:id>/removal", api_budgets.removal, name="api-budget-removal"),
    path("api/v1/redactions", api_redactions.redactions, name="api-redactions"),
    path("api/v1/redactions/preview", api_redactions.preview, name="api-redaction-preview"),
    path("api/v1/redactions/<number:number>/decision", api_redactions.decision, name="api-redaction-decision"),
    path("api/v1/holds", api_retention.holds, name="api-holds"),
    path("api/v1/holds/<number:number>/release", api_retention.release, name="api-hold-release"),
    path("api/v1/retention-rules", api_retention.rules, name="api-retention-rules"),
    path("api/v1/retention-rules/<number:number>/preview", api_retention.preview, name="api-retention-preview"),
    path("api/v1/retention-rules/<number:number>/removal", api_retention.removal, name="api-retention-removal"),
    path("api/v1/policies", api_policies.policies, name="api-policies"),
    path("api/v1/alert-rules", api_alerts.rules, name="api-alert-rules"),
    path("api/v1/alert-rules/<number:number>", api_alerts.rule, name="api-alert-rule"),
    path("api/v1/alert-rules/<number:number>/removal", api_alerts.removal, name="api-alert-rule-removal"),
    path("api/v1/alert-rules/<number:number>/test", api_alerts.test, name="api-alert-rule-test"),
    path("api/v1/alert-rules/<number:number>/secret", api_alerts.secret, name="api-alert-rule-secret"),
    path("api/v1/alert-rules/<number:number>/shelf", api_alerts.shelf, name="api-alert-rule-shelf"),
    path("api/v1/alert-rules/<number:number>/unshelving", api_alerts.unshelving, name="api-alert-rule-unshelving"),
    path("api/v1/alarms", api_alerts.alarms, name="api-alarms"),
    path("api/v1/alarms/<number:number>/end", api_alerts.alarm_end, name="api-alarm-end"),
    path("api/v1/alert-deliveries", api_alerts.deliveries, name="api-alert-deliveries"),
    path("api/v1/alert-deliveries/<str:id>/retry", api_alerts.retry, name="api-alert-delivery-retry"),
    path("api/v1/alert-deliveries/<str:id>/discard", api_alerts.discard, name="api-alert-delivery-discard"),
    path("api/v1/alerts", api_alerts.figures, name="api-alerts"),
    path("api/v1/read-markers", read_markers, name="api-read-markers"),
    path("api/v1/search", api_search.search, name="api-search"),
    path("api/v1/openapi.json", openapi, name="api-openapi"),
]

handler400 = "dashboard.pages.errors.bad_request"
handler403 = "dashboard.pages.errors.forbidden"
handler404 = "dashboard.pages.errors.not_found"
handler500 = "dashboard.pages.errors.server_error"
