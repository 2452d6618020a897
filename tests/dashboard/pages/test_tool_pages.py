"""The pages of a tool and of an agent: what workers told of them, how calls went, what changed between versions."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from agents import Agent as SdkAgent
from agents import RunContextWrapper, WebSearchTool, function_tool, handoff, tool_input_guardrail
from agents import tool_namespace as put_into
from pydantic import BaseModel, Field

from agents_app.model_providers.providers import ModelConfig, Provider
from agents_app.teams import agent_registry
from agents_app.teams.definition import Team
from agents_app.teams.served_team import ServedTeam
from conversations.events import log
from conversations.models import Agent, Policy, ToolCall, ToolSchema, ToolVersion
from conversations.runs.policy import evaluate
from conversations.tool_calls.schemas import call_statistics
from tests.support import teamwork
from tests.support.visits import words_of

pytestmark = pytest.mark.django_db


NAMES = (
    "<img src=x onerror=alert(1)>",
    "\u202eevil\"' onclick='x'",
    "a/b?c#d&e",
    "..",
    "ملف",
    "x" * 100,
    "~ %2F {{7*7}}",
)


class Place(BaseModel):
    street: str = Field(description="Where it is", max_length=80)
    number: int | None = Field(default=None, ge=1)


class Desk(BaseModel):
    notes: list[str] = []


def only_by_day(ctx: Any, agent: Any) -> bool:
    return True


@tool_input_guardrail
def no_swearing(data: Any) -> Any:
    raise NotImplementedError


async def report(ctx: RunContextWrapper[Desk], place: Place, severity: int = 2) -> list[str]:
    """Report a flood.

    Args:
        severity: From 1 to 5.
    """
    return []


async def report_again(ctx: RunContextWrapper[Desk], place: Place, severity: int, urgent: bool) -> list[str]:
    """Report a flood, again."""
    return []


SETTINGS: dict[str, Any] = {
    "needs_approval": True,
    "is_enabled": only_by_day,
    "tool_input_guardrails": [no_swearing],
    "timeout": 30.0,
}


def served(function: Any = report, team: str = "Hall", agent: str = "Clerk") -> ServedTeam:
    """Enter a team of two agents as a worker does; return its roster."""
    tool = function_tool(function, name_override="report", **SETTINGS)
    spaced = put_into(name="city", description="The city's.", tools=[function_tool(function, name_override="report")])
    other = SdkAgent[Any](name="Boss", output_type=list[Place])
    clerk = SdkAgent[Any](name=agent, tools=[tool, *spaced], handoffs=[handoff(other)])
    made = Team(name=team, agents=[clerk, other], entry=[agent], context=Desk, effects={"report": "destructive"})
    roster = ServedTeam(made, Provider(ModelConfig()))
    agent_registry.register([roster])
    return roster


def schema_of(roster: ServedTeam, name: str = "report") -> str:
    (hash_,) = [s.hash for s in roster.schemas(roster.team.agents[0]) if s.name == name]
    return hash_


def page(browser: Any, address: str, status: int = 200) -> str:
    answer = browser.get(address)
    assert answer.status_code == status, (address, words(answer.content.decode()))
    return answer.content.decode()


def words(html: str) -> str:
    return words_of(html[html.index("<main") : html.index("</main")])


def test_a_tool_is_shown_as_a_model_sees_it_beside_what_is_put_in(browser):
    served()

    page_text = words(page(browser, "/tools/Hall/report/"))

    assert "strict" in page_text
    assert "Report a flood." in page_text
    assert "place object Place yes none none" in page_text
    assert "street string yes none at most 80 characters Where it is" in page_text
    assert "number integer | null yes none ≥ 1" in page_text
    assert "severity integer yes 2 none From 1 to 5." in page_text
    assert "Context RunContextWrapper[Desk]" in page_text
    assert "Returns list[str]" in page_text
    assert "ctx" not in page_text
    assert "needs approval" in page_text
    assert "Effect destructive" in page_text
    assert "no_swearing on input" in page_text
    assert "Timeout 30 s, then the model is informed" in page_text
    assert "Enabled only_by_day" in page_text
    assert "Lookup key bare:report" in page_text
    assert "Approval keys report" in page_text
    assert "none yet" in page_text


def test_what_operators_have_tightened_is_told_beside_the_code(browser):
    served()
    by_ada, by_bob = ({"updated_by": f"user:{name}", "updated_at": datetime.now(UTC)} for name in ("ada", "bob"))
    Policy.objects.create(agent="Clerk", tool="report", rule="deny", note="storm", **by_ada)
    Policy.objects.create(tool="city.report", rule="ask", effect="destructive", **by_bob)
    evaluate.forget()

    bare, spaced = (words(page(browser, f"/tools/Hall/{name}/")) for name in ("report", "city.report"))

    assert "Approval needs approval Policy is refused: storm (set by user:ada) Effect destructive" in bare
    assert "Policy requires approval (set by user:bob) treated as destructive (set by user:bob)" in spaced


def test_tools_of_one_public_name_are_two_pages_that_name_each_other(browser):
    served()

    bare, spaced = page(browser, "/tools/Hall/report/"), page(browser, "/tools/Hall/city.report/")

    assert 'href="/tools/Hall/city.report/"' in bare
    assert 'href="/tools/Hall/report/"' in spaced
    assert "Namespace city Qualified name city.report Lookup key namespaced:city.report" in words(spaced)
    assert "same public name" in page(browser, "/agents/")


def test_versions_are_kept_and_compared(browser):
    old, new = schema_of(served()), schema_of(served(report_again))

    now, then = page(browser, "/tools/Hall/report/"), page(browser, f"/tools/Hall/report/?version={old}")
    back = words(page(browser, f"/tools/Hall/report/?version={old}&against={new}"))

    assert ToolSchema.objects.filter(hash__in=[old, new]).count() == 2
    assert "Versions 2 Version Schema" in words(now)
    assert "Report a flood, again." in words(now)
    assert "an earlier version of the tool" in then
    assert "Report a flood." in words(then)
    changed = words(now)[words(now).index("Path v1 shown") :]
    assert "description Report a flood." not in changed
    assert 'description "Report a flood." "Report a flood, again."' in changed
    assert "parameters.properties.severity.default 2 absent" in changed
    assert 'parameters.required[] absent "urgent"' in changed
    assert 'parameters.required[] "urgent" absent' in back


def test_a_version_that_is_offered_again_is_the_old_one(browser):
    first = schema_of(served())
    served(report_again)
    began = ToolVersion.objects.get(hash=first).first_at

    served()

    again = ToolVersion.objects.get(hash=first)
    assert (again.first_at, ToolVersion.objects.filter(name="report").count()) == (began, 2)
    assert again.last_at > began


def call(by: Any, schema: str, key: str, status: str = "success", ms: float = 10.0, agent: str = "Dialogue") -> None:
    """Let a run make one call under a schema."""
    teamwork.say(by, key=key)
    claimed = teamwork.claim(key)
    step = {"event": "tool_step", "name": "report", "tool_call": f"call-{key}", "schema": schema, "agent": agent}
    log.append([claimed.event({**step, "status": "start", "args": {}})])
    log.append([claimed.event({**step, "status": status, "output": "x", "duration_ms": ms})])


def test_calls_are_counted_and_lead_to_their_events_and_schemas(team, browser):
    schema = schema_of(served(agent="Dialogue"))
    for n in range(4):
        call(team["operator"], schema, f"c{n}", status="error" if n == 3 else "success", ms=(n + 1) * 100)

    html = page(browser, "/tools/Hall/report/")

    text, seq = words(html), ToolCall.objects.get(conversation__key="c3").called_seq
    assert "Calls 4, since" in text
    assert "Failed 25.0 %" in text
    assert "Median 200 ms p95 300 ms p99 300 ms" in text
    assert f'href="/conversations/c3/?event={seq}#e{seq}"' in html
    assert html.count(f'href="?version={schema}"') == 5
    assert html.index("/conversations/c3/") < html.index("/conversations/c0/")
    assert '<a href="/calls/?qualified=report">Show all</a>' in html
    assert browser.get("/calls/?qualified=report").content.decode().count("data-key=") == 4


def test_the_window_is_bounded_and_says_so(team, browser, monkeypatch):
    monkeypatch.setattr(call_statistics, "WINDOW", 2)
    monkeypatch.setattr(call_statistics, "SHOWN", 1)
    schema = schema_of(served(agent="Dialogue"))
    for n in range(3):
        call(team["operator"], schema, f"c{n}", ms=(n + 1) * 100)

    figures = call_statistics.figures_of([schema])

    assert (figures.calls, figures.is_full, [c.conversation.key for c in figures.newest]) == (2, True, ["c2"])
    assert figures.latency is not None
    assert (figures.latency.p50, figures.latency.p99) == (200, 300)


def test_a_call_in_a_transcript_leads_to_the_tool_at_its_schema(team, browser):
    old = schema_of(served(agent="Dialogue"))
    call(team["operator"], old, "c1")
    served(report_again, agent="Dialogue")

    transcript = page(browser, "/conversations/c1/")
    answer = browser.get(f"/schemas/{old}/?agent=Dialogue", follow=True)

    assert f'href="/schemas/{old}/?agent=Dialogue"' in transcript
    assert answer.redirect_chain == [(f"/tools/Hall/report/?version={old}", 302)]
    assert "an earlier version of the tool" in answer.content.decode()


def test_durations_read_as_elsewhere(team, browser):
    call(team["operator"], schema_of(served(agent="Dialogue")), "c", ms=3_600_000)

    assert "Median 1.0 h p95 1.0 h" in words(page(browser, "/tools/Hall/report/"))


def test_a_schema_of_two_teams_leads_to_the_team_of_the_agent(browser):
    first, second = served(team="One", agent="A"), served(team="Two", agent="B")
    schema = schema_of(first)
    assert schema == schema_of(second)

    for agent, team in (("A", "One"), ("B", "Two"), ("", "Two")):
        assert browser.get(f"/schemas/{schema}/?agent={agent}")["Location"].startswith(f"/tools/{team}/report/")


def test_calls_of_another_teams_agents_are_not_counted(team):
    served(team="One", agent="A")
    schema = schema_of(served(team="Two", agent="Dialogue"))
    call(team["operator"], schema, "c1")

    from conversations.tool_calls.schemas import tool_offers

    assert call_statistics.figures_of([schema], tool_offers.agents_of_other_teams("Two")).calls == 1
    assert call_statistics.figures_of([schema], tool_offers.agents_of_other_teams("One")).calls == 0


def test_an_agent_is_shown_with_its_output_its_tools_and_its_runs(team, browser):
    served(agent="Dialogue")
    teamwork.fail(team["operator"], error="boo")

    clerk, boss = page(browser, "/agents/Hall/Dialogue/"), page(browser, "/agents/Hall/Boss/")

    assert "Tools and handoffs 2 tools, 1 handoff" in words(clerk)
    assert 'href="/tools/Hall/city.report/"' in clerk
    assert "transfer_to_boss no approval needed – handoff to Boss always" in words(clerk)
    assert "Output plain text Type str" in words(clerk)
    assert "Failed 1, most recently: failed" in words(clerk)
    assert '<a href="/calls/?agent=Dialogue">All calls by this agent</a>' in clerk
    assert "Recent runs Status Conversation Event Attempt Reason failed Water" in words(clerk)
    assert "Output wrapped under response Type list[Place] strict" in words(boss)
    assert 'href="/agents/Hall/Dialogue/"' in boss
    assert "None: this agent only sends messages." in boss
    assert 'href="/agents/Hall/Dialogue/"' in page(browser, "/agents/")


def test_a_handoff_has_a_page_as_the_tool_that_a_model_sees(browser):
    served()

    page_text = words(page(browser, "/tools/Hall/transfer_to_boss/"))

    assert "Hands off to Boss" in page_text
    assert "Takes no arguments." in page_text
    assert "unknown" not in page_text


def test_names_of_a_server_that_collide_are_shown_until_they_do_not(browser):
    roster = served()

    roster.note("Clerk", "desk", ["has two tools or handoffs called 'report': one, and another"])
    agent_registry.register([roster])
    text, of_clerk = words(page(browser, "/agents/")), words(page(browser, "/agents/Hall/Clerk/"))
    roster.note("Clerk", "desk", [])
    agent_registry.register([roster])

    assert "'Clerk' has two tools or handoffs called 'report'" in text
    assert "This agent has two tools or handoffs called 'report'" in of_clerk
    assert "has two tools" not in words(page(browser, "/agents/"))


def test_a_tool_that_runs_at_the_models_provider_is_told_as_out_of_reach(browser) -> None:
    searcher = SdkAgent[Any](name="Clerk", tools=[WebSearchTool()])
    agent_registry.register(
        [ServedTeam(Team(name="Hall", agents=[searcher], entry=["Clerk"]), Provider(ModelConfig()))]
    )

    page_text = words(page(browser, "/tools/Hall/web_search/"))

    assert "Runs at the model’s provider" in page_text
    assert "approvals, policies, guardrails and time limits do not apply to its calls" in page_text
    assert "no approval needed" not in page_text


@pytest.mark.parametrize(
    "address",
    [
        "/tools/Hall/none/",
        "/tools/None/report/",
        "/agents/Hall/None/",
        f"/schemas/{'0' * 64}/",
        "/schemas/x%00y/",
        "/tools/~AA/~AA/",
        "/agents/~AA/~AA/",
        "/tools/Hall/~%%%/",
    ],
)
def test_what_nobody_told_of_is_not_found(browser, address):
    served()

    assert "No" in page(browser, address, status=404)


@pytest.mark.parametrize("name", NAMES)
def test_any_name_has_a_page_and_stays_words(browser, name):
    body = {"name": name, "description": name, "params_json_schema": {"properties": {name: {"description": name}}}}
    tool = {"name": name, "schema": "a" * 64, "approval": name, "guardrails": {"input": [name]}, "injected": name}
    ToolSchema.objects.create(hash="a" * 64, name=name[:200], body=json.dumps(body))
    ToolVersion.objects.create(team=name, name=name, hash="a" * 64, first_at=1, last_at=2)
    row = Agent.objects.create(
        team=name, name=name, tools=json.dumps([tool, {"name": 7}, 8]), problems=json.dumps([name])
    )

    first = page(browser, "/agents/")
    pages = [first, *(page(browser, address) for address in addresses(first))]

    assert len(pages) == 3, row
    for html in pages:
        assert "<img" not in html
        assert "\u202e" not in html


def addresses(html: str) -> Iterator[str]:
    """Return the pages of agents and tools that a page leads to."""
    yield from dict.fromkeys(re.findall(r'href="(/(?:tools|agents)/[^"]+/)"', html))


def test_broken_rows_are_drawn_as_far_as_they_go(browser):
    Agent.objects.create(team="T", name="A", tools="{", transfers="7", output="[]", problems="{}", handoffs='{"a":1}')
    ToolSchema.objects.create(hash="b" * 64, name="x", body='{"params_json_schema":[1],"description":7}')
    ToolVersion.objects.create(team="T", name="x", hash="b" * 64, first_at=1, last_at=2)
    ToolVersion.objects.create(team="T", name="x", hash="c" * 64, first_at=2, last_at=2)

    assert "None: this agent only sends messages." in page(browser, "/agents/T/A/")
    assert "not offered by any agent now" in page(browser, f"/tools/T/x/?version={'b' * 64}")
    assert "The schema is not available." in page(browser, "/tools/T/x/")
