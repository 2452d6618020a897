"""No agent answers, or is given, what stands in place of a redacted message."""

import pytest
from agents import function_tool
from agents.testing import function_call

from conversations.conversation import control, fork, post_message
from conversations.core.errors import Conflict
from conversations.core.principals import SYSTEM, import_principal
from conversations.import_export.detect_format import recordings
from conversations.import_export.export import export
from conversations.import_export.import_file import import_recordings
from conversations.import_export.import_report import ImportReport
from conversations.import_export.staged_import import StagedImport
from conversations.models import Conversation, Event, Run
from conversations.redaction import redact
from conversations.runs import stop_and_rerun
from tests.agents_app.test_worker_heard import Model, answers, clerks, speak
from tests.support.agents_running import ended_runs, event_bodies, send_message, working

pytestmark = pytest.mark.django_db(transaction=True)


def redact_messages() -> None:
    seqs = list(Event.objects.filter(kind="message").order_by("seq").values_list("seq", flat=True))
    redact.redact(SYSTEM, "c", seqs, "asked for")


def stopped_run() -> Run:
    """Send a message whose run is stopped before it begins."""
    send_message("my number is 12")
    run = Run.objects.get()
    control.pause(SYSTEM, "c")
    stop_and_rerun.cancel_run(SYSTEM, run.id)
    control.resume(SYSTEM, "c")
    return run


@pytest.mark.parametrize(
    "begin",
    [
        lambda by, run: stop_and_rerun.run_again(by, run.id),
        lambda by, run: fork.rerun(by, run.id),
        lambda by, run: fork.fork(by, "c", Conversation.objects.get(key="c").head_seq, run=True, agent="Clerk"),
    ],
    ids=["run again", "run again in a fork", "run in a fork"],
)
def test_no_run_is_begun_for_a_redacted_message(people, begin):
    with working(clerks(Model())):
        pass  # its agents are known
    run = stopped_run()
    redact_messages()

    with pytest.raises(Conflict, match="event 1, which the run would answer, was redacted") as refused:
        begin(people["operator"], run)

    assert refused.value.code == "redacted"
    assert Run.objects.count() == 1
    assert Conversation.objects.visible().count() == 1


def test_no_run_is_begun_for_a_message_that_was_redacted_where_it_was_imported_from(people, tmp_path):
    with working(clerks(Model())):
        pass
    stopped_run()
    redact_messages()
    (tmp_path / "c.jsonl").write_bytes(b"".join(export("c")))
    report = ImportReport(print)
    recording = recordings(tmp_path / "c.jsonl", report)
    import_recordings(recording, StagedImport(import_principal("c")), report, key="copy", progress=lambda *_: None)

    with pytest.raises(Conflict, match="event 1, which the run would answer, was redacted"):
        fork.fork(people["operator"], "copy", 1, run=True, agent="Clerk")

    assert Run.objects.count() == 1


def test_a_queued_run_ends_unbegun_if_its_message_was_redacted_meanwhile():
    model = Model(*answers("Noted."))
    with working(clerks(model)):
        pass
    send_message("my number is 12")
    redact_messages()

    with working(clerks(model)):
        (run,) = ended_runs()

    assert (run.status, run.reason) == ("incompatible", "event 1, which the run would answer, was redacted")
    assert model.given == []


def test_what_was_said_to_nobody_and_then_redacted_is_not_given_to_the_next_run(people):
    model = Model(*answers("First.", "Second."))
    with working(clerks(model)):
        send_message("hello")
        ended_runs(1)
        control.take_over(people["operator"], "c")
        speak(people["operator"], "my number is 12")
        speak(people["operator"], "and I am Ida")
        (seq,) = Event.objects.filter(body__contains="my number").values_list("seq", flat=True)
        redact.redact(SYSTEM, "c", [seq], "asked for")
        control.hand_back(people["operator"], "c")
        send_message("who am I?")
        ended_runs(2)

    assert [body["text"] for body in event_bodies("output")] == ["First.", "Second."]
    assert [line for line in model.given[-1] if "user:" in line][-2:] == ["user: and I am Ida", "user: who am I?"]
    assert "user: " not in model.given[-1]


def test_a_redacted_message_for_the_next_step_is_not_delivered_there(people):
    operator = people["operator"]
    model = Model([function_call("look", {}, call_id="c1")], *answers("Seen."))

    @function_tool
    def look() -> str:
        """Look."""
        return "seen"

    with working(clerks(Model(), look)):
        pass
    send_message("hello")
    options = {"client_id": "later", "when": "next_step"}
    seq = post_message.post(operator, "c", recipient="agent:Clerk", content="my number is 12", **options).seq
    redact.redact(SYSTEM, "c", [seq], "asked for")

    with working(clerks(model, look)):
        first, second = ended_runs(2)

    assert (first.status, second.status) == ("done", "incompatible")
    assert "user: " not in model.given[-1]
