"""Effect x policy x grant x reason x typed name x other arguments x second person x is_enabled x guardrail x schema:
never a call without what it takes, judged by the file that the tools append to."""

import itertools
import random
from collections import Counter
from typing import NamedTuple

import pytest
from agents import ToolGuardrailFunctionOutput, ToolInputGuardrail, function_tool
from agents.testing import assistant_message, function_call

from conversations.access.accounts.edit_grants import give_grant, take_grant
from conversations.core.errors import SwitchboardError
from conversations.models import Approval, Run, ToolCall
from conversations.runs.approvals import decide as approvals
from conversations.runs.policy.edit_policy import set_policy
from conversations.runs.policy.evaluate import PolicyRule
from conversations.runs.replay import request_replay
from tests.support.agents_running import ended_runs, send_message, team, working
from tests.support.cast import cast
from tests.support.live import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

EFFECTS = ("read", "idempotent", "unsafe", "destructive")
RULES = ("allow", "ask", "deny")
DECIDERS = ("nobody", "the asker", "another", "another rejects")
TODAY = ("same", "changed", "removed")
CELLS = 80  # of a run; all of them with `make faults`


class Tool(NamedTuple):
    """A tool by what stands in its way."""

    effect: str
    is_enabled: bool
    is_guarded: bool
    today: str

    @property
    def name(self) -> str:
        return (
            f"{self.effect}_{'on' if self.is_enabled else 'off'}_{'held' if self.is_guarded else 'free'}_{self.today}"
        )


class Cell(NamedTuple):
    """A try: of which tool, under which rule, with what."""

    tool: Tool
    rule: str
    has_grant: bool
    reason: str
    is_typed: bool
    is_edited: bool
    decider: str


TOOLS = [Tool(*facts) for facts in itertools.product(EFFECTS, (True, False), (True, False), TODAY)]
EVERY = [
    Cell(*case)
    for case in itertools.product(TOOLS, RULES, (True, False), ("why", " "), (True, False), (True, False), DECIDERS)
    if case[1] == "ask" or case[-1] == "nobody"  # nobody decides where nobody is asked
]


def some() -> list[Cell]:
    """Draw cells so that each value of each dimension comes with those that let a call through, too."""
    dice = random.Random(7)
    likely = [c for c in EVERY if c.tool.today == "same" and c.tool.is_enabled and not c.tool.is_guarded]
    return dice.sample(EVERY, CELLS // 2) + dice.sample(likely, CELLS // 2)


def begins(cell: Cell) -> bool:
    """Return whether the click is heard: written anew from the issue, not from the code."""
    is_one_click = cell.tool.effect == "read" or (cell.tool.effect == "idempotent" and not cell.is_edited)
    is_sure = cell.has_grant and cell.reason.strip() != "" and cell.is_typed
    return cell.tool.today == "same" and cell.rule != "deny" and (is_one_click or is_sure)


def runs(cell: Cell) -> bool:
    """Return whether the tool runs."""
    may_decide = cell.decider == "another" or (cell.decider == "the asker" and cell.tool.effect != "destructive")
    is_let = begins(cell) and cell.tool.is_enabled and not cell.tool.is_guarded
    return is_let and (cell.rule == "allow" or may_decide)


def made(tool: Tool, ledger, *, is_today: bool):
    """Make a tool; today's has what stands in its way."""

    def act(street: str) -> str:
        with ledger.open("a") as file:
            file.write(f"{tool.name}\n")
        return street

    def act_otherwise(street: str, house: int) -> str:
        raise NotImplementedError

    async def enabled(ctx, agent):
        return tool.is_enabled

    def held(data):
        return ToolGuardrailFunctionOutput.reject_content("held")

    settings = {"is_enabled": enabled} if is_today else {}
    settings |= {"tool_input_guardrails": [ToolInputGuardrail(held)]} if is_today and tool.is_guarded else {}
    function = act_otherwise if is_today and tool.today == "changed" else act
    return function_tool(function, name_override=tool.name, description_override="Act.", **settings)


def recorded(tried: set[Tool], ledger) -> dict[str, ToolCall]:
    """Have each of these tools called once."""
    calls = [function_call(tool.name, {"street": "Elm"}, call_id=f"c-{tool.name}") for tool in tried]
    tools = [made(tool, ledger, is_today=False) for tool in tried]
    with working(team(calls, [assistant_message("Done.")], tools=tools, effects={t.name: t.effect for t in tried})):
        send_message()
        ended_runs(1, within=60)
    ledger.write_text("")
    return {call.name: call for call in ToolCall.objects.all()}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["some", pytest.param("every", marks=[pytest.mark.faults, pytest.mark.timeout(3600)])])
def test_no_call_is_made_without_what_it_takes(tmp_path, how):
    people, ledger = cast(), tmp_path / "ran"
    ledger.touch()
    cells = some() if how == "some" else list(EVERY)
    calls = recorded({cell.tool for cell in cells}, ledger)
    here = [tool for tool in TOOLS if tool.today != "removed" and tool.name in calls]
    tools = [made(tool, ledger, is_today=True) for tool in here]
    people["operator"].roles.create(name="approver")

    with working(team(tools=tools, effects={tool.name: tool.effect for tool in here}), per_team=8):
        cells.sort(key=lambda cell: (cell.rule, cell.has_grant))
        for (rule, has_grant), group in itertools.groupby(cells, key=lambda cell: (cell.rule, cell.has_grant)):
            set_policy(people["admin"], PolicyRule("", "", rule))
            if has_grant:
                give_grant(people["admin"], "otto", "replay", "*")
            begun = {new: cell for cell in group if (new := tried(people, calls, cell)) is not None}
            settle()
            decide(people, begun)
            settle()
            if has_grant:
                take_grant(people["admin"], "otto", "replay", "*")

    assert Counter(ledger.read_text().split()) == Counter(cell.tool.name for cell in cells if runs(cell))
    assert any(map(runs, cells))


def tried(people, calls, cell: Cell) -> str | None:
    """Click; return the new call's id. Refused exactly where it should be."""
    name = cell.tool.name
    arguments = {"street": "Oak"} if cell.is_edited else None
    try:
        replay = request_replay.request_replay(
            people["operator"], calls[name].id, arguments=arguments, reason=cell.reason,
            tool=name if cell.is_typed else name[:-1],
        )  # fmt: skip
    except SwitchboardError:
        assert not begins(cell), cell
        return None
    assert begins(cell), cell
    return replay.call


def decide(people, begun) -> None:
    """Have whoever it is decide what is asked."""
    for approval in Approval.objects.filter(status="pending", tool_call__in=list(begun)):
        cell = begun[approval.tool_call]
        assert cell.tool.is_enabled, cell
        assert not cell.tool.is_guarded, cell
        who = people["operator" if cell.decider == "the asker" else "approver"]
        if cell.decider == "nobody":
            continue
        try:
            approvals.decide(who, approval.id, "reject" if cell.decider == "another rejects" else "approve")
        except SwitchboardError:
            assert (cell.decider, cell.tool.effect) == ("the asker", "destructive")


def settle() -> None:
    """Wait until nothing is under way."""
    under_way = Run.objects.filter(kind="replay", status__in=("queued", "running"))
    until(lambda: not under_way.exists(), within=300, what="the replays to end")
