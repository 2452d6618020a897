"""Runs, model turns and questions as a page draws them: loud where a person is asked, hostile words inert."""

import re

import pytest

from conversations.conversation import conversation_list
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import Agent, Conversation, Run, ToolSchema
from conversations.runs import leases
from conversations.runs.approvals import decide, pending_counts
from dashboard.pages.conversation_entries import entries_of
from tests.support import held_run, teamwork
from tests.support.cast import client_of
from tests.support.visits import words_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("town")]
HOSTILE = "<img src=x onerror=alert(1)>\u202eevil\" onclick='x'"


def drawn(key="flood"):
    return [str(entry) for entry in entries_of(log.newest_page(key))]


def block(part, key="flood"):
    (entry,) = [row for row in drawn(key) if part in row]
    return entry


def seqs(rows):
    return [int(re.search(r'data-seq="(\d+)"', row)[1]) for row in rows]


def test_a_question_is_one_block_that_asks_and_can_be_answered(team):
    approval = teamwork.ask(team["operator"])

    block_html = block("file_incident")

    assert 'data-state="waiting"' in block_html
    assert 'data-level="chat"' in block_html
    assert f'<decision-form data-key="{approval.id}"' in block_html
    assert "Dialogue wants to call file_incident" in words_of(block_html)
    assert "It goes to the city." in words_of(block_html)
    assert "Elm" in words_of(block_html)


def test_a_decision_and_what_follows_stay_in_that_block(team):
    approval = teamwork.ask(team["operator"])
    decided = decide.decide(team["approver"], approval.id, "approve", message="go ahead")
    between = block("file_incident")
    teamwork.go_on(decided)

    rows, done = drawn(), block("file_incident")

    assert "approved by april" in words_of(between)
    assert "go ahead" in words_of(done)
    assert "Filed as 48-2219" in words_of(done)
    assert 'data-state="waiting"' not in done
    assert "<button" not in re.sub(r"<button[^>]*data-copy.*?</button>", "", done)
    assert not {decided.decided_seq, decided.decided_seq + 3} & set(seqs(rows))
    assert f'id="e{decided.decided_seq}"' in done


def test_a_rejection_says_who_and_why(team):
    approval = teamwork.ask(team["operator"])
    decide.decide(team["approver"], approval.id, "reject", message="no such street", reason="prank")

    rejected = words_of(block("file_incident"))

    assert "rejected by april" in rejected
    assert "no such street" in rejected
    assert "Reason: prank" in rejected


def test_a_bad_end_says_why_and_offers_to_run_again(team):
    run = teamwork.fail(team["operator"])

    failed = block("run.failed")

    assert "Dialogue failed ValueError: no such street" in words_of(failed)
    assert f'form="again" name="run" value="{run}"' in failed
    assert 'data-level="chat"' in failed


def test_an_interruption_leaves_its_calls_in_doubt_and_says_so(team):
    teamwork.say(team["operator"])
    claimed = teamwork.claim()
    step = {"event": "tool_step", "name": "file", "tool_call": "call-1", "status": "start", "args": {}}
    log.append([claimed.event(step)])
    Run.objects.update(lease_until=1)

    leases.interrupt_expired()

    doubtful, ended = block('data-group="call:call-1"'), words_of(block("run.interrupted"))
    assert 'data-status="unknown"' in doubtful
    assert "may or may not have taken effect" in words_of(doubtful)
    assert "1 tool call may or may not have had an effect" in ended
    assert "Run again" in ended


def test_a_model_turn_tells_the_model_its_tools_and_what_it_spent(team):
    teamwork.say(team["operator"])
    usage = {"input_tokens": 1200, "output_tokens": 34}
    tools, called = [teamwork.SCHEMA, "0" * 64], [{"name": "gone", "schema": None}]
    called = [{"name": "file_incident", "schema": teamwork.SCHEMA}, *called]
    turn = {"event": "model.turn", "turn": 1, "model": "gpt-x", "demo": True, "tools": tools, "usage": usage}
    log.append([teamwork.claim().event(turn | {"called": called})])

    turn_html = block("model.turn")

    assert "asked the model gpt-x demo model" in words_of(turn_html)
    assert "1,200 tokens in, 34 out" in turn_html
    assert 'data-level="all"' in turn_html
    assert "called call 1 file_incident call 2 gone not offered" in words_of(turn_html)
    assert "2 tools offered file_incident call 1 schema 00000000" in words_of(turn_html)
    assert f'href="/schemas/{teamwork.SCHEMA}/?agent=Dialogue"' in turn_html


def test_what_a_claim_says_it_was_offered_links_nowhere(team):
    teamwork.say(team["operator"])
    turn = {"event": "model.turn", "run_id": "r", "agent": "Dialogue", "model": "m", "tools": [teamwork.SCHEMA]}
    teamwork.claim_from_outside("flood", turn)

    assert "/schemas/" not in block("model.turn")


def test_a_name_that_is_learned_later_is_drawn_then(team):
    teamwork.say(team["operator"])
    late = "1a" * 32
    log.append([teamwork.claim().event({"event": "model.turn", "turn": 1, "model": "m", "tools": [late]})])
    before = words_of(block("model.turn"))
    ToolSchema.objects.create(hash=late, name="late_tool", body="{}")

    assert "schema 1a1a1a1a" in before
    assert "late_tool" in words_of(block("model.turn"))


def test_a_stage_of_a_team_is_a_thin_line(team):
    teamwork.say(team["operator"])
    log.append([teamwork.claim().event({"event": "town_hall.stage", "stage": "incident_formatting"})])
    teamwork.claim_from_outside("flood", {"event": "other.stage", "stage": "<img>"})

    ours, claimed = drawn()[-2:]

    assert "Dialogue reached stage incident formatting" in words_of(ours)
    assert "unknown event type" in claimed


def test_what_a_nested_run_does_is_marked_as_such(team):
    teamwork.say(team["operator"])
    payload = {"event": "output", "text": "Sorted.", "turn": 1, "agent": "Formatter", "parent_call": "call-1"}
    log.append([teamwork.claim().event(payload)])

    nested = block("Sorted.")

    assert 'data-within="call:call-1"' in nested
    assert 'data-level="steps"' in nested
    assert "Formatter nested" in words_of(nested)


INNER = {"agent": "Formatter", "turn": 2, "parent_call": "outer"}


def nest(team):
    """A call, a run inside it with a call of its own, something else meanwhile, and the ends of both calls."""
    teamwork.say(team["operator"])
    claimed = teamwork.claim()
    step = {"event": "tool_step", "name": "ask_desk", "tool_call": "outer", "tool_call_id": "s", "args": {}}
    inner = {**step, **INNER, "name": "look", "tool_call": "inner"}
    payloads = [
        {**step, "status": "start"},
        {"event": "town_hall.stage", "stage": "triage", "agent": "Dialogue"},
        {"event": "token", "text": "Sor", "index": 0, **INNER},
        {**inner, "status": "start"},
        {"event": "output", "text": "Sorted.", **INNER},
        {"event": "log", "text": "Deeper.", **INNER, "parent_call": "inner"},
        {**inner, "status": "success", "output": "seen"},
        {**step, "status": "success", "output": "done"},
    ]
    for payload in payloads:
        yield log.append([claimed.event(payload)])


def test_a_run_inside_a_call_is_drawn_in_the_block_of_that_call(team):
    list(nest(team))

    blocks = [row for row in drawn() if 'data-group="call:' in row]
    (outer,) = blocks
    inside = outer[outer.index("data-inner") :]
    assert seqs([outer]) == [5]
    assert [part in inside for part in ("Sorted.", "look", "Deeper.")] == [True] * 3
    assert "triage" not in outer
    assert outer.rstrip().endswith("</article>")
    assert outer.count("<article") == outer.count("</article>") == 4
    assert outer.count("<div") == outer.count("</div>")


def test_what_was_said_inside_a_call_stands_by_itself_where_the_call_is_on_another_page(team):
    list(nest(team))

    rows = [str(entry) for entry in entries_of(log.page_after("flood", 5))]

    assert any("Sorted." in row and 'data-within="call:outer"' in row for row in rows)


def test_what_is_said_inside_a_call_is_not_the_last_word_of_its_conversation(team):
    list(nest(team))

    conversation = Conversation.objects.get()
    assert (conversation.last_line, conversation.messages) == ("Water on Elm Street", 2)


def test_claims_from_outside_have_no_buttons(team):
    teamwork.say(team["operator"])
    for payload in (
        {"event": "approval.requested", "run_id": "r", "approval_id": "a", "tool_call": "t", **teamwork.ASKED},
        {"event": "run.failed", "run_id": "r", "agent": "Dialogue", "reason": "error", "error": "boo"},
        {"event": "approval.decided", "run_id": "r", "approval_id": "a", "tool_call": "t", "decision": "approve"},
    ):
        teamwork.claim_from_outside("flood", payload)

    claims = drawn()[-3:]

    assert all(
        "from outside" in words_of(row) and "<button" not in re.sub(r'<details class="disc.*', "", row)
        for row in claims
    )


@pytest.mark.parametrize("field", ["name", "why", "agent"])
def test_hostile_words_stay_words_in_a_question(team, field):
    teamwork.ask(team["operator"], **{field: HOSTILE, "args": {HOSTILE: HOSTILE}})

    form_html = block("<decision-form")

    assert "<img" not in form_html
    assert " onclick='" not in re.sub(r"&[^;]+;", "", form_html) or "&#39;" in form_html
    assert "\u202e" not in form_html


def test_hostile_reasons_and_errors_stay_words(team):
    teamwork.fail(team["operator"], error=HOSTILE)
    approval = teamwork.ask(team["operator"], key="other")
    decide.decide(team["approver"], approval.id, "reject", message=HOSTILE, reason=HOSTILE)

    for row in (*drawn(), *drawn("other")):
        assert "<img" not in row
        assert "\u202e" not in row


def test_an_odd_approval_id_gets_no_buttons(team):
    teamwork.ask(team["operator"], approval_id='x" formaction="//evil')

    assert "<button class" not in re.sub(r'<button class="bare.*?</button>', "", block("file_incident"))


# the list


def test_a_row_says_what_becomes_of_the_runs(team):
    operator = team["operator"]
    teamwork.ask(operator, key="waits")
    teamwork.fail(operator, key="failed")
    teamwork.say(operator, key="runs", client_id="1")
    teamwork.claim("runs")
    teamwork.say(operator, key="queued", client_id="1")

    rows = {row.key: row.run for row in conversation_list.newest_conversations().rows}

    assert rows == {"waits": "waiting", "failed": "failed", "runs": "running", "queued": "queued"}
    assert "Waiting for approval" in next(row["html"] for row in conversation_list.rows(["waits"]))


def test_a_failure_is_forgotten_once_the_next_run_is_done(team):
    teamwork.fail(team["operator"])
    teamwork.say(team["operator"], client_id="2", content="again")
    held_run.finish(teamwork.claim(), {"event": "run.done"})

    assert conversation_list.newest_conversations().rows[0].run == ""


def test_the_navigation_counts_what_waits(team):
    browser = client_of(team["approver"])
    assert 'data-waiting hidden title="Approval requests' in browser.get("/").content.decode()

    teamwork.ask(team["operator"], key="one")
    teamwork.ask(team["operator"], key="two")

    assert pending_counts.pending_counts()["waiting"] == 2
    assert "waiting for approval: </span><span>2</span>" in browser.get("/agents/").content.decode()


# the forms


@pytest.mark.parametrize(("role", "may"), [("operator", True), ("admin", True), ("viewer", False), ("approver", False)])
def test_only_who_may_send_sees_where_to_write(team, role, may):
    teamwork.say(team["operator"])
    browser = client_of(team[role])

    page, listed = browser.get("/conversations/flood/").content.decode(), browser.get("/").content.decode()

    assert ("<message-composer" in page, "New conversation" in listed) == (may, may)
    assert ('placeholder="Dialogue (handling)"' in page) is may


def test_where_to_begin_waits_for_the_first_agent_and_then_comes_by_itself(team):
    Agent.objects.all().delete()
    browser = client_of(team["operator"])
    part = lambda: browser.get("/?part=beginning").content.decode().strip()  # noqa: E731

    listed, before = browser.get("/").content.decode(), part()
    Agent.objects.create(team="Town Hall", name="Dialogue", is_entry=True)

    assert '<deferred-part data-src="/?part=beginning">' in listed
    assert "No agent is available yet" in listed
    assert before == ""
    assert part().startswith("<message-composer")
    assert client_of(team["viewer"]).get("/?part=beginning").content.decode().strip() == ""


def test_a_conversation_that_nobody_handles_says_so(team):
    teamwork.say(team["operator"])
    Conversation.objects.update(handler="")

    assert "No agent will reply" in client_of(team["operator"]).get("/conversations/flood/").content.decode()


def test_a_call_of_a_clients_tool_waits_for_the_client_and_says_so(team):
    teamwork.say(team["operator"])
    claimed = teamwork.claim()
    step = {"event": "tool_step", "name": "weather", "tool_call": "call-1", "tool_call_id": "c1", "origin": "external"}
    held_run.finish(claimed, {"event": "run.done"}, {**step, "args": {"city": "Oslo"}})

    waiting = block("weather")
    log.append(
        [log.from_internal("flood", {**step, "run_id": claimed.run, "status": "success", "output": "rain"}, SYSTEM)]
    )
    closed = block("weather")

    assert "waiting for the client" in words_of(waiting)
    assert "Runs on the client" in words_of(waiting)
    assert "waiting for the client" not in words_of(closed)
    assert "rain" in words_of(closed)
