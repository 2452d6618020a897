"""What the responses door follows comes in order and once, whatever rings, reads and delays there are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.asgi.responses.follow_events import Follower
from conversations.events.log.records import Stored

LENGTH = 30


def event(seq):
    return Stored("c", seq, "token", 0, "system", None, None, None, "{}")


def read(follower, upto):
    """Read the record as far as it goes, as `Followers.next` does."""
    events = [event(seq) for seq in range(follower.last + 1, upto + 1)]
    if events:
        follower.last = events[-1].seq
    return events


@pytest.mark.slow
@given(st.data())
def test_every_event_comes_once_and_in_order(data):
    follower, seen, committed = Follower("c", 0), [], 0
    while committed < LENGTH:
        step = data.draw(st.sampled_from(["ring", "lose", "late", "take", "read"]))
        if step in ("ring", "lose", "late"):
            first, committed = committed + 1, min(LENGTH, committed + data.draw(st.integers(1, 4)))
            some = [event(seq) for seq in range(first, committed + 1)]
            if step == "ring":
                follower.offer(some)
            elif step == "late":  # a read overtakes the ring
                seen += [event_.seq for event_ in read(follower, committed)]
                follower.offer(some)
        elif step == "take":
            seen += [event_.seq for event_ in follower.take()]
        else:
            seen += [event_.seq for event_ in read(follower, committed)]
    follower.advance(LENGTH)
    while follower.last < LENGTH:
        taken = follower.take()
        assert taken or follower.is_behind
        seen += [event_.seq for event_ in taken or read(follower, LENGTH)]

    assert seen == list(range(1, LENGTH + 1))
    assert follower.take() == []
