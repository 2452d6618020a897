"""The state of a conversation in words: the most urgent first, as this reader sees it."""

import pytest

from conversations.conversation.attention import Attention
from conversations.conversation.live_state import ControlHold, LiveStateFacts, OpenRun, states

MARIA = ControlHold("user:maria", 7, 12, "she knows her")
RUNNING = OpenRun("running", "", "Triage", "")
ASKING = OpenRun("waiting", "approval", "Triage", "")


def words(**facts):
    return [state.words for state in states(LiveStateFacts("user:otto", **facts))]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, ["Idle"]),
        ({"runs": [RUNNING]}, ["Triage is working"]),
        ({"runs": [RUNNING._replace(stop="stop")]}, ["Triage is finishing its turn, then stops"]),
        ({"runs": [OpenRun("waiting", "pause", "Triage", "")]}, ["Triage is paused"]),
        ({"runs": [OpenRun("waiting", "server", "Triage", "")]}, ["Triage is waiting for a server"]),
        ({"runs": [OpenRun("queued", "", "Triage", "")]}, ["Queued"]),
        ({"runs": [ASKING], "need": Attention("approval", 5)}, ["Waiting for approval"]),
        ({"runs": [ASKING], "need": Attention("approval", 5), "can_decide": True}, ["Waiting for you"]),
        ({"paused": MARIA}, ["Paused by maria"]),
        ({"paused": MARIA._replace(by="user:otto")}, ["Paused by you"]),
        ({"owned": MARIA}, ["maria took over"]),
        ({"owned": MARIA._replace(by="user:otto")}, ["You took over"]),
        (
            {"owned": MARIA._replace(by="user:otto"), "need": Attention("reply", 9)},
            ["Waiting for your reply", "You took over"],
        ),
        ({"owned": MARIA, "need": Attention("reply", 9)}, ["maria took over"]),
        ({"need": Attention("message", 9, person="user:otto")}, ["Waiting for your reply"]),
        ({"need": Attention("message", 9, person="user:maria")}, ["Waiting for maria's reply"]),
        ({"runs": [RUNNING], "need": Attention("stuck", 3)}, ["Looks stuck", "Triage is working"]),
        ({"need": Attention("failed", 3)}, ["Failed"]),
        ({"active_agent": "Robot"}, ["Robot is active"]),
        ({"active_agent": "Robot", "need": Attention("approval", 5), "can_decide": True}, ["Waiting for you"]),
        (
            {"owned": MARIA, "paused": MARIA, "runs": [RUNNING._replace(stop="pause")]},
            ["maria took over", "Paused by maria", "Triage is finishing its turn, then pauses"],
        ),
    ],
)
def test_the_most_urgent_goes_first(facts, expected):
    assert words(**facts) == expected


LONG = "Sehr-langer-Name" * 12
CUT = f"{LONG[:39]}…"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"active_agent": LONG}, f"{CUT} is active"),
        ({"runs": [RUNNING._replace(agent=LONG)]}, f"{CUT} is working"),
        ({"runs": [OpenRun("waiting", "pause", LONG, "")]}, f"{CUT} is paused"),
        ({"owned": MARIA._replace(by=f"user:{LONG}")}, f"{CUT} took over"),
        ({"paused": MARIA._replace(by=f"user:{LONG}")}, f"Paused by {CUT}"),
    ],
)
def test_a_long_name_leaves_room_for_what_is_said_of_it(facts, expected):
    assert words(**facts) == [expected]


def test_a_hold_says_since_when_by_which_event_and_why():
    (state,) = states(LiveStateFacts("user:otto", paused=MARIA))

    assert (state.since, state.seq, state.reason) == (7, 12, "she knows her")
