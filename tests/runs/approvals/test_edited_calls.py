"""A call whose arguments a person changed, wherever it is shown: the model's and the person's apart, and what ran."""

import re

import pytest
from agents import function_tool
from agents.testing import assistant_message, function_call

from conversations.core.errors import Invalid
from conversations.events import log
from conversations.models import Approval, AuditEntry, Run, ToolCall
from conversations.runs.approvals import decide
from conversations.runs.replay import request_replay
from dashboard.pages.conversation_entries import entries_of
from tests.support.agents_running import ended_runs, event_bodies, send_message, team, working
from tests.support.cast import client_of
from tests.support.live import until
from tests.support.visits import words, words_of

pytestmark = pytest.mark.django_db(transaction=True)

ASKED, RAN = {"street": "Mill", "severity": 4}, {"street": "Mill", "severity": 5}


def served(*steps, filed=None):
    @function_tool(needs_approval=True)
    def file(street: str, severity: int) -> str:
        """File it."""
        (filed if filed is not None else []).append(severity)
        return "filed"

    return team(*steps, tools=[file], effects={"file": "idempotent"})


def edited(people, approval):
    """Have a model ask with some arguments, and a person let it run with others."""
    with working(served([function_call("file", approval, call_id="c1")], [assistant_message("Done.")])):
        send_message()
        ended_runs()
        decide.decide(people["approver"], Approval.objects.get().id, "edit", arguments=RAN)
        until(lambda: Run.objects.filter(status="done"), what="the run to be done")
    return ToolCall.objects.get()


@pytest.fixture
def call(people):
    return edited(people, ASKED)


@pytest.mark.slow
def test_the_page_of_a_call_strikes_the_models_through_and_checks_what_ran(people, call):
    page = words(client_of(people["viewer"]).get(f"/calls/{call.id}/"))

    (row,) = (
        row for row in re.findall(r"<tr>.*?</tr>", page, re.S) if "<code>severity" in row.replace(' dir="auto"', "")
    )
    assert re.search(r"<del>.*?<code>4</code></del>\s*<ins><code>5</code></ins>", row, re.S)
    assert "changed by april" in words_of(row)
    assert "fits" in row
    assert "Ran with" in page
    (other,) = (row for row in re.findall(r"<tr>.*?</tr>", page, re.S) if "street</code>" in row)
    assert "<del>" not in other


@pytest.mark.slow
def test_the_schema_is_held_against_what_ran(people):
    call = edited(people, {"street": "Mill", "severity": "four"})

    page = words(client_of(people["viewer"]).get(f"/calls/{call.id}/"))

    assert "four" in page
    assert "does not fit" not in page


@pytest.mark.slow
def test_the_replay_form_is_filled_with_what_ran(people, call):
    with working(served()):
        page = words(client_of(people["operator"]).get(f"/calls/{call.id}/"))

    assert 'name="arg.severity" value="5"' in page


@pytest.mark.slow
def test_a_replay_repeats_what_ran_and_not_what_was_asked(people, call):
    filed = []
    with working(served(filed=filed)):
        new = request_replay.request_replay(people["operator"], call.id)
        until(
            lambda: Run.objects.filter(id=new.run, status__in=("done", "waiting")), what="the replay to be asked about"
        )
        decide.decide(people["approver"], Approval.objects.get(run=new.run).id, "approve")
        until(lambda: Run.objects.filter(id=new.run, status="done"), what="the replay to be done")

    (request,) = event_bodies("replay.requested")
    assert (request["args"], request["edited"], filed) == (RAN, False, [5])


@pytest.mark.slow
def test_cards_say_what_was_changed_even_when_closed(people, call):
    transcript = "".join(map(str, entries_of(log.newest_page("c"))))
    card = words(client_of(people["viewer"]).get(f"/approvals/{call_approval().id}/"))

    for drawn in (transcript, card):
        (summary,) = re.findall(r"<summary>(?:(?!</summary>).)*file</code>.*?</summary>", drawn, re.S)
        assert '"severity":5' in words_of(summary).replace(" ", "")
        assert "edited" in words_of(summary)
        verdict = drawn[drawn.index('class="verdict"') :]
        assert re.search(r"<code>severity</code> <del>.*?4</del> <ins>5</ins>", verdict, re.S)


def call_approval():
    return Approval.objects.get()


@pytest.mark.slow
def test_the_audit_log_shows_what_a_decision_changed(people, call):
    entry = AuditEntry.objects.get(verb="decide")
    page = words(client_of(people["auditor"]).get(f"/audit/{entry.seq}/"))

    assert entry.before
    assert entry.after
    assert "Arguments changed by entry" in page
    opened = page[page.index("Arguments changed by entry") :]
    assert re.search(r"severity.*?<del>4</del>.*?<ins>5</ins>", opened, re.S)


def test_programs_are_told_what_was_sent_and_what_ran(people, call):
    item = client_of(people["viewer"]).get(f"/api/v1/tool-calls/{call.id}").json()

    assert (item["arguments"], item["ran_with"], item["changed_by"]) == (ASKED, RAN, "user:april")


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/api/v1/approvals", "/api/v1/approvals/{id}"])
def test_programs_that_read_questions_are_told_what_ran_and_who_changed_it(people, call, path):
    body = client_of(people["viewer"]).get(path.format(id=Approval.objects.get().id)).json()
    item = body.get("items", [body])[0]

    assert (item["arguments"], item["ran_with"], item["changed_by"]) == (ASKED, RAN, "user:april")


@pytest.mark.parametrize("decision", ["approve", "reject", ""])
def test_what_nobody_changed_ran_as_it_was_asked(people, decision):
    with working(served([function_call("file", ASKED, call_id="c1")], [assistant_message("Done.")])):
        send_message()
        ended_runs()
        if decision:
            decide.decide(people["approver"], Approval.objects.get().id, decision)
            until(lambda: Run.objects.filter(status="done"), what="the run to be done")

    (item,) = client_of(people["viewer"]).get("/api/v1/approvals").json()["items"]

    assert (item["arguments"], item["ran_with"], item["changed_by"]) == (ASKED, ASKED, None)


def test_an_edit_with_a_name_that_the_tool_would_drop_is_refused(people):
    @function_tool(needs_approval=True, strict_mode=False)
    def file(street: str, copies: int = 1) -> str:
        """File it."""
        return f"filed {copies}"

    with working(team([function_call("file", {"street": "Mill"}, call_id="c1")], tools=[file])):
        send_message()
        ended_runs()
    with pytest.raises(Invalid, match="argument copis: is unknown to the tool"):
        decide.decide(people["approver"], Approval.objects.get().id, "edit", arguments={"street": "Mill", "copis": 5})

    assert Approval.objects.get().status == "pending"
