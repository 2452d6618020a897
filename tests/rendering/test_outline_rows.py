"""Events → rows of the outline: who works and what people did, in words. No database is used."""

from typing import Any

from conversations.events.log.records import Stored
from conversations.rendering import outline_rows, transcript_text
from tests.rendering.test_fragments_drawing import stored

ASKED = {
    "approval_id": "a1",
    "tool_call": "t1",
    "name": "file_incident",
    "agent": "Coordinator",
    "args_raw": '{"severity": 4}',
}


def ours(seq: int, kind: str, principal: str = "agent:Dialogue", **body: Any) -> Stored:
    """Make an event of a run of ours."""
    return stored(seq, kind, **body)._replace(run="r1", principal=principal)


def decided(decision: str, **body: Any) -> list[Stored]:
    return [
        ours(1, "approval.requested", **ASKED),
        ours(
            2,
            "approval.decided",
            "user:maria",
            approval_id="a1",
            tool_call="t1",
            by="user:maria",
            decision=decision,
            **body,
        ),
    ]


def text(events: list[Stored]) -> str:
    return "".join(transcript_text.pieces("", "c1", len(events), events, "text"))


def test_a_run_that_resumes_continues_with_the_agent_that_paused() -> None:
    rows = outline_rows.rows_of(
        [
            ours(1, "run.started", agent="Dialogue", attempt=1),
            ours(2, "agent.handoff", agent="Dialogue", from_agent="Dialogue", to_agent="Coordinator"),
            ours(3, "run.started", agent="Dialogue", attempt=2),
            ours(4, "agent.handoff", agent="Coordinator", from_agent="Coordinator", to_agent="Dialogue"),
        ]
    )

    assert [(row.seq, row.mark.title) for row in rows] == [(1, "Dialogue"), (2, "Coordinator"), (4, "Dialogue")]


def test_agents_of_runs_elsewhere_are_told_apart() -> None:
    events = [stored(n, "run.started", agent=agent, run_id=agent) for n, agent in enumerate(("Coder", "Tester"), 1)]

    assert [row.mark.title for row in outline_rows.rows_of(events)] == ["Coder", "Tester"]


def test_each_decision_names_the_tool_of_its_own_request() -> None:
    requests = [
        stored(n, "approval.requested", approval_id=tool, name=tool, agent="Coder")
        for n, tool in enumerate(("pay", "delete_all"), 1)
    ]
    rejected = ours(3, "approval.decided", "user:maria", approval_id="pay", decision="reject")

    assert "maria rejected pay" in text([*requests, rejected])


def test_a_response_shows_its_message_and_its_output() -> None:
    assert "try later · closed" in text(decided("respond", message="try later", output="closed"))


def test_a_decision_and_a_reason_are_in_plain_words() -> None:
    events = [*decided("edit")[1:], *decided("reject", message="not now")[1:]]
    events.append(ours(3, "conversation.handed_back", "user:maria", reason="done"))

    rows = outline_rows.rows_of(events)

    assert [row.words for row in rows] == ["approved with edits", "rejected: not now", "handed back: done"]


def test_a_budget_is_no_tool() -> None:
    budget = ours(1, "approval.requested", **ASKED | {"name": "continue_over_budget", "origin": "budget"})

    assert [row.words for row in outline_rows.rows_of([budget])] == ["requested more budget"]


def test_the_text_has_the_arguments_and_what_was_decided_about_which_tool() -> None:
    requested, approved = text(decided("approve")).rsplit("[2]", 1)

    assert 'Coordinator requested approval for file_incident\n    {"severity": 4}' in requested
    assert approved.rstrip().endswith("maria approved file_incident")
    assert 'maria approved with edits: file_incident\n    {"severity": 5}' in text(
        decided("edit", args_raw='{"severity": 5}')
    )
    assert "maria rejected file_incident\n    not now" in text(decided("reject", message="not now"))


def test_an_event_that_cannot_be_read_stops_no_other() -> None:
    broken = [ours(1, "event.annotated"), ours(2, "message"), ours(3, "user_message")]
    events = [*(event._replace(body="[") for event in broken), ours(4, "run.failed", error="no model")]

    assert outline_rows.rows_of(events)[-1].seq == 4
