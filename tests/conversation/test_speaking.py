"""Speaking as another: by a grant, with a reason, never without the true principal (§3.3, §3.4, §3.7)."""

import json

import pytest

from conversations.access.accounts.edit_grants import give_grant, take_grant
from conversations.conversation import control, post_message
from conversations.core.errors import IdReused, Invalid, NotAllowed
from conversations.core.principals import SYSTEM, token_principal, user_principal
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.import_export.export import export
from conversations.models import AuditEntry, Conversation, Event, Participant, Post, Run, Token
from conversations.rendering import event_renderer
from tests.support import teamwork
from tests.support.cast import CAST, STRANGER, audit_summary, client_of, last_entry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("town")]


@pytest.fixture
def otto(team):
    """An operator who may speak as anybody."""
    give_grant(SYSTEM, "otto", "speak_as", "*")
    return team["operator"]


def speak(by, sender="agent:Dialogue", *, to="chat:c", content="The street is closed.", client_id="1", **more):
    words = {"recipient": to, "content": content, "client_id": client_id, "reason": "the model is down"} | more
    return post_message.post(by, "c", sender=sender, **words)


def body(stored):
    return json.loads(stored.body)


def test_words_bear_the_agents_name_and_tell_who_said_them_and_why(otto):
    stored = speak(otto)

    assert stored.principal == "user:otto"
    assert body(stored)["sender"] == "agent:Dialogue"
    assert body(stored)["metadata"] == {"sent_by": "user:otto", "reason": "the model is down"}
    entry = last_entry()
    assert audit_summary(entry) == ("user:otto", "speak_as", "conversation:c", "done")
    assert (entry.acting_as, entry.reason) == ("agent:Dialogue", "the model is down")
    assert json.loads(entry.correlation)["seq"] == stored.seq


def test_words_as_oneself_need_neither_grant_nor_reason(team):
    stored = post_message.post(team["operator"], "c", recipient="chat:c", content="Hello", client_id="1")

    assert body(stored)["metadata"] == {}
    assert body(stored)["sender"] == stored.principal == "user:otto"
    assert (last_entry().verb, last_entry().acting_as) == ("send", "")


@pytest.mark.parametrize("sender", ["agent:Dialogue", "agent:Foreign agent", "agent:وكيل", "system"])
def test_one_speaks_as_any_agent_and_as_the_system(otto, sender):
    stored = speak(otto, sender)

    assert body(stored)["sender"] == sender
    kind = "system" if sender == "system" else "agent"
    assert Participant.objects.filter(conversation__key="c", name=sender, kind=kind).exists()


def test_without_a_grant_it_is_refused_and_told_whom_they_would_have_been(team):
    give_grant(SYSTEM, "otto", "speak_as", "agent:Triage")

    with pytest.raises(NotAllowed, match="may not speak as agent:Dialogue"):
        speak(team["operator"])

    assert not Event.objects.exists()
    assert audit_summary(last_entry()) == ("user:otto", "speak_as", "conversation:c", "refused")
    assert last_entry().acting_as == "agent:Dialogue"


@pytest.mark.parametrize("role", ["viewer", "approver", "auditor", ""])
def test_a_grant_without_the_role_is_none(team, role):
    give_grant(SYSTEM, team[role].username, "speak_as", "*")

    with pytest.raises(NotAllowed):
        speak(team[role])


def test_strangers_and_agents_tokens_speak_as_nobody(team):
    Token.objects.create(name="desk", role="agent", agent="Dialogue", digest="d", created_by="system")

    for by in (STRANGER, token_principal("desk"), user_principal("nobody")):
        with pytest.raises(NotAllowed):
            speak(by)

    assert not Event.objects.exists()


def test_an_admins_token_speaks_and_is_named(team):
    Token.objects.create(name="ci", role="admin", digest="d", created_by="system")

    stored = speak(token_principal("ci"))

    assert (stored.principal, body(stored)["metadata"]["sent_by"]) == ("token:ci", "token:ci")


def test_a_grant_taken_meanwhile_counts_no_more(otto, team):
    take_grant(team["admin"], "otto", "speak_as", "*")

    with pytest.raises(NotAllowed):
        speak(otto)

    with write_transaction():  # inside the transaction too
        give_grant(SYSTEM, "otto", "speak_as", "*")
        take_grant(SYSTEM, "otto", "speak_as", "*")
        with pytest.raises(
            RuntimeError, match="after the action's own rollback"
        ):  # refused; the audit waits for the rollback
            speak(otto)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"reason": " "}, "reason"),
        ({"reason": "x" * 2001}, "reason"),
        ({"sender": "user:ada"}, "sender"),
        ({"sender": "agent:  "}, "sender"),
        ({"sender": "agent:a\0b"}, "sender"),
        ({"sender": "agent:" + "x" * 195}, "sender"),
        ({"sender": "token:ci"}, "sender"),
        ({"to": "chat:elsewhere"}, "recipient"),
        ({"to": "agent: "}, "recipient"),
    ],
)
def test_what_is_wrong_is_told_by_field(otto, more, field):
    with pytest.raises(Invalid) as caught:
        speak(otto, **more)

    assert caught.value.field == field
    assert not Event.objects.exists()


def test_the_same_client_id_is_said_once_and_never_as_somebody_else(otto):
    first = speak(otto)

    assert speak(otto).seq == first.seq
    for other in ({"sender": "system"}, {"reason": "another"}, {"sender": "user:otto"}):
        with pytest.raises(IdReused):
            speak(otto, **other)

    assert Event.objects.filter(kind="message").count() == 1
    assert AuditEntry.objects.filter(verb="speak_as", outcome="done").count() == 1


def test_it_goes_where_an_agents_message_goes(otto):
    stored = speak(otto, "agent:Foreign", to="agent: Dialogue ")

    assert body(stored)["recipient"] == "agent:Dialogue"
    assert list(Post.objects.order_by("id").values_list("topic", flat=True)) == ["chat:c", "chat:Dialogue"]


def test_a_conversation_named_like_its_agent_is_one_topic(otto):
    post_message.post(otto, "Dialogue", recipient="agent:Dialogue", content="Hello", client_id="1")

    assert list(Post.objects.values_list("topic", flat=True)) == ["chat:Dialogue"]


# Who answers: by the rule of an agent's message (§3.4).


@pytest.mark.parametrize(
    ("sender", "to", "answers"),
    [
        ("agent:Foreign", "agent:Dialogue", "Dialogue"),
        ("system", "agent:Dialogue", "Dialogue"),
        ("agent:Dialogue", "agent:Dialogue", None),
        ("agent:Foreign", "agent:Triage", None),  # no entry agent
        ("agent:Foreign", "chat:c", None),
        ("agent:Dialogue", "chat:c", None),
        ("system", "chat:c", "Dialogue"),
        ("", "chat:c", "Dialogue"),
    ],
)
def test_who_answers_what_is_said_as_another(otto, sender, to, answers):
    opening = log.from_internal("c", {"event": "conversation.opened", "id": "o", "handler": "Dialogue"}, SYSTEM)
    log.append([opening])

    stored = speak(otto, sender, to=to)

    runs = list(Run.objects.order_by("id").values_list("agent", "input_seq"))
    assert runs == ([(answers, stored.seq)] if answers else [])


def test_an_agents_answer_to_it_has_one_hop(otto):
    """No run of ours stands behind the words: agents that answer each other count from them on."""
    stored = speak(otto, "agent:Foreign", to="agent:Dialogue")

    assert "hop" not in body(stored)["metadata"]
    assert Run.objects.get().status == "queued"


def test_while_it_is_held_words_wait_and_nothing_is_rewritten(otto):
    teamwork.say(otto, "c")
    before = list(Event.objects.order_by("seq").values_list("seq", "hash"))
    control.take_over(otto, "c")

    speak(otto, "agent:Dialogue", to="chat:c", client_id="2")

    assert list(Event.objects.order_by("seq").values_list("seq", "hash"))[: len(before)] == before
    assert Run.objects.count() == 1
    assert Conversation.objects.get().owner == "user:otto"


# How it is drawn.


def drawn(stored):
    return str(event_renderer.EventRenderer("c").draw(stored).html)


def test_it_is_drawn_with_the_true_principal_and_the_reason(otto):
    html = drawn(speak(otto, reason='<b>"down"</b>'))

    assert 'data-by="otto"' in html
    assert "sent by otto" in html
    assert "Reason: &lt;b&gt;" in html
    assert "Raw fields" not in html  # the principal has its own place


def test_the_list_names_who_spoke_under_anothers_name(otto):
    browser = client_of(otto)
    speak(otto)
    row = Conversation.objects.get()
    assert (row.last_sender, row.last_by) == ("agent:Dialogue", "otto")
    assert "sent by <bdi>otto</bdi>" in browser.get("/").content.decode()

    speak(otto, "", client_id="2", content="As oneself.")

    assert Conversation.objects.get().last_by == ""
    assert "sent by" not in browser.get("/").content.decode()


def test_the_export_tells_who_said_it(otto, team):
    stored = speak(otto)

    lines = list(export("c"))

    line = json.loads(lines[stored.seq])
    assert line["principal"] == "user:otto"
    assert json.loads(line["body"])["metadata"]["sent_by"] == "user:otto"


def test_a_claim_of_another_sender_is_not_hidden():
    forged = {"event": "message", "sender": "agent:X", "recipient": "chat:c", "content": "Hi", "metadata": {}}
    forged["metadata"] = {"sent_by": "user:ada"}
    (stored,) = log.append([log.from_internal("c", forged, token_principal("robot"))])

    html = drawn(stored)

    assert "sent by ada" not in html
    assert "Raw fields" in html
    assert "via token robot" in html


@pytest.mark.parametrize("role", list(CAST.values()))
def test_the_picker_offers_whom_one_may_speak_as(team, role):
    teamwork.say(team["operator"], "c")
    give_grant(SYSTEM, "otto", "speak_as", "agent:Coordinator")

    page = client_of(team[role]).get("/conversations/c/").content.decode()

    assert ('name="as"' in page) is (role in ("operator", "admin"))
    assert ('value="agent:Coordinator"' in page) is (role in ("operator", "admin"))
    assert ('value="system"' in page) is (role == "admin")
