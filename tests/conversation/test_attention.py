"""Which conversations need a person, why, since when; and the groups of the list."""

import re
import time

import pytest
from django.conf import settings

from conversations.conversation import (
    attention,
    control,
    conversation_list,
    conversation_row,
    group_trends,
    imported_history,
)
from conversations.conversation import fork as forks
from conversations.core.principals import import_principal
from conversations.events import log
from conversations.events.log.rebuild import rebuild
from conversations.events.log.refold_check import Differs, RefoldCheck
from conversations.models import Approval, Conversation, Event, Participant, Run, ToolCall, User
from conversations.runs.approvals import decide
from tests.support import held_run, teamwork
from tests.support.cast import client_of
from tests.support.unchecked import unchecked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("town")]


def groups(reader):
    page = conversation_list.newest_conversations(reader=reader, limit=60)
    return conversation_list.grouped(page, reader)


def keys(reader, group):
    return [row.key for row in groups(reader).rows[group]]


def reasons(reader):
    return {row.key: row.need.reason for row in groups(reader).rows["attention"]}


def age(key, seconds):
    """Make the last thing that happened in a conversation older."""
    Conversation.objects.filter(key=key).update(last_at=time.time_ns() // 1000 - int(seconds * 1e6))


def test_a_question_needs_a_person_until_it_is_decided(team):
    approval = teamwork.ask(team["operator"], key="waits")

    (row,) = groups(team["viewer"]).rows["attention"]
    assert (row.key, row.need.reason, row.need.since) == ("waits", "approval", approval.asked_at)
    assert row.glyph == ("waiting", "Waiting for approval")

    decide.decide(team["approver"], approval.id, "reject")

    assert keys(team["viewer"], "attention") == []
    assert keys(team["viewer"], "live") == ["waits"]


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("ValueError: no such street\nTraceback…", "ValueError: no such street"),
        ('it said "no" \\ عمر', 'it said "no" \\ عمر'),
        ("x" * 5000, "x" * attention.ERROR_SHOWN),
        ("é" * 1000 + '"', "é" * attention.ERROR_SHOWN),
        ("", ""),
    ],
)
def test_a_row_of_a_failed_run_says_why(team, error, shown):
    teamwork.fail(team["operator"], error=error)

    (row,) = groups(team["operator"]).rows["attention"]
    html = conversation_row.drawn(row)

    assert row.need.error == shown
    assert ('class="fault' in html) == bool(shown)


def test_a_failed_run_needs_a_person_for_a_day_or_until_another_one_is_done(team):
    for key in ("failed", "mended", "yesterday"):
        teamwork.fail(team["operator"], key=key)
    teamwork.say(team["operator"], key="mended", client_id="2", content="again")
    held_run.finish(teamwork.claim("mended"), {"event": "run.done"})
    old = Run.objects.get(conversation__key="yesterday")
    day_ago = time.time_ns() // 1000 - attention.FAILED_FOR * 1_000_000 - 1
    Event.objects.filter(conversation=old.conversation, seq=old.ended_seq).update(at=day_ago)

    assert reasons(team["viewer"]) == {"failed": "failed"}
    assert len(groups(team["viewer"]).failures) == 1


def test_the_trends_beside_the_figures_are_of_what_these_count(team):
    teamwork.ask(team["operator"], key="waits")
    teamwork.fail(team["operator"], key="failed")
    teamwork.say(team["operator"], key="lives")

    drawn = groups(team["viewer"]).trends

    live = sum(row.head_seq for row in groups(team["viewer"]).rows["live"])
    assert {name: trend.words for name, trend in drawn.items()} == {
        "attention": "2 conversations began to wait in the last hour",
        "failed": "1 conversation failed in the last 24 hours",
        "live": f"{live} events of live conversations in the last hour",
        "runs": "3 runs queued in the last hour",
    }
    html = client_of(team["viewer"]).get("/").content.decode()
    assert html.count('<span class="trend">') == 4
    assert group_trends._by_span([0, 50, 99, 140], 100, 4, 25) == [0, 1, 0, 2]


def test_runs_of_the_last_hour_are_told_by_their_ids(team, monkeypatch):
    teamwork.say(team["operator"], key="lives")
    queued = time.time_ns() // 1000

    (at,) = group_trends.runs_queued(queued)

    assert abs(queued - at) < 60_000_000
    assert group_trends.runs_queued(queued + group_trends.HOUR_US + 60_000_000) == []
    Run.objects.update(id="another-id")
    assert group_trends.runs_queued(queued) == []
    monkeypatch.setattr(group_trends, "MAX_RUNS", 0)
    assert group_trends.runs_queued(queued) == []


def test_a_run_without_progress_needs_a_person(team):
    teamwork.say(team["operator"], key="silent")
    teamwork.claim("silent")
    Event.objects.update(at=time.time_ns() // 1000 - int((settings.CONFIG.stuck_silence_s + 5) * 1e6))

    (row,) = groups(team["viewer"]).rows["attention"]

    assert (row.key, row.need.reason) == ("silent", "stuck")
    assert row.need.since == Event.objects.order_by("-seq").values_list("at", flat=True)[0]


def test_a_row_names_the_call_that_waits_longest(team):
    first = teamwork.ask(team["operator"], key="asks")
    later = teamwork.ask(team["operator"], key="asks-later")
    Approval.objects.filter(id=later.id).update(asked_at=first.asked_at + 1, conversation=first.conversation_id)

    (row,) = groups(team["viewer"]).rows["attention"]

    call = ToolCall.objects.get(id=first.tool_call)
    assert (row.need.since, row.need.agent, row.need.tool) == (first.asked_at, call.agent, call.name)
    assert f"wants to call <code>{call.name}</code>" in conversation_row.drawn(row)
    assert attention.attention_of(waiting=[first.conversation_id], failed=[], owned=[], stuck={})[row.id] == row.need


def test_whoever_took_over_owes_a_reply_to_a_person_and_not_to_an_agent(team):
    operator, other = team["operator"], team["admin"]
    teamwork.say(operator, key="taken")
    control.take_over(operator, "taken")
    assert reasons(operator) == {}

    teamwork.say(other, key="taken", client_id="2", content="Is anybody there?")
    assert reasons(operator) == {"taken": "reply"}

    teamwork.say(operator, key="taken", client_id="3", content="I am.")
    assert reasons(operator) == {}


def write_to(person, key="asked", sender="agent:Robot", **fields):
    """Let an external agent write to a person, as its token publishes it."""
    message = {"type": "message", "sender": sender, "recipient": f"user:{person}", "content": "Which street?"}
    teamwork.claim_from_outside(key, message | fields)


def test_a_message_of_an_agent_to_a_person_needs_them_until_they_say_something(team):
    operator = team["operator"]
    write_to(operator.username)
    first = Event.objects.get()
    write_to(operator.username)

    (row,) = groups(team["viewer"]).rows["attention"]
    assert (row.key, row.need.reason, row.need.since) == ("asked", "message", first.at)
    assert row.need.person == f"user:{operator.username}"
    assert row.need_drawn[:2] == ("waiting", "message")
    assert [*attention.all_needs().needs] == [row.id]

    teamwork.say(team["admin"], key="asked", client_id="2", content="I do not know.")
    assert reasons(operator) == {"asked": "message"}
    teamwork.say(operator, key="asked", client_id="3", content="Elm Street.")
    assert reasons(operator) == {}
    assert attention.all_needs().needs == {}

    write_to(operator.username)
    (row,) = groups(team["viewer"]).rows["attention"]
    assert row.need.since == Event.objects.latest("seq").at


def test_each_person_answers_for_themselves_also_under_another_name(team):
    operator, admin = team["operator"], team["admin"]
    for person in (operator, admin):
        write_to(person.username)

    teamwork.say(admin, key="asked", client_id="2", sender="agent:Dialogue", reason="Dialogue is away")

    (row,) = groups(operator).rows["attention"]
    assert row.need.person == f"user:{operator.username}"


@pytest.mark.parametrize(
    "message",
    [
        {"recipient": "user:nobody-here"},
        {"sender": "user:maria"},
        {"type": "control"},
        {"recipient": "agent:Dialogue"},
        {"recipient": "chat:asked"},
    ],
)
def test_other_messages_need_nobody(team, message):
    write_to(team["operator"].username, **message)

    assert reasons(team["operator"]) == {}
    assert attention.all_needs().needs == {}


def test_nobody_answers_for_an_account_that_is_closed_or_after_a_week(team):
    write_to(team["operator"].username, key="closed")
    User.objects.filter(pk=team["operator"].pk).update(is_active=False)
    write_to(team["admin"].username, key="old")
    week_ago = time.time_ns() // 1000 - attention.ASKED_FOR * 1_000_000 - 1
    Participant.objects.filter(asked_at__gt=0, conversation__key="old").update(asked_at=week_ago)

    assert reasons(team["viewer"]) == {}
    assert attention.all_needs().needs == {}


def test_a_fork_asks_nobody_again_and_a_rebuild_changes_nothing(team):
    operator = team["operator"]
    write_to(operator.username)
    forks.fork(operator, "asked", 1, client_id="1")
    write_to(team["admin"].username)
    write_to(operator.username, key="answered")
    teamwork.say(operator, key="answered", client_id="2")
    before = list(Participant.objects.order_by("pk").values_list("pk", "asked_at"))
    assert sorted(reasons(operator)) == ["asked"]

    list(rebuild())
    assert list(Participant.objects.order_by("pk").values_list("pk", "asked_at")) == before

    Participant.objects.update(asked_at=7)
    list(rebuild())
    assert list(Participant.objects.order_by("pk").values_list("pk", "asked_at")) == before


def test_a_row_from_before_the_column_is_right_and_one_with_another_time_is_not(team):
    write_to(team["operator"].username)
    row = Conversation.objects.get(key="asked")

    Participant.objects.update(asked_at=0)
    RefoldCheck(row.pk, row.key).run()

    Participant.objects.filter(name__startswith="user:").update(asked_at=7)
    with pytest.raises(Differs, match=r"participant user:.* does not match its events"):
        RefoldCheck(row.pk, row.key).run()


def test_those_that_need_a_person_stand_first_the_longest_waiting_at_the_top(team):
    for key in ("second", "first", "third"):
        teamwork.ask(team["operator"], key=key)
    now = time.time_ns() // 1000
    for key, seconds in (("first", 300), ("second", 200), ("third", 100)):
        Approval.objects.filter(conversation__key=key).update(asked_at=now - seconds * 1_000_000)
    teamwork.say(team["operator"], key="new")

    html = client_of(team["viewer"]).get("/").content.decode()

    assert keys(team["viewer"], "attention") == ["first", "second", "third"]
    places = [html.index(f'data-key="{key}"') for key in ("first", "second", "third", "new")]
    assert places == sorted(places)
    assert html.index("Need a person") < places[0]


def test_one_that_needs_a_person_is_shown_first_however_old_it_is(team):
    teamwork.ask(team["operator"], key="old")
    age("old", 90 * 24 * 3600)
    Conversation.objects.bulk_create(Conversation(key=f"newer-{n}", last_at=time.time_ns() // 1000) for n in range(70))

    assert keys(team["viewer"], "attention") == ["old"]
    assert len(groups(team["viewer"]).rows["live"]) == 60
    html = client_of(team["viewer"]).get("/?q=newer").content.decode()
    assert 'data-key="old"' not in html
    assert "Need a person" not in html


def shown_figures(reader):
    html = client_of(reader).get("/").content.decode()
    return dict(re.findall(r'<b data-figure="(\w+)"[^>]*>([^<]*)</b>', html))


def test_the_figures_count_conversations_not_rows(team, monkeypatch):
    monkeypatch.setattr(attention, "MAX_LISTED", 2)
    for n in range(3):
        write_to("vera", key=f"asked-{n}")
    now = time.time_ns() // 1000
    Conversation.objects.update(last_at=now - 1_000_000)
    Conversation.objects.bulk_create(Conversation(key=f"newer-{n}", last_at=now) for n in range(70))

    assert shown_figures(team["viewer"]) == {"attention": "3", "live": "70"}

    write_to("vera", key="newer-7")
    write_to("vera", key="newer-8")
    monkeypatch.setattr(group_trends, "MAX_COUNTED", 65)

    assert shown_figures(team["viewer"])["attention"] == "5"
    assert shown_figures(team["viewer"])["live"].endswith("+")


def test_a_live_conversation_beyond_the_page_counts_by_its_run_and_not_as_history(team):
    teamwork.say(team["operator"], key="working")
    age("working", imported_history.LIVE_FOR + 1)
    teamwork.say(team["operator"], key="staged")
    Conversation.objects.filter(key="staged").update(is_staged=True)
    now = time.time_ns() // 1000
    Conversation.objects.bulk_create(Conversation(key=f"newer-{n}", last_at=now) for n in range(60))
    log.append(
        [unchecked("recorded", {"event": "note", "created_at": "2024-05-01T08:00:00Z"}, import_principal("maria"))]
    )
    age("recorded", 10)

    assert shown_figures(team["viewer"]) == {"attention": "0", "live": "61"}


def test_a_failed_conversation_in_which_somebody_also_asks_is_counted_as_failed(team):
    teamwork.fail(team["operator"], key="failed")
    write_to("vera", key="failed")

    assert reasons(team["viewer"]) == {"failed": "message"}
    assert len(groups(team["viewer"]).failures) == 1
    assert shown_figures(team["viewer"])["attention"] == "1"


def test_a_quiet_conversation_leaves_the_live_group(team):
    for key in ("quiet", "live", "working"):
        teamwork.say(team["operator"], key=key)
    teamwork.claim("working")
    Run.objects.exclude(conversation__key="working").update(status="done")
    age("quiet", imported_history.LIVE_FOR + 1)
    age("working", imported_history.LIVE_FOR + 1)

    assert keys(team["viewer"], "live") == ["live", "working"]
    assert keys(team["viewer"], "quiet") == ["quiet"]
    assert groups(team["viewer"]).runs == 1


def test_a_staged_import_needs_nobody(team):
    teamwork.ask(team["operator"], key="staged")
    Conversation.objects.filter(key="staged").update(is_staged=True)

    assert attention.all_needs().needs == {}


def test_what_needs_a_person_costs_the_same_however_long_the_record_is(team, django_assert_max_num_queries):
    for n in range(3):
        teamwork.ask(team["operator"], key=f"waits-{n}")
        teamwork.fail(team["operator"], key=f"failed-{n}")

    with django_assert_max_num_queries(9):
        attention.all_needs()
