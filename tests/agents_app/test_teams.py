"""Teams: the one that ships, one's own by the tutorial, and every wrong one refused before anything runs."""

import asyncio
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool, handoff
from pydantic import BaseModel, Field, SecretStr, field_serializer

from agents_app.memory import team_context
from agents_app.memory.team_context import ContextRefused
from agents_app.model_providers.providers import ModelConfig, Provider
from agents_app.teams import checks, loading
from agents_app.teams.definition import NoContext, Team, TeamError
from agents_app.town_hall import TEAM

TUTORIAL = Path(__file__).resolve().parents[2] / "docs/tutorial.md"


@pytest.fixture
def made() -> Iterator[Callable[..., str]]:
    """Put modules on the path of imports for a test; answers their name."""
    names = []

    def _make(name: str, **content: Any) -> str:
        module = ModuleType(name)
        module.__dict__.update(content)
        sys.modules[name] = module
        names.append(name)
        return name

    yield _make
    for name in names:
        del sys.modules[name]


def team(**changed: Any) -> Team:
    """Make a small team, right but for what is changed."""
    return Team(**{"name": "T", "agents": [Agent(name="A")], "entry": ["A"], "context": NoContext} | changed)


def refusal(wrong: Team) -> str:
    with pytest.raises(TeamError) as refused:
        checks.check(wrong)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_the_town_hall_is_served_unless_something_else_is_said() -> None:
    assert loading.load() == [TEAM]


def test_teams_are_found_by_setting(made: Callable[..., str]) -> None:
    other = team(name="Other")

    teams = loading.load(f"agents_app.town_hall, {made('other_team', TEAM=other)},")

    assert teams == [TEAM, other]


def test_teams_are_found_by_entry_point(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "fire_team.py").write_text(
        "from agents import Agent\nfrom agents_app.teams.definition import Team\n"
        "TEAM = Team(name='Fire', agents=[Agent(name='Chief')], entry=['Chief'])\n"
    )
    info = tmp_path / "fire_team-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fire-team\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[switchboard.teams]\nfire = fire_team\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    teams = loading.load("")

    assert [t.name for t in teams] == ["Fire"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("no_such_package", None, "team 'no_such_package': there is no such package (SWITCHBOARD_TEAMS)"),
        ("agents_app.no_such", None, "team 'agents_app.no_such': there is no such package (SWITCHBOARD_TEAMS)"),
        ("empty_team", {}, "team 'empty_team': it does not define TEAM = Team(...)"),
        ("odd_team", {"TEAM": "x"}, "team 'odd_team': it does not define TEAM = Team(...)"),
    ],
)
def test_a_package_without_a_team_is_refused(made: Any, name: str, content: Any, reason: str) -> None:
    if content is not None:
        made(name, **content)

    with pytest.raises(TeamError) as refused:
        loading.load(name)

    assert str(refused.value) == reason


@pytest.mark.parametrize(
    ("source", "reason"),
    [("import no_such_thing", "it needs 'no_such_thing', which is not installed"), ("1 / 0", "ZeroDivisionError")],
)
def test_a_package_that_fails_is_refused_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, reason: str
) -> None:
    name = f"failing_{re.sub('[^a-z]', '_', source)}"
    (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(TeamError, match=reason):
        loading.load(name)


def test_an_entry_agent_belongs_to_one_team(made: Callable[..., str]) -> None:
    names = f"{made('one_team', TEAM=team(name='One'))},{made('two_team', TEAM=team(name='Two'))}"

    with pytest.raises(TeamError) as refused:
        loading.load(names)

    assert str(refused.value) == "team 'Two': its entry agent 'A' already belongs to 'One'"


def test_other_agents_may_be_called_the_same_in_two_teams(made: Callable[..., str]) -> None:
    first = team(name="One", agents=[Agent(name="A"), Agent(name="Same")])
    second = team(name="Two", agents=[Agent(name="B"), Agent(name="Same")], entry=["B"])

    names = f"{made('one_team', TEAM=first)},{made('two_team', TEAM=second)}"

    assert len(loading.load(names)) == 2


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "must not be blank"),
        ("  ", "must not be blank"),
        ("a:b", "must not contain a colon"),
        ("a\x00b", "control characters"),
        ("a\nb", "control characters"),
        (" a", "must not begin or end with a space"),
        ("a" * 201, "must be at most 200 characters; got 201"),
    ],
)
def test_wrong_names_are_refused(name: str, reason: str) -> None:
    assert reason in refusal(team(agents=[Agent(name=name)], entry=[name]))


@function_tool(name_override="look")
def look() -> str:
    return ""


@function_tool(name_override="look")
def look_again() -> str:
    return ""


@function_tool(name_override="transfer_to_b")
def impostor() -> str:
    return ""


def two(**of_first: Any) -> list[Agent[Any]]:
    second = Agent[Any](name="B")
    first = Agent[Any](name="A", handoffs=[second], **of_first)
    return [first, second]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"agents": []}, "it has no agents"),
        ({"entry": []}, "it has no entry agent"),
        ({"entry": ["B"]}, "its entry agent 'B' is not among its agents"),
        ({"agents": [Agent(name="A"), Agent(name="A")]}, "two of its agents are called 'A'"),
        ({"agents": [Agent(name="A", tools=[look, look_again])]}, "'A' has two tools or handoffs called 'look'"),
        ({"agents": two(tools=[impostor])}, "'A' has two tools or handoffs called 'transfer_to_b'"),
        ({"agents": [Agent(name="A", handoffs=[Agent(name="C")])]}, "'A' hands off to 'C', which is not in the team"),
        ({"agents": [Agent(name="A", handoffs=[handoff(Agent(name="C"))])]}, "hands off to 'C'"),
        ({"effects": {"x": "read"}}, "it sets the effect of 'x', but none of its agents has this tool"),
        (
            {"agents": [Agent(name="A", tools=[look])], "effects": {"look": "mild"}},
            "must be one of read, idempotent, unsafe, destructive; got 'mild'",
        ),
        ({"max_turns": 0}, "max_turns must be 1 or more; got 0"),
        ({"may_post_to": "duty-*"}, "may_post_to must be a list"),
        ({"may_post_to": ["duty-*", " "]}, "may_post_to must hold conversation ids or patterns with *; got ' '"),
    ],
)
def test_wrong_teams_are_refused_with_one_reason(wrong: dict[str, Any], reason: str) -> None:
    assert reason in refusal(team(**wrong))


def test_a_cycle_of_handoffs_is_a_team() -> None:
    agents = two()
    agents[1].handoffs = [handoff(agents[0])]

    checks.check(team(agents=agents))


class Required(BaseModel):
    name: str


class Loose(BaseModel):
    thing: Any = (1, 2)


class Unwritable(BaseModel):
    thing: Any = Field(default_factory=object)


class Dropped(BaseModel):
    hidden: int = Field(default=1, exclude=True)


class Private(BaseModel):
    _hidden: int = 1


class Rounded(BaseModel):
    ratio: float = 0.123

    @field_serializer("ratio")
    def _round(self, value: float) -> float:
        return round(value, 1)


class WithKey(BaseModel):
    api_key: str = ""


class WithSecret(BaseModel):
    hidden: SecretStr = SecretStr("")


@pytest.mark.parametrize(
    ("context", "reason"),
    [
        (Required, "field 'name' has no default"),
        (Loose, "cannot be saved as JSON"),
        (Unwritable, "cannot be saved as JSON"),
        (Dropped, "field 'hidden' is excluded from JSON"),
        (Private, "private attribute '_hidden' would be lost"),
        (Rounded, "cannot be saved as JSON"),
        (WithKey, "field 'api_key' holds a secret"),
        (WithSecret, "field 'hidden' holds a secret"),
        (dict, "must be a pydantic model"),
    ],
)
def test_a_context_that_does_not_survive_is_refused(context: Any, reason: str) -> None:
    assert reason in refusal(team(context=context))


class Notes(BaseModel):
    conversation_id: str = ""
    words: list[str] = []


def test_a_context_is_kept_between_messages() -> None:
    context: Any = team_context.read(Notes, None, "c1")
    context.words.append("hello")

    again = team_context.read(Notes, team_context.write(context), "c1")

    assert again == Notes(conversation_id="c1", words=["hello"])


@pytest.mark.parametrize("secret", ["sk-0123456789abcdef", "Bearer abcdefgh12345678", "password=hunter22"])
def test_a_context_that_holds_a_secret_is_not_kept(secret: str) -> None:
    with pytest.raises(ContextRefused) as refused:
        team_context.write(Notes(words=["fine", f"it is {secret}"]))

    assert str(refused.value) == "Notes.words.1 looks like a key or token, which must not be saved"


def test_a_context_of_another_time_is_refused() -> None:
    with pytest.raises(ContextRefused, match="Notes does not match the saved context: words"):
        team_context.read(Notes, '{"words": 3}', "c1")


def test_the_example_of_the_tutorial_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    example = re.search(r"```python\n(# library_team\.py.*?)```", TUTORIAL.read_text(), re.DOTALL)
    assert example is not None
    assert len(example[1].splitlines()) <= 30
    (tmp_path / "library_team.py").write_text(example[1])
    monkeypatch.syspath_prepend(str(tmp_path))

    team = loading.load("library_team")[0]
    context: Any = team_context.fresh(team.context, "c1")
    result = asyncio.run(
        Runner.run(
            team.agent("Librarian"),
            'Please reserve "Moby Dick"',
            context=context,
            run_config=RunConfig(model_provider=Provider(ModelConfig(demo_pace_s=0))),
        )
    )

    assert context.reserved == ["Moby Dick"]
    assert "Moby Dick" in result.final_output
    assert team.effect("reserve") == "idempotent"


@pytest.mark.parametrize(
    ("allowed", "conversation", "may"),
    [
        ([], "duty", False),
        (["duty"], "duty", True),
        (["duty"], "duty-2", False),
        (["duty-*"], "duty-2", True),
        (["duty-*"], "on-duty-2", False),
        (["*-desk", "a.c"], "abc", False),
        (["*-desk"], "first\n-desk", True),
        (["[a-z]*"], "abc", False),
        (["*"], "whatever", True),
    ],
)
def test_a_team_says_where_else_its_agents_may_post(allowed: list[str], conversation: str, may: bool) -> None:
    assert team(may_post_to=allowed).may_post(conversation) is may
