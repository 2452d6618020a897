"""A trace whose conversation is named by a later span is one conversation, as if it had been named first."""

import pytest
from django.urls import reverse

from conversations.asgi import telemetry
from conversations.core import principals
from conversations.core.errors import Unavailable
from conversations.events import log
from conversations.evidence import tree
from conversations.models import Conversation, Event, ToolCall, Turn
from conversations.telemetry import intake, late_names
from conversations.telemetry.otlp_protobuf import traces as decoded
from tests.support.cast import cast, client_of
from tests.support.doors import Caller, events_of
from tests.support.otlp import conversations_of, counts_of, export, traces
from tests.support.unchecked import from_text
from tests.support.verified import verify_events
from tests.telemetry.test_genai import weather

TRACE = f"{77:032x}"
COLLECTOR = principals.token_principal("collector")


def unnamed(spans):
    """Take the conversation's id from all spans but the agent's, which is the last."""
    for each in spans[:3]:
        attributes = [pair for pair in each.attributes if pair.key != "gen_ai.conversation.id"]
        del each.attributes[:]
        each.attributes.extend(attributes)
    return spans


def told_in(server, key):
    """Return what a conversation tells, without the order."""
    bodies = [body for _, _, body in events_of(server, key)]
    return sorted(sorted((name, str(value)) for name, value in body.items()) for body in bodies)


@pytest.mark.parametrize("order", [1, -1], ids=["name-first", "name-last"])
def test_each_order_of_names_makes_the_same_record(server, caller, order):
    key, trace = f"late-{order}", 430 + order
    spans = unnamed(weather(key, trace=trace))

    for each in [spans[3], *spans[:3]][::order]:
        export(caller, traces(each))
        export(caller, traces(each))
    export(caller, traces(*spans))

    assert {key, f"{trace:032x}"} & conversations_of(server) == {key}
    assert counts_of(server, key)[1:] == (2, {"get_weather": 1}, 0, 194, 104)
    assert len(told_in(server, key)) == 8


def test_the_address_of_a_trace_that_moved_leads_on(server, caller):
    spans = unnamed(weather("late-address", trace=433))
    for each in spans:
        export(caller, traces(each))

    last = events_of(server, f"{433:032x}")[-1]

    assert (last[1], last[2]["to"]) == ("conversation.moved", "late-address")
    assert caller.get(f"/api/v1/conversations/{433:032x}").status == 404
    assert caller.get("/api/v1/conversations/late-address").status == 200


def test_an_agents_token_moves_nothing_to_where_it_may_not_tell(server, callers: dict[str, Caller]):
    spans = unnamed(weather("late-agents", trace=434))
    export(callers["admin"], traces(*spans[:3]))

    export(callers["desk"], traces(spans[3]))

    assert {"late-agents", f"{434:032x}"} & conversations_of(server) == {f"{434:032x}"}


def store(memory, *spans):
    """Store decoded spans as the door does, without it; return the traces that were named late."""
    steps, _, late = intake.read(spans, memory)
    log.append(
        [
            from_text(f"stream:{step.conversation}", telemetry._encoded(step).decode(), COLLECTOR, step.id)
            for step in steps
        ]
    )
    return late


@pytest.fixture
def trace():
    """A trace of which three spans are stored without a name."""
    spans = unnamed(weather("named", trace=77))
    store(intake.Memory(), *decoded(traces(*spans[:3])).spans)
    return spans


@pytest.mark.django_db(transaction=True)
class TestRecord:
    """What is stored of a trace that is named late."""

    def test_a_restart_in_between_forgets_nothing(self, trace):
        memory, key = intake.Memory(), TRACE
        assert late_names.places_of(memory.unnamed("", decoded(traces(*trace)).spans), str(COLLECTOR)) == {
            key: (key, "", True)
        }
        memory.trace("", key).is_under_own = True

        late = store(memory, *decoded(traces(trace[3])).spans)
        moved = late_names.move(*late[key], COLLECTOR)

        assert (late, moved) == ({key: (key, "named")}, True)
        assert [row.key for row in Conversation.objects.visible()] == ["named"]
        assert late_names.places_of([key], str(COLLECTOR)) == {key: (key, "named", False)}
        assert verify_events().ok
        hidden = Conversation.objects.get(key=key)
        assert hidden.pk in {head.row for head in tree.moved()}, "what moved is signed to its end"

    def test_calls_and_tokens_are_counted_where_they_are_seen(self, trace):
        late_names.move(TRACE, "named", COLLECTOR)

        seen = {"conversation__is_staged": False}
        assert ToolCall.objects.filter(**seen).count() == 1
        assert sum(Turn.objects.filter(**seen).values_list("input_tokens", flat=True)) == 194
        for body in Event.objects.filter(conversation__key="named").order_by("seq").values_list("body", flat=True):
            assert body.count(TRACE) == 1, "as the trace of each event, and nowhere else"

    def test_where_others_wrote_it_stays(self, trace):
        by = principals.token_principal("another")
        spoken = '{"type": "message", "id": "x", "sender": "user:maria", "content": "What is this?"}'
        log.append([from_text(f"stream:{77:032x}", spoken, by, "x")])

        assert not late_names.move(TRACE, "named", COLLECTOR)
        assert [row.key for row in Conversation.objects.visible()] == [TRACE]

    def test_where_others_write_before_it_is_locked_it_stays(self, trace, monkeypatch):
        by, lock = principals.token_principal("another"), late_names._lock
        spoken = '{"type": "message", "id": "x", "sender": "user:maria", "content": "What is this?"}'

        def beside(*keys):
            log.append([from_text(f"stream:{TRACE}", spoken, by, "x")])
            lock(*keys)

        monkeypatch.setattr(late_names, "_lock", beside)

        assert not late_names.move(TRACE, "named", COLLECTOR)
        assert [row.key for row in Conversation.objects.visible()] == [TRACE]

    def test_what_was_cut_off_is_moved_again(self, trace, monkeypatch):
        def away(*keys):
            if Conversation.objects.filter(key="named").exists():
                raise Unavailable("away")

        count = Event.objects.count()
        with monkeypatch.context() as patched:
            patched.setattr(late_names, "PAGE", 2)
            patched.setattr(late_names, "_lock", away)
            with pytest.raises(Unavailable):
                late_names.move(TRACE, "named", COLLECTOR)
        assert Event.objects.filter(conversation__key="named").count() == 2 < count

        assert late_names.move(TRACE, "named", COLLECTOR)
        assert Event.objects.filter(conversation__key="named").count() == count
        assert [row.key for row in Conversation.objects.visible()] == ["named"]

    def test_a_page_of_the_trace_leads_to_the_conversation(self, trace):
        late_names.move(TRACE, "named", COLLECTOR)

        answer = client_of(cast()["viewer"]).get(reverse("conversation", args=[TRACE]))

        assert (answer.status_code, answer.url) == (302, reverse("conversation", args=["named"]))
