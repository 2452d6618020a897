"""Four eyes in a fork: the first run there is given the copied history, so whoever wrote what nobody has answered in it
is behind that run, too."""

import pytest

from conversations.access.accounts import tokens
from conversations.conversation import control, fork, post_message
from conversations.core.errors import NotAllowed
from conversations.models import Conversation, Run, Token
from conversations.runs import claims
from conversations.runs.approvals import decide, pending_counts
from tests.support import held_run, teamwork

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def four_eyes(settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"four_eyes": True})
    teamwork.team()


def say(by, key: str, text: str, to: str = "agent:Dialogue") -> None:
    post_message.post(by, key, recipient=to, content=text, client_id=text)


def answer(key: str, ended: str = "run.done") -> None:
    facts = {"event": ended} if ended == "run.done" else {"event": ended, "reason": "error", "error": "down"}
    held_run.finish(teamwork.claim(key), facts)


def interject(by, key: str) -> None:
    """Say something to nobody, while the conversation is taken over."""
    control.take_over(by, key)
    say(by, key, "Also pay account 7.", to=f"chat:{key}")
    control.hand_back(by, key)


def forked(by, key: str) -> str:
    return fork.fork(by, key, Conversation.objects.get(key=key).head_seq).conversation


def ask(key: str) -> str:
    """Have somebody else continue there, and suspend that run with a request."""
    facts = {"event": "approval.requested", "approval_id": key, "tool_call": key, **teamwork.ASKED}
    claims.suspend(teamwork.claim(key), "approval", facts, **teamwork.SEALED)
    return key


def excluded(approval: str) -> set[str]:
    return set(pending_counts.excluded_approvers().get(approval, ()))


def test_words_that_no_run_answered_before_the_fork_stay_their_authors(people):
    say(people["operator"], "c", "Look.")
    answer("c")
    interject(people["admin"], "c")
    copy = forked(people["admin"], "c")
    say(people["operator"], copy, "Please go on.")
    ask(copy)

    with pytest.raises(NotAllowed, match="four eyes"):
        decide.decide(people["admin"], copy, "approve")

    assert excluded(copy) == {"user:ada", "user:otto"}


def test_words_answered_before_the_fork_bar_nobody_in_it(people):
    say(people["admin"], "c", "Look.")
    answer("c")
    copy = forked(people["admin"], "c")
    say(people["operator"], copy, "Please go on.")

    assert excluded(ask(copy)) == {"user:otto"}


def test_words_answered_in_the_fork_bar_nobody_after_it(people):
    say(people["operator"], "c", "Look.")
    answer("c")
    interject(people["admin"], "c")
    copy = forked(people["admin"], "c")
    say(people["operator"], copy, "Please go on.")
    answer(copy)
    say(people["operator"], copy, "And now?")

    assert excluded(ask(copy)) == {"user:otto"}


def test_words_of_a_token_whose_run_failed_before_the_fork_are_its_makers(people):
    tokens.make_token(people["admin"], "desk", "operator")
    say(Token.objects.get(), "c", "Pay account 7.")
    answer("c", "run.failed")
    copy = forked(forked_by := people["operator"], forked(people["operator"], "c"))
    say(forked_by, copy, "Please go on.")

    assert excluded(ask(copy)) == {"token:desk", "user:ada", "user:otto"}


def test_a_run_inside_a_call_answers_nobodys_words(people):
    say(people["operator"], "c", "Look.")
    interject(people["admin"], "c")
    answer("c")
    Run.objects.update(parent_call="call")
    copy = forked(people["operator"], "c")
    say(people["operator"], copy, "Please go on.")

    assert excluded(ask(copy)) == {"user:ada", "user:otto"}
