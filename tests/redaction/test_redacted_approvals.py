"""An approval whose arguments a person edited, after its events are redacted: all that shows it still answers."""

import pytest
from agents import function_tool
from agents.testing import assistant_message, function_call

from conversations.conversation.conversation_files import FORMATS
from conversations.conversation.fork import fork
from conversations.core.principals import SYSTEM
from conversations.models import Approval, Event, Run, ToolCall
from conversations.redaction import scope
from conversations.redaction.scope import RedactionScope
from conversations.runs.approvals import decide
from tests.conversation.test_fork_memory import remembered
from tests.support.agents_running import ended_runs, send_message, team, working
from tests.support.cast import client_of
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)

SCOPES = {
    "an event": lambda call: RedactionScope(call.conversation.key, _decisions(call)),
    "words": lambda call: RedactionScope(words=("Oak Road",)),
    "the call": lambda call: RedactionScope(call=call.pk),
    "the arguments": lambda call: RedactionScope(call=call.pk, field="args"),
    "an argument": lambda call: RedactionScope(call=call.pk, field="args.street"),
    "a number": lambda call: RedactionScope(call=call.pk, field="args.house"),
}


def _decisions(call):
    return list(
        Event.objects.filter(conversation=call.conversation, kind="approval.decided").values_list("seq", flat=True)
    )


@pytest.fixture
def call(people):
    @function_tool(needs_approval=True)
    def file(street: str, house: int) -> str:
        """File it."""
        return "filed"

    steps = [function_call("file", {"street": "Mill", "house": 4111}, call_id="c1")], [assistant_message("Done.")]
    with working(team(*steps, tools=[file], effects={"file": "idempotent"})):
        send_message()
        ended_runs()
        edits = {"street": "Oak Road", "house": 70111}
        decide.decide(people["approver"], Approval.objects.get().id, "edit", arguments=edits)
        until(lambda: Run.objects.filter(status="done"), what="the run to be done")
    return ToolCall.objects.select_related("conversation").get()


@pytest.mark.slow
@pytest.mark.parametrize("what", SCOPES)
def test_everything_that_shows_an_edited_approval_answers_after_its_redaction(people, call, what):
    scope.carry_out(SYSTEM, SCOPES[what](call), "asked for")

    client, key, id_ = client_of(people["admin"]), call.conversation.key, Approval.objects.get().id
    paths = [f"/api/v1/approvals?status={status}" for status in ("", "pending", "decided", "expired", "cancelled")]
    paths += [f"/api/v1/approvals/{id_}", f"/approvals/{id_}/", "/approvals/?state=all", "/audit/", "/calls/"]
    paths += [f"/api/v1/tool-calls/{call.id}", f"/calls/{call.id}/", "/api/v1/tool-calls", "/api/v1/audit"]
    paths += [f"/conversations/{key}/", f"/conversations/{key}/print/", f"/conversations/{key}/fork/?upto=4"]
    paths += [f"/conversations/{key}/?view={view}" for view in ("lanes", "timeline", "graph")]
    paths += [f"/api/v1/conversations/{key}/export?format={form}" for form in FORMATS]
    assert {path: code for path in paths if (code := client.get(path).status_code) != 200} == {}


@pytest.mark.parametrize(
    ("what", "ran_with"),
    [("words", None), ("the call", None), ("an argument", {"street": "[redacted]", "house": 70111})],
)
def test_the_api_says_null_for_edited_arguments_that_are_redacted(people, call, what, ran_with):
    scope.carry_out(SYSTEM, SCOPES[what](call), "asked for")

    (item,) = client_of(people["viewer"]).get("/api/v1/approvals").json()["items"]

    assert item["ran_with"] == ran_with
    assert item["changed_by"] == "user:april"


def test_a_fork_remembers_no_arguments_for_a_call_whose_edit_is_redacted(people, call):
    last = Event.objects.filter(conversation=call.conversation).latest("seq").seq
    copy = fork(people["admin"], call.conversation.key, last).conversation
    assert "Oak Road" in str(remembered(copy))

    scope.carry_out(SYSTEM, SCOPES["words"](call), "asked for")

    outputs = [item["output"] for item in remembered(copy) if item.get("type") == "function_call_output"]
    assert len(outputs) == 1
    assert "ran_with" not in outputs[0]
