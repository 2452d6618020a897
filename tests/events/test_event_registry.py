"""Everything about an event type is declared in one place: each is complete, and a new one needs that place alone."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from django.template import engines
from jinja2 import ChoiceLoader, DictLoader
from pydantic import Field

from conversations.core import principals
from conversations.events import log, registry
from conversations.events.event_type import PEOPLE, TYPES, Lane, Row, Search, event_type
from conversations.events.types.base import BaseEvent
from conversations.models import Conversation
from conversations.rendering import event_rows
from conversations.rendering.event_renderer import EventRenderer
from conversations.rendering.lane_cards import LaneRenderer, ends
from tests.support.drawn_html import Seen
from tests.support.event_types import EXAMPLES
from tests.support.searching import catch_up, search_all
from tests.support.unchecked import unchecked

ROOT = Path(__file__).resolve().parents[2]
MARIA, ROBOT = principals.user_principal("maria"), principals.token_principal("robot")

TEMPLATE = """{% from "events/parts.html" import row %}
{% macro draw(e, fields, extra) %}
{% call row(e) %}<b>{{ fields.place }}</b><code>{{ fields.height }}</code>{{ extra or "" }}{% endcall %}
{% endmacro %}"""


@pytest.fixture
def flood(monkeypatch):
    """Declare a type as a module of `types/` does, with a template of its own."""
    before = dict(TYPES)
    environment = engines["jinja2"].env
    loader = ChoiceLoader([DictLoader({"events/flood_warned.html": TEMPLATE}), environment.loader])
    monkeypatch.setattr(environment, "loader", loader)

    def fold(changes, head, facts):
        head.title = json.loads(facts.body)["place"]

    @event_type(
        Row(template="flood_warned"), fold=fold, authority=PEOPLE, level="chat", state="waiting",
        lane=Lane("warned of a flood at", "place"), search=Search(label="warning", is_error=True),
    )  # fmt: skip
    class FloodWarned(BaseEvent):
        """A river rises."""

        event: Literal["flood.warned"] = "flood.warned"
        place: str
        height: int
        gauges: list[dict[str, Any]] = []

    yield FloodWarned
    TYPES.clear()
    TYPES.update(before)


WARNING = {"event": "flood.warned", "place": "Mill <Street>", "height": 4, "gauges": [{"at": "lock"}], "river": "Elm"}


def store(principal=MARIA):
    (stored,) = log.append([unchecked("desk", WARNING, principal)])
    return stored


@pytest.mark.django_db
def test_a_declared_type_is_folded_for_those_who_may_say_it(flood):
    store(ROBOT)
    after_a_claim = Conversation.objects.values_list("title", flat=True).get()
    store()

    assert after_a_claim == ""
    assert Conversation.objects.values_list("title", flat=True).get() == "Mill <Street>"


@pytest.mark.django_db
@pytest.mark.parametrize(("principal", "state"), [(MARIA, "waiting"), (ROBOT, "")])
def test_a_declared_type_is_drawn_by_its_template_with_its_level_and_state(flood, principal, state):
    html = str(EventRenderer("desk").draw(store(principal)).html)

    assert "<b>Mill &lt;Street&gt;</b><code>4</code>" in html
    assert f'data-level="chat" data-state="{state}"' in html
    assert [word in html for word in ("river", "gauges", "lock", "height")] == [True, True, True, False]
    assert Seen(html).faults == []


@pytest.mark.django_db
@pytest.mark.parametrize(("principal", "state"), [(MARIA, "waiting"), (ROBOT, "")])
def test_a_declared_type_has_its_card_in_the_lanes(flood, principal, state):
    html = str(LaneRenderer("desk").draw(store(principal)).html)

    assert "warned of a flood at" in html
    assert "Mill &lt;Street&gt;" in html
    assert f'data-level="chat" data-state="{state}"' in html
    assert ("from outside" in html) is (principal is ROBOT)


@pytest.mark.django_db
def test_a_declared_type_is_searched_as_it_says(flood):
    store()
    catch_up()

    assert search_all("mill street") == [("desk", 1)]
    assert search_all("elm", kind="error") == [("desk", 1)]
    TYPES["flood.warned"] = _replaced(search=Search(is_indexed=False))
    store()
    catch_up()
    assert search_all("mill street") == []  # what was stored before follows the new declaration


def test_a_declared_type_is_ours_alone_and_in_the_union(flood):
    assert registry.is_reserved("flood.warned")
    assert registry.is_reserved("flood.over")
    assert not registry.is_reserved("town_hall.stage")
    assert flood in registry.schemas()
    with pytest.raises(ValueError, match="two event types"):
        event_type(Row(template="log"))(flood)


def test_a_limit_that_is_not_checked_when_written_ends_the_start():
    with pytest.raises(ValueError, match=r"^Scored\.score: .* is not checked; say the limit by Literal$"):

        @event_type(Row(template="log"))
        class Scored(BaseEvent):
            event: Literal["flood.scored"] = "flood.scored"
            score: int = Field(ge=1, le=5)


STOPPING = {"event": "run.stopping", "run_id": "r", "agent": "Triage", "how": "stop"}
DECIDED = {"event": "approval.decided", "run_id": "r", "agent": "Triage", "approval_id": "a", "tool_call": "t"}
REPLAYED = {"event": "replay.requested", "run_id": "r", "agent": "Triage", "name": "look", "replay_of": "t"}


@pytest.mark.django_db
@pytest.mark.parametrize("body", [STOPPING, DECIDED | {"decision": "approve"}, REPLAYED], ids=lambda it: it["event"])
def test_the_author_of_a_declared_type_is_the_principal_though_it_names_an_agent(body):
    """So of what a person says about an agent: in lanes and search it is that person's; a claim is the claimant's."""
    (ours,) = log.append([unchecked("desk", body, MARIA)])
    (claim,) = log.append([unchecked("desk", body, ROBOT)])

    assert [event_rows.author(event_rows.parse_event(stored)) for stored in (ours, claim)] == [
        str(MARIA),
        "agent:Triage",
    ]
    assert [ends(stored, None)[0].title for stored in (ours, claim)] == ["maria", "Triage"]


@pytest.mark.django_db
@pytest.mark.parametrize(("principal", "is_claim"), [(MARIA, False), (ROBOT, True)])
def test_a_claim_drawn_by_a_template_says_that_it_is_one(principal, is_claim):
    (stored,) = log.append(
        [unchecked("desk", {"event": "event.redacted", "reason": "asked to", "events": []}, principal)]
    )

    assert (">from outside<" in str(EventRenderer("desk").draw(stored).html)) is is_claim


UNFIT = {
    "a field that is not declared": {**WARNING},
    "one that is missing": {"event": "flood.warned", "place": "Mill Street"},
    "one of another type": {"event": "flood.warned", "place": "Mill Street", "height": "high"},
}


@pytest.mark.parametrize("why", UNFIT)
def test_what_we_write_of_a_declared_type_fits_its_schema(flood, why):
    written = log.from_internal("desk", {"event": "flood.warned", "place": "Mill Street", "height": 4}, MARIA)

    assert json.loads(written.body)["height"] == 4
    with pytest.raises(ValueError, match=r"^flood\.warned: "):
        log.from_internal("desk", UNFIT[why], MARIA)


@pytest.mark.django_db
def test_a_kind_that_nobody_declared_is_stored_and_drawn_as_it_came():
    html = str(EventRenderer("desk").draw(store()).html)

    assert Conversation.objects.values_list("title", flat=True).get() == ""
    assert "unknown event type, shown as received" in html


def test_a_family_that_the_search_page_offers_has_a_type():
    offered = [family for family, words in registry.FAMILIES.items() if words]

    assert [family for family in offered if not any(name.startswith(f"{family}.") for name in registry.names())] == []


@pytest.mark.parametrize("name", TYPES)
def test_every_type_is_complete(name):
    known = TYPES[name]

    assert known.schema.__doc__
    assert known.schema.kind() == (name if not name.startswith(".") else "")
    assert known.lane is not None or "call_step" in known.traits
    assert bool(known.row.template) is not bool(known.row.view)
    assert known.row.view in event_rows.VIEWS if known.row.view else _has_template(known.row.template)
    assert name == ".stage" or EXAMPLES.get(name), f"add a sample of {name} to tests/support/event_types.py"


@pytest.mark.parametrize("name", registry.names())
def test_a_sample_of_every_type_fits_its_schema_and_no_other_field_does(name):
    sample = next(payload for payload in samples(name) if fits(name, payload))

    assert not fits(name, sample | {"never_heard_of": 1})


# Steps are drawn in the block of their call, tokens in the turn that they are of.
@pytest.mark.parametrize("name", [n for n in TYPES if n != "token" and "call_step" not in TYPES[n].traits])
def test_a_sample_of_every_type_is_drawn_as_its_own(name):
    payload = samples(name)[0] if name in EXAMPLES else {"event": "town_hall.stage", "stage": "filed"}
    kind = payload.get("event") or payload["type"]
    stored = log.Stored(f"c-{name}", 1, kind, 1_795_298_527_000_000, "system", "r", 1, None, json.dumps(payload))

    html = str(EventRenderer(stored.conversation).draw(stored).html)

    assert "unknown event type, shown as received" not in html
    assert f'data-kind="{kind}"' in html


def samples(name):
    return [payload for payload in EXAMPLES[name] if name in (payload.get("event"), payload.get("type"))]


def fits(name, payload):
    try:
        TYPES[name].check(payload)
        TYPES[name].schema.model_validate(payload | {"conversation_id": "c"}, extra="forbid")
    except ValueError:
        return False
    return True


def _replaced(**more):
    return replace(TYPES["flood.warned"], **more)


def _has_template(name):
    return (ROOT / "templates" / "events" / f"{name}.html").is_file()
