"""State rows are a fold of events: rebuild changes nothing, for every kind."""

import itertools
import random

import pytest

from conversations.core import principals
from conversations.events import log, registry
from conversations.events.log.rebuild import rebuild
from conversations.models import Annotation, Approval, Conversation, Participant, Response, Run, ToolCall, Turn
from tests.support.event_types import EXAMPLES
from tests.support.grids import for_each
from tests.support.tiers import sampled
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db
WHO = [
    principals.SYSTEM,
    principals.token_principal("robot"),
    principals.import_principal("file"),
    principals.user_principal("maria"),
]


def rows():
    """Everything the fold owns."""
    return [
        list(model.objects.order_by(*order).values())
        for model, order in [
            (Conversation, ["id"]),
            (Participant, ["conversation_id", "name"]),
            (ToolCall, ["id"]),
            (Run, ["id"]),
            (Approval, ["id"]),
            (Response, ["id"]),
            (Turn, ["conversation_id", "seq"]),
            (Annotation, ["conversation_id", "seq"]),
        ]
    ]


def told_once(payload, key):
    """A payload without the ids that exist once; a run belongs to one conversation."""
    fields = {k: v for k, v in payload.items() if k not in ("id", "tool_call", "approval_id")}
    return fields | {name: f"{fields[name]}-{key}" for name in ("run_id", "response_id") if name in fields}


def test_every_kind_of_the_union_has_an_example():
    assert set(registry.names()) <= set(EXAMPLES)


@pytest.mark.slow
def test_rebuild_changes_nothing_for_any_kind_whoever_says_it():
    for_each(sampled(itertools.product(sorted(EXAMPLES), WHO), one_of=3), assert_rebuild_changes_nothing)


def assert_rebuild_changes_nothing(kind, principal):
    log.append([unchecked("a", payload, principal) for payload in EXAMPLES[kind]])
    before = rows()

    list(rebuild())

    assert rows() == before
    assert Conversation.objects.get().head_seq == len(EXAMPLES[kind])


def test_rebuild_changes_nothing_for_a_shuffle_of_everything():
    everything = list(itertools.chain.from_iterable(EXAMPLES.values()))
    for seed in range(20):
        dice = random.Random(seed)
        chosen = [
            unchecked(key, told_once(p, key), dice.choice(WHO))
            for p in dice.choices(everything, k=60)
            for key in [f"c{dice.randrange(3)}"]
        ]
        for some in (chosen[:1], chosen[1:10], chosen[10:]):
            log.append(some)
    before = rows()

    list(rebuild())

    assert rows() == before


def step(call_id, **more):
    return {"event": "tool_step", "name": "look_up", "tool_call_id": call_id, "agent": "agent:A", **more}


@pytest.mark.slow
def test_of_any_number_of_open_calls_a_result_ends_its_own():
    robot = principals.token_principal("robot")
    started = [*["same"] * 5_050, "other", None]
    log.append([unchecked("a", step(call_id, status="start"), robot) for call_id in started])

    log.append([unchecked("a", step(call_id, status="success"), robot) for call_id in ("same", "other", None, "same")])

    ended = ToolCall.objects.filter(finished_seq__isnull=False).order_by("finished_seq")
    assert list(ended.values_list("called_seq", flat=True)) == [1, 5_051, 5_052, 2]
    before = rows()
    list(rebuild())
    assert rows() == before


def test_a_call_of_ours_is_ended_by_its_own_id_though_an_older_one_has_its_call_id():
    started = [step("same", status="start", run_id="r", tool_call=name) for name in ("first", "second")]
    log.append([unchecked("a", payload, principals.SYSTEM) for payload in started])

    log.append([unchecked("a", step("same", status="success", run_id="r", tool_call="second"))])

    assert list(ToolCall.objects.filter(finished_seq=3).values_list("id", flat=True)) == ["second"]
    before = rows()
    list(rebuild())
    assert rows() == before
