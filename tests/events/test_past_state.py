"""The state after any event: what a fold of the events up to it gives, at the head what the rows say."""

import pytest

from conversations.conversation import control
from conversations.core.errors import Invalid
from conversations.events import log
from conversations.events.log import past_state
from conversations.models import Approval, Conversation, Run, ToolCall
from conversations.runs.approvals import decide
from dashboard.pages.conversation_entries import entries_of
from tests.support import large_talks, teamwork
from tests.support.cast import person

pytestmark = pytest.mark.django_db

KEY = "noise"


@pytest.fixture
def talk() -> Conversation:
    """A run that asked, was approved and ended, then a pause."""
    owner = person("owner", "admin")
    teamwork.team()
    approval = teamwork.ask(owner, KEY)
    decide.decide(owner, approval.id, "approve")
    teamwork.go_on(approval)
    control.pause(owner, KEY)
    return Conversation.objects.get(key=KEY)


def test_at_the_head_it_is_what_the_rows_say(talk: Conversation) -> None:
    state = past_state.state_at(talk, talk.head_seq)

    names = ("messages", "tool_calls", "errors", "state", "owner", "paused_seq", "last_at", "last_line", "title")
    assert {name: getattr(state.head, name) for name in names} == {name: getattr(talk, name) for name in names}
    runs = Run.objects.filter(conversation=talk).order_by("queued_seq").values_list("id", "status", "reason")
    assert [(run.id, run.status, run.reason) for run in state.runs] == list(runs)
    assert [row.id for row in state.pending] == list(Approval.objects.open().values_list("id", flat=True))
    assert state.participants == talk.participants.count()
    assert (state.seq, state.at) == (talk.head_seq, talk.last_at)


def test_each_moment_is_the_one_it_was_when_it_was_the_newest() -> None:
    owner = person("owner", "admin")
    teamwork.team()
    teamwork.ask(owner, KEY)
    before = Conversation.objects.get(key=KEY)
    then = past_state.state_at(before, before.head_seq)

    control.pause(owner, KEY)
    control.resume(owner, KEY)
    talk = Conversation.objects.get(key=KEY)

    assert past_state.state_at(talk, talk.head_seq).head.state == "open"
    assert past_state.state_at(talk, before.head_seq + 1).head.state == "paused"
    assert past_state.state_at(talk, before.head_seq) == then


def test_any_order_of_moments_gives_the_same_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_state, "STEP", 50)
    large_talks.write("large", events=400)
    talk = Conversation.objects.get(key="large")
    seqs = [400, 7, 399, 50, 51, 49, 200, 1, 333]

    there = {seq: past_state.state_at(talk, seq) for seq in seqs}
    past_state._fold_of.cache_clear()
    alone = {seq: past_state.state_at(talk, seq) for seq in sorted(seqs)}

    assert there == alone
    assert there[400].head.messages == talk.messages
    assert there[7].head.tool_calls == 1


def test_a_page_of_the_past_is_the_page_that_was_drawn_then() -> None:
    """Events come one after the other; each page then is the page as of that event now."""
    owner = person("owner", "admin")
    teamwork.team()
    approval = teamwork.ask(owner, KEY)
    drawn = {log.head(KEY): [str(entry) for entry in entries_of(log.newest_page(KEY))]}
    decide.decide(owner, approval.id, "approve")
    teamwork.go_on(approval)
    drawn[log.head(KEY)] = [str(entry) for entry in entries_of(log.newest_page(KEY))]

    for seq, entries in drawn.items():
        assert [str(entry) for entry in entries_of(log.past_page(KEY, seq))] == entries


def test_a_call_that_ended_later_was_running_then() -> None:
    large_talks.write("large", events=20)
    talk = Conversation.objects.get(key="large")
    call = ToolCall.objects.filter(conversation=talk).earliest("called_seq")

    page = log.past_page("large", call.called_seq)

    assert page.calls[call.called_seq].status == "executing"
    assert page.calls[call.called_seq].finished is None
    assert page.events[-1].seq == call.called_seq
    assert not page.has_newer
    assert past_state.state_at(talk, call.called_seq).open_calls == 1


def test_a_moment_beyond_the_bound_is_refused(talk: Conversation) -> None:
    with pytest.raises(Invalid):
        past_state.state_at(talk, past_state.FARTHEST + 1)
