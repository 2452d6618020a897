"""AG-UI's routes on a bad day: clients that leave, revoked bearers, many at once, a server that stops."""

import asyncio
import time

import pytest
from ag_ui.core import EventType
from django.utils import timezone

from conversations.access.accounts import tokens
from conversations.core.principals import SYSTEM
from conversations.models import Response, Run, Token
from tests.support import stand_in
from tests.support.agui import agui_open, checked, events_in, input_of, kinds, pieces, text_of
from tests.support.live import until
from tests.support.revocation import LAW, pause_until
from tests.support.tiers import variants

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = 64


@pytest.fixture
def desk(transactional_db):
    with agui_open() as served:
        yield served


async def started(asking, count=3):
    """Wait until something was streamed."""
    return pieces(await asking.writes(count))


def test_a_client_that_leaves_ends_no_run(desk):
    async def leave():
        async with desk.asking(input_of("agui-left", "hold on")) as asking:
            await started(asking)

    desk.run(leave)

    assert desk.context.followers.count == 0
    assert Run.objects.get().status == "running"
    stand_in.RELEASED.set()
    until(lambda: Run.objects.filter(status="done").exists())
    assert Response.objects.get().status == "completed"


def revoke_elsewhere():
    """Revoke the token as another process would that rings nobody."""
    Token.objects.filter(name="asker-operator").update(revoked_at=timezone.now())


def revoke_here():
    """Revoke the token as the page does."""
    tokens.revoke_token(SYSTEM, "asker-operator")


@pytest.mark.parametrize("revoke", variants([revoke_elsewhere, revoke_here]), ids=lambda made: made.__name__)
@pytest.mark.parametrize("is_feed", [False, True], ids=["run", "feed"])
def test_a_second_after_its_bearer_is_revoked_nobody_is_told_more(desk, is_feed, revoke):
    async def follow():
        desk.runtime.socket_registry.start()
        try:
            async with desk.asking(input_of("agui-revoked", "hold on")) as answer:
                await started(answer)
                watched = desk.asking(b"", "/api/v1/agui/conversations/agui-revoked", method="GET")
                async with watched as reading:
                    await started(reading)
                    await asyncio.to_thread(revoke)
                    await asyncio.to_thread(pause_until, time.monotonic() + LAW)
                    stand_in.RELEASED.set()  # from here on there is more to tell
                    return (await (reading if is_feed else answer).answer()).writes
        finally:
            await desk.runtime.socket_registry.stop()

    pieces_ = pieces(desk.run(follow))

    assert (pieces_[-1].type, pieces_[-1].code) == (EventType.RUN_ERROR, "token_revoked")
    assert "on" not in text_of(pieces_).split()


@pytest.mark.slow
def test_many_at_once_are_each_told_their_own(desk, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"responses_per_principal": AT_ONCE})

    async def ask_all():
        async def ask_for(at):
            async with desk.asking(input_of(f"agui-many-{at}", f"number {at}", run=f"front-{at}")) as asking:
                return await asking.answer()

        return await asyncio.gather(*(ask_for(at) for at in range(AT_ONCE)))

    answers = desk.run(ask_all)

    for at, answer in enumerate(answers):
        events = events_in(answer)
        assert (events[0].thread_id, events[-1].run_id) == (f"agui-many-{at}", f"front-{at}")
        assert text_of(events) == f"You said: number {at}"
    assert Run.objects.filter(status="done").count() == AT_ONCE
    assert desk.context.followers.count == 0


def test_one_principal_holds_only_so_many_streams(desk, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"responses_per_principal": 1})

    async def two():
        async with desk.asking(input_of("agui-full", "hold on")) as first:
            await started(first)
            async with desk.asking(input_of("agui-full-2", "hello")) as second:
                refused = await second.answer()
            stand_in.RELEASED.set()
            await first.answer()
            return refused

    refused = desk.run(two)

    assert (refused.status, refused.json["error"]["code"]) == (429, "too_many")


def test_a_server_that_stops_says_so_and_the_run_goes_on(desk):
    async def stop():
        async with desk.asking(input_of("agui-stops", "hold on")) as asking:
            await started(asking)
            asking.stopping.set()
            answer = await asking.answer()
            stand_in.RELEASED.set()
            return answer

    events = events_in(desk.run(stop))

    assert (events[-1].type, events[-1].code) == (EventType.RUN_ERROR, "server_stopping")
    until(lambda: Run.objects.filter(status="done").exists())


def test_a_run_in_which_nothing_happens_is_left_to_itself(desk, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"response_wait_s": 1})

    events = desk.play("agui-late", "hold on")

    assert (events[-1].type, events[-1].code) == (EventType.RUN_ERROR, "still_in_progress")
    assert kinds(checked(events))[0] == "RUN_STARTED"
    assert Run.objects.get().status == "running"
