"""A field of a tool call, and everything about a person: what goes, what stays, what is shown before; two people."""

import json

import pytest

from conversations.access.audit import chain
from conversations.conversation.fork import fork
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound, Unavailable
from conversations.core.principals import SYSTEM, user_principal
from conversations.events import log
from conversations.models import AuditEntry, Event, Redaction, RedactionRequest, SessionItem, ToolCall, User
from conversations.redaction import call_field, journal, legal_holds, requests, scope
from conversations.redaction.redact import redact
from conversations.redaction.scope import RedactionScope
from tests.redaction.test_redact import everywhere, index, spoken
from tests.support.cast import person
from tests.support.searching import search_all
from tests.support.unchecked import unchecked
from tests.support.verified import verify_events

PHONE = "+44 7700 900123"


def stored(key, fields, by=SYSTEM):
    return log.append([unchecked(key, fields, by)])


def called(key):
    """Record a call that has a phone number as an argument and in what came of it; return its row."""
    step = {"event": "tool_step", "name": "dial", "tool_call_id": f"{key}-c", "agent": "A"}
    args = {"phone": PHONE, "note": "quokka"}
    stored(key, {**step, "status": "start", "args": args, "args_raw": json.dumps(args)})
    done = f"dialled {PHONE}, wombat"
    stored(key, {**step, "status": "success", "output": {"line": done}, "result_summary": done[:12]})
    return ToolCall.objects.get(conversation__key=key)


@pytest.mark.django_db(transaction=True)
def test_a_field_of_a_call_goes_wherever_the_call_says_it_and_the_rest_stays(team):
    call = called("scope-a")
    copy = fork(team["admin"], "scope-a", 2).conversation
    index()

    done = scope.carry_out(team["admin"], RedactionScope(call=call.pk, field="args.phone"), "asked for")

    assert [(redaction.conversation, redaction.seqs) for redaction in done.redacted] == [
        ("scope-a", [1, 2]),
        (copy, [1, 2]),
    ]
    assert everywhere(PHONE) == []
    first, second = (json.loads(Event.objects.get(conversation__key="scope-a", seq=seq).body) for seq in (1, 2))
    assert first["args"] == json.loads(first["args_raw"]) == {"phone": "[redacted]", "note": "quokka"}
    assert second["output"] == {"line": "dialled [redacted], wombat"}
    assert verify_events().ok
    index()
    assert {key for key, _ in search_all("quokka")} == {key for key, _ in search_all("wombat")} == {"scope-a", copy}
    assert search_all("900123") == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("what", [
    RedactionScope("scope-a", [1], person="ida"),
    RedactionScope("scope-a", words=["quokka"]),
    RedactionScope("scope-a", [1], is_id=True),
    RedactionScope("scope-a", [1], call="c1"),
    RedactionScope("scope-a", [1], field="output"),
    RedactionScope("scope-a", [1], entries=[1]),
    RedactionScope(call="c1", words=["quokka"]),
    RedactionScope(person="ida", entries=[1]),
    RedactionScope(person="ida", field="output"),
])  # fmt: skip
def test_a_redaction_of_two_things_at_once_is_refused_and_nothing_is_redacted(team, what):
    called("scope-a")

    with pytest.raises(Invalid, match=r"choose one: |must be a field of a tool call"):
        scope.preview(what)
    with pytest.raises(Invalid, match=r"choose one: |must be a field of a tool call"):
        scope.carry_out(team["admin"], what, "asked for")

    assert not Redaction.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_what_lost_a_field_can_still_be_redacted_and_an_older_copy_loses_the_same(team, tmp_path):
    call = called("scope-b")
    before = {row.pk: (row.body, row.salt) for row in Event.objects.all()}
    scope.carry_out(team["admin"], RedactionScope(call=call.pk, field="output"), "asked for")
    lines = journal.update(tmp_path)
    Redaction.objects.all().delete()
    for pk, (body, salt) in before.items():
        Event.objects.filter(pk=pk).update(body=body, salt=salt, erased_by=None)
    assert everywhere("wombat")

    again = journal.apply(tmp_path / journal.NAME)
    assert (len(lines), again, everywhere("wombat")) == (1, 1, [])
    assert everywhere("quokka") == ["conversations_event"]
    redact(team["admin"], "scope-b", [1], "asked for")

    assert everywhere("quokka") == everywhere(PHONE) == []
    assert verify_events().ok


@pytest.mark.django_db(transaction=True)
def test_a_journal_that_was_cut_off_is_written_on_and_a_damaged_one_is_told(team, tmp_path):
    spoken("scope-j", "quokka", "wombat")
    path = tmp_path / journal.NAME
    redact(team["admin"], "scope-j", [1], "asked for")
    journal.update(tmp_path)
    path.write_text(path.read_text() + '{"mark": "cut o')
    redact(team["admin"], "scope-j", [2], "asked for")

    journal.update(tmp_path)

    assert [line.seqs for line in journal.read(path)] == [[1], [2]]
    path.write_text("no journal\n" + path.read_text())
    with pytest.raises(Unavailable, match="line 1 of"):
        journal.apply(path)


@pytest.mark.parametrize("field", ["", "phone", "args..x", "status", "args." + "x" * 200])
def test_a_field_that_is_none_is_refused(field):
    with pytest.raises(Invalid):
        call_field.FieldPath.parse(field)


@pytest.mark.django_db(transaction=True)
def test_a_call_or_a_field_that_is_not_there_is_told(team):
    call = called("scope-c")

    with pytest.raises(NotFound):
        scope.preview(RedactionScope(call="none"))
    with pytest.raises(Invalid, match=r"has no value in args\.fax"):
        scope.preview(RedactionScope(call=call.pk, field="args.fax"))
    with pytest.raises(Invalid):
        scope.preview(RedactionScope(person="", words=["ab"]))


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_everything_about_a_person_goes_and_what_is_held_is_told(team):
    say = {"type": "message", "recipient": "agent:B", "sender": "user:ida"}
    stored("scope-d", say | {"content": "I am here"}, user_principal("ida"))
    stored("scope-d", say | {"sender": "agent:B", "recipient": "user:ida", "content": "welcome wombat"})
    stored("scope-d", say | {"sender": "agent:B", "recipient": "agent:C", "content": "nothing of note"})
    stored("scope-e", say | {"sender": "agent:B", "recipient": "agent:C", "content": "call Zoë QUOKKA-7"})
    stored("scope-f", say | {"sender": "agent:B", "recipient": "agent:C", "content": "quokka-7 again"})
    hold = legal_holds.place(team["admin"], "scope-f", "a lawsuit")
    what = RedactionScope(person="ida", words=["quokka-7", "Zoë"])

    places = scope.preview(what)
    first = scope.carry_out(team["admin"], what, "Article 17")
    legal_holds.release(team["admin"], hold.pk, "it is over")
    second = scope.carry_out(team["admin"], what, "Article 17")

    assert [(place.conversation, place.seqs, bool(place.blocked)) for place in places] == [
        ("scope-d", [1, 2], False), ("scope-e", [1], False), ("scope-f", [1], True)
    ]  # fmt: skip
    assert [redaction.conversation for redaction in first.redacted] == ["scope-d", "scope-e"]
    assert [key for key, _ in first.refused] == ["scope-f"]
    assert [redaction.conversation for redaction in second.redacted] == ["scope-f"]
    for word in ("I am here", "wombat", "QUOKKA", "quokka", "Zoë"):
        assert everywhere(word) == []
    assert everywhere("nothing of note")
    assert not AuditEntry.objects.filter(target__contains="ida").exists()
    assert verify_events().ok
    assert chain.verify().ok


NAME = "Zo\u00eb"  # ë as one character
WRITTEN = {
    "as it is": NAME,
    "with the dots apart": "Zoe\u0308",
    "in JSON of a tool": json.dumps({"who": NAME}),
    "with the dots apart in JSON of a tool": json.dumps({"who": "Zoe\u0308"}),
    "in JSON within JSON": json.dumps({"line": json.dumps({"who": NAME}, ensure_ascii=False)}, ensure_ascii=False),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("word", [NAME, "Zoe\u0308"], ids=["composed", "decomposed"])
@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_a_word_is_found_however_its_letters_are_written(team, word, text):
    stored("scope-z", {"event": "output", "agent": "A", "text": text})
    stored(key := "Zoe\u0308 here", {"event": "output", "agent": "A", "text": "nothing of note"})
    what = RedactionScope(words=[word])

    assert [(place.conversation, place.seqs) for place in scope.preview(what)] == [("scope-z", [1]), (key, [1])]
    assert scope.preview_ids(what) == [key]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("\u00e4rger", "\u00c4rger"),
        ("\u00c4RGER", "\u00e4rGer"),
        ("m\u00fcller-l\u00f6w", "M\u00dcller-L\u00f6w"),
        ("\u0438\u0432\u0430\u043d\u043e\u0432", "\u0418\u0412\u0410\u041d\u041e\u0412"),
        ("\u0418\u0412\u0410\u041d\u041e\u0412", "\u0418\u0432\u0430\u043d\u043e\u0432"),
        ("a\u0308rger", "\u00c4rger"),
    ],
    ids=["small", "large", "two letters", "small Cyrillic", "large Cyrillic", "decomposed"],
)
def test_a_word_is_found_in_any_case_beyond_ascii(team, word, written):
    stored("scope-u", {"event": "output", "agent": "A", "text": f"said {json.dumps(written)}"})
    stored(written, {"event": "output", "agent": "A", "text": "nothing of note"})
    what = RedactionScope(words=[word])

    assert [(place.conversation, place.seqs) for place in scope.preview(what)] == [("scope-u", [1]), (written, [1])]
    assert scope.preview_ids(what) == [written]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", [NAME, "Zoe\u0308"], ids=["composed", "decomposed"])
def test_a_person_is_found_however_the_name_is_written(team, name):
    say = {"type": "message", "recipient": "agent:B", "sender": f"user:{NAME}", "content": "wombat"}
    stored("scope-p", say, user_principal(NAME))
    stored("scope-q", say | {"sender": "agent:B", "recipient": f"user:{NAME}"})

    places = scope.preview(RedactionScope(person=name))

    assert [(place.conversation, place.seqs) for place in places] == [("scope-p", [1]), ("scope-q", [1])]


@pytest.mark.django_db(transaction=True)
def test_a_preview_says_what_goes_and_where_and_changes_nothing(team):
    call = called("scope-g")
    copy = fork(team["admin"], "scope-g", 2).conversation
    SessionItem.objects.create(conversation="scope-g", seq=1, at=1, payload="{}")
    index()
    before = list(Event.objects.order_by("pk").values())

    first, second = scope.preview(RedactionScope(call=call.pk))

    assert (first.conversation, first.kinds, first.is_fork, first.blocked) == ("scope-g", {"tool_step": 2}, False, "")
    assert first.elsewhere == {
        "entries of the search index": 2, "tool calls": 1, "items that agents remember": 1
    }  # fmt: skip
    assert (second.conversation, second.is_fork) == (copy, True)
    assert list(Event.objects.order_by("pk").values()) == before


@pytest.fixture
def two_people(settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"redaction_four_eyes": True})


@pytest.mark.django_db(transaction=True)
def test_where_two_people_are_needed_a_second_one_confirms(team, two_people):
    spoken("scope-h", "quokka")
    what = RedactionScope("scope-h", [1])

    submitted = requests.submit(team["admin"], what, "asked for")
    assert submitted.outcome is None
    assert everywhere("quokka")
    with pytest.raises(NotAllowed, match="a second person"):
        requests.confirm(team["admin"], submitted.request.pk)
    with pytest.raises(NotAllowed):
        requests.confirm(team["auditor"], submitted.request.pk)
    requests.confirm(person("bess", "admin"), submitted.request.pk)

    assert everywhere("quokka") == []
    with pytest.raises(Conflict, match="user:bess has confirmed"):
        requests.decline(team["admin"], submitted.request.pk)
    entry = AuditEntry.objects.get(verb="redact", outcome="done")
    assert (entry.principal, json.loads(entry.correlation)["requested_by"]) == ("user:bess", "user:ada")


@pytest.fixture
def waiting_request(team, two_people):
    """A request of the admin's, which `bess` may confirm."""
    spoken("scope-k", "quokka")
    person("bess", "admin")
    return requests.submit(team["admin"], RedactionScope("scope-k", [1]), "asked for").request


def carrying_out(monkeypatch, act):
    """Have `act` called when a confirmed request is about to be carried out."""
    carry_out = scope.carry_out
    monkeypatch.setattr(scope, "carry_out", lambda *args, **facts: (act(), carry_out(*args, **facts))[1])


@pytest.mark.django_db(transaction=True)
def test_a_request_that_is_being_carried_out_cannot_be_declined(team, waiting_request, monkeypatch):
    def decline():
        with pytest.raises(Conflict, match="user:bess has confirmed"):
            requests.decline(team["admin"], waiting_request.pk)

    carrying_out(monkeypatch, decline)

    requests.confirm(User.objects.get(username="bess"), waiting_request.pk)

    waiting_request.refresh_from_db()
    assert (waiting_request.decided_by, waiting_request.is_confirmed) == ("user:bess", True)
    assert everywhere("quokka") == []


@pytest.mark.django_db(transaction=True)
def test_a_request_whose_redaction_was_killed_is_finished_by_whoever_confirms_it_next(
    team, waiting_request, monkeypatch
):
    def killed():
        raise SystemExit

    with monkeypatch.context() as first:
        carrying_out(first, killed)
        with pytest.raises(SystemExit):
            requests.confirm(User.objects.get(username="bess"), waiting_request.pk)
    with pytest.raises(Conflict, match="not finished"):
        requests.decline(team["admin"], waiting_request.pk)

    requests.confirm(person("carl", "admin"), waiting_request.pk)

    waiting_request.refresh_from_db()
    assert (waiting_request.decided_by, waiting_request.is_confirmed, everywhere("quokka")) == ("user:carl", True, [])


@pytest.mark.django_db(transaction=True)
def test_a_confirmed_request_that_a_hold_refuses_can_be_declined(team, waiting_request):
    legal_holds.place(team["admin"], "scope-k", "a lawsuit")

    with pytest.raises(Conflict, match="legal hold"):
        requests.confirm(User.objects.get(username="bess"), waiting_request.pk)
    requests.decline(team["admin"], waiting_request.pk)

    waiting_request.refresh_from_db()
    assert (waiting_request.decided_by, waiting_request.is_confirmed) == ("user:ada", False)
    assert everywhere("quokka")


@pytest.mark.django_db(transaction=True)
def test_whoever_confirms_too_and_is_refused_leaves_the_other_at_it(team, waiting_request, monkeypatch):
    def confirm_too():
        with monkeypatch.context() as inner:
            inner.setattr(scope, "carry_out", refuse)
            with pytest.raises(Conflict, match="the run"):
                requests.confirm(person("carl", "admin"), waiting_request.pk)
        with pytest.raises(Conflict, match="user:bess has confirmed"):
            requests.decline(team["admin"], waiting_request.pk)

    def refuse(*_, **__):
        raise Conflict("stop the run first")

    carrying_out(monkeypatch, confirm_too)

    requests.confirm(User.objects.get(username="bess"), waiting_request.pk)

    assert everywhere("quokka") == []


@pytest.mark.django_db(transaction=True)
def test_a_declined_request_changes_nothing_and_one_about_a_person_keeps_no_words(team, two_people):
    spoken("scope-i", "quokka")
    with pytest.raises(Invalid):
        requests.submit(team["admin"], RedactionScope("scope-i", [1]), " ")
    first = requests.submit(team["admin"], RedactionScope("scope-i", [1]), "asked for").request
    second = requests.submit(SYSTEM, RedactionScope(words=["quokka"]), "asked for").request

    requests.decline(team["admin"], first.pk)
    tables = ("conversation", "event", "redactionrequest")
    assert everywhere("quokka") == [f"conversations_{table}" for table in tables]
    requests.confirm(team["admin"], second.pk)

    assert everywhere("quokka") == []
    assert not requests.pending().exists()
    assert RedactionRequest.objects.filter(is_confirmed=True).get().requested_by == "system"
