"""An auto-approval rule is for the tool of its own origin, MCP server and team, whatever others have its name."""

import json

import pytest
from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.mcp.servers import McpServer
from agents_app.teams.definition import Team
from conversations.core.errors import Invalid
from conversations.core.ids import text_digest
from conversations.models import Agent as AgentRow
from conversations.models import Approval, AutoApprovalRule, ToolCall
from conversations.runs.approvals import auto_approval, auto_approval_edit, auto_approval_view
from conversations.runs.approvals.auto_approval_edit import AutoApprovalScope
from tests.agents_app.test_mcp_servers import Desk, call, connected, quick, team_of  # noqa: F401  # a fixture
from tests.support.agents_running import ended_runs, send_message, working

pytestmark = pytest.mark.django_db(transaction=True)
ARGS = {"street": "Elm"}
ANY_AGENT = pytest.mark.parametrize("any_agent", [False, True])


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Two servers of one software: their tools have the same names and schemas."""
    desks = [Desk(tmp_path_factory.mktemp(name) / "effects").start() for name in ("staging", "prod")]
    yield desks
    for desk in desks:
        desk.kill()


def stamping(desk, name):
    server = McpServer(name, url=f"http://127.0.0.1:{desk.port}/mcp", allow=["stamp"], ask=True)
    return team_of([call("stamp", {"words": "A7"})], [assistant_message("ok")], servers=[server])


def always_allow(people, **scope):
    return auto_approval_edit.approve_and_make_rule(
        people["approver"], Approval.objects.get().id, AutoApprovalScope(**scope)
    )


def newest_call():
    return ToolCall.objects.order_by("-started_at").exclude(name__startswith="transfer").first()


@pytest.mark.slow
@ANY_AGENT
def test_a_rule_for_one_servers_tool_is_not_for_anothers(people, servers, any_agent):
    staging, prod = servers
    with connected(stamping(staging, "staging"), "stamp"):
        send_message()
        ended_runs(within=60)
        rule = always_allow(people, any_agent=any_agent)
        ended_runs(within=60)

    with connected(stamping(prod, "prod"), "stamp"):
        send_message(key="d")
        ended_runs(2, within=60)
        (shown,) = auto_approval_view.shown([rule])

    assert (newest_call().mcp_server, newest_call().status, prod.did) == ("prod", "waiting", [])
    assert (shown.server, shown.idle) == ("staging", "The tool has changed")


def of_team(name, entry, ran):
    """A team with an agent Helper, whose tool has the same name and schema in every team."""

    @function_tool(needs_approval=True)
    def look(street: str) -> str:
        """Look."""
        ran.append(name)
        return name

    steps = [[function_call("look", ARGS, call_id=f"c-{name}")], [assistant_message("Done.")]]
    helper = Agent(name="Helper", model=ScriptedModel(steps), tools=[look])
    front = Agent(
        name=entry, model=ScriptedModel([[function_call("transfer_to_helper", {}, call_id="h1")]]), handoffs=[helper]
    )
    return Team(name=name, agents=[front, helper], entry=[entry])


@pytest.mark.slow
@ANY_AGENT
def test_a_rule_for_one_teams_tool_is_not_for_anothers(people, any_agent):
    ran = []
    with working(of_team("zeta", "Front", ran), of_team("alpha", "Boss", ran)):
        send_message(to="agent:Front")
        ended_runs()
        always_allow(people, any_agent=any_agent)
        ended_runs()
        send_message(to="agent:Boss", key="d")
        ended_runs(2)

    assert (ran, newest_call().status) == (["zeta"], "waiting")


@pytest.mark.slow
def test_a_rule_still_approves_the_tool_for_which_it_was_made(people):
    ran = []
    with working(of_team("zeta", "Front", ran)):
        send_message(to="agent:Front")
        ended_runs()
        always_allow(people)
        ended_runs()
    with working(of_team("zeta", "Front", ran)):
        send_message(to="agent:Front", key="d")
        ended_runs(2)

    assert (ran, newest_call().status) == (["zeta", "zeta"], "done")


@pytest.mark.slow
def test_a_rule_from_before_is_for_any_server_and_team_and_keeps_its_audited_digest(people):
    ran = []
    rule = AutoApprovalRule.objects.create(
        id="r1", lookup_key="bare:look", tool="look", is_exact=False, arguments="{}", digest=text_digest("{}"),
        made_by="user:april", made_at=1,
    )  # fmt: skip
    with working(of_team("zeta", "Front", ran), of_team("alpha", "Boss", ran)):
        send_message(to="agent:Front")
        send_message(to="agent:Boss", key="d")
        ended_runs(2)

    assert sorted(ran) == ["alpha", "zeta"]
    scope = ["bare:look", "", "", False, text_digest("{}"), None, None]
    assert auto_approval_edit.digest_of(rule) == auto_approval_edit.chain.digest(scope)


def test_a_change_of_a_rules_server_shows_in_its_digest():
    rule = AutoApprovalRule(lookup_key="bare:look", mcp_server="staging")
    digests = {auto_approval_edit.digest_of(rule)}
    for server, team in (("prod", ""), ("", ""), ("", "staging")):
        rule.mcp_server, rule.team = server, team
        digests.add(auto_approval_edit.digest_of(rule))

    assert len(digests) == 4


def offer(name, team, **tool):
    facts = {"name": "look", "lookup_key": "bare:look", "schema": "s", "origin": "function", "mcp_server": None} | tool
    AgentRow.objects.create(team=team, name=name, tools=json.dumps([facts]))


@pytest.mark.parametrize(("agent", "of_which"), [("Helper", "zeta"), ("", "")])
def test_a_rule_by_hand_is_for_the_tool_that_it_names(people, agent, of_which):
    offer("Helper", "zeta", origin="mcp", mcp_server="staging")

    made = auto_approval_edit.make_rule(people["approver"], AutoApprovalScope(arguments={}, tool="look", agent=agent))

    assert (made.schema, made.origin, made.mcp_server, made.team) == ("s", "mcp", "staging", of_which)


@pytest.mark.parametrize(
    ("agent", "other"), [("", {"mcp_server": "prod"}), ("Helper", {"mcp_server": "prod"}), ("Helper", {})]
)
def test_a_rule_by_hand_does_not_choose_between_tools_of_one_name(people, agent, other):
    offer("Helper", "zeta", mcp_server="staging")
    offer("Helper", "alpha", **{"mcp_server": "staging"} | other)

    with pytest.raises(Invalid, match="several tools have this name"):
        auto_approval_edit.make_rule(people["approver"], AutoApprovalScope(arguments={}, tool="look", agent=agent))

    assert not AutoApprovalRule.objects.exists()


@pytest.mark.parametrize(("other", "approved"), [("zeta", 1), ("alpha", 0)])
def test_a_request_that_waits_is_approved_by_a_rule_for_its_teams_tool(people, other, approved):
    with working(of_team("zeta", "Front", [])):
        send_message(to="agent:Front")
        ended_runs()
        scope = AutoApprovalScope(is_exact=False, arguments={}, tool="look", agent="Helper")
        rule = auto_approval_edit.make_rule(people["approver"], scope)
    AutoApprovalRule.objects.filter(id=rule.id).update(team=other)

    assert len(auto_approval.approve_waiting()) == approved
