"""Play: the pace, the order, several conversations at once, tokens that add up to the words."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.import_export.pacing import as_tokens, default_wait, split, timed_steps
from conversations.import_export.player import PlayedConversation, play
from conversations.import_export.recording import Moment, message_step, stream


class FakeClock:
    """A clock that a test reads: waiting takes no time."""

    def __init__(self):
        self.time = 100.0

    def now(self):
        return self.time

    def wait_until(self, moment):
        self.time = max(self.time, moment)


def words(text, offset=None, sender="agent:A"):
    return message_step(sender, "user", text, moment=Moment(offset), location="")


def step(kind, offset=None, **fields):
    return stream(kind, Moment(offset), "", **fields)


def waits(steps, *, speed=1.0):
    return [round(beat.wait, 6) for beat in timed_steps(steps, speed=speed, tokens=False)]


def published(*parts):
    """Play conversations given as lists of steps, named a, b, …; answer (seconds since the start, topic, payload)."""
    clock, out = FakeClock(), []
    play(
        [
            PlayedConversation(key, timed_steps(steps, speed=2.0, tokens=False))
            for key, steps in zip("abc", parts, strict=False)
        ],
        lambda topic, payload, bus_id: out.append((clock.time - 100.0, topic, payload)),
        clock=clock,
    )
    return out


def test_recorded_times_give_the_pace():
    steps = [words("x" * 400, 0.0), words("y", 4.0), words("z", 3.0), words("z", 7.5)]

    assert waits(steps) == [0.0, 4.0, 0.0, 4.5]
    assert waits(steps, speed=20) == [0.0, 0.2, 0.0, 0.225]


def test_without_times_longer_words_take_longer():
    assert default_wait(words("x" * 40)) == 1.5
    assert default_wait(words("x" * 4000)) == 8.0
    assert default_wait(step("tool_step", status="start")) == 0.5
    assert default_wait(step("tool_step", status="success")) == 1.0
    assert default_wait(step("log")) == 0.3


def test_conversations_play_side_by_side_each_in_its_order():
    out = published([words("1", 0), words("2", 4), words("3", 8)], [words("1", 0), words("2", 2)])

    assert [(at, topic, payload["content"]) for at, topic, payload in out] == [
        (0.0, "chat:a", "1"),
        (0.0, "chat:b", "1"),
        (1.0, "chat:b", "2"),
        (2.0, "chat:a", "2"),
        (4.0, "chat:a", "3"),
    ]


def test_slow_publishing_delays_and_leaves_nothing_out():
    clock, out = FakeClock(), []

    def publish(topic, payload, bus_id):
        clock.time += 10
        out.append(payload["content"])

    count = play(
        [PlayedConversation("a", timed_steps([words(f"{n}", n) for n in range(5)], speed=1, tokens=False))],
        publish,
        clock=clock,
    )

    assert count == 5
    assert out == ["0", "1", "2", "3", "4"]
    assert clock.time == 150.0


def test_played_messages_say_their_conversation_and_the_time_of_playing():
    ((_, _, payload),) = published(
        [message_step("agent:A", "chat:", "hi", moment=Moment(0, "2020-01-01T00:00:00"), location="")]
    )

    assert payload["conversation_id"] == "a"
    assert payload["recipient"] == "chat:a"
    assert not payload["created_at"].startswith("2020")


@given(st.text(max_size=300), st.integers(1, 50))
def test_tokens_add_up_to_the_words(text, at_most):
    pieces = split(text, at_most=at_most)

    assert "".join(pieces) == text
    assert len(pieces) <= at_most


@given(st.text(min_size=1, max_size=80), st.floats(0, 100))
def test_spoken_message_streams_ends_and_names_its_output(text, wait):
    *tokens, output, envelope = as_tokens(words(text), wait)

    assert "".join(t.step.payload["text"] for t in tokens) == text == output.step.payload["text"]
    assert [t.step.payload["index"] for t in tokens] == list(range(len(tokens)))
    assert envelope.step.payload["metadata"]["output_id"] == output.step.payload["id"]
    assert sum(beat.wait for beat in (*tokens, output, envelope)) == pytest.approx(wait)


@pytest.mark.parametrize(
    "plain",
    [words("hi", sender="user"), step("tool_step"), step("output", text="hi"), words("  ")],
    ids=["a person's", "a tool's", "an output", "blank"],
)
def test_only_words_of_agents_are_streamed(plain):
    assert [beat.step for beat in timed_steps([plain], speed=1, tokens=True)] == [plain]


def test_a_recording_is_read_while_it_plays():
    read = []
    steps = (read.append(n) or words("x", n) for n in itertools.count())
    beat = timed_steps(steps, speed=1, tokens=False)

    next(beat)
    next(beat)

    assert read == [0, 1]
