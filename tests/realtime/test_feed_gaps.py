"""What a feed writes to a reader follows what it wrote before."""

from conversations.realtime import frames
from conversations.realtime.feed import Feed
from conversations.realtime.send_gate import SendGate


class Reader:
    """A subscriber that takes whatever it is given."""

    def __init__(self) -> None:
        self.is_up_to_date, self.last, self.written = True, 0, 0

    def write(self, _: bytes) -> bool:
        """Take a frame."""
        self.written += 1
        return True

    def wake(self) -> None:
        """Have to read what is missing."""
        self.is_up_to_date = False

    def say_moved(self, to: str) -> None:
        """Ignore it."""


def test_a_frame_behind_a_gap_is_not_written_but_wakes_the_reader():
    feed, reader = Feed("c", "data", SendGate()), Reader()
    feed.subscribers.add(reader)

    def push(seq: int) -> None:
        feed.push(frames.events(feed.topic, "e", [(seq, f'"{seq}"')]))

    push(1)
    assert (reader.last, reader.written, reader.is_up_to_date) == (1, 1, True)
    push(3)
    push(4)

    assert (reader.last, reader.written, reader.is_up_to_date) == (1, 1, False)
    assert feed.after(1) is None
