"""Tool steps are read in one go: their raw parts stay the bytes that came."""

import pytest

from conversations import envelopes, log, principals


@pytest.mark.parametrize("raw", [b'{"n": 1.0}', b"[ ]", b'"text"', b"0", b"false"])
def test_raw_parts_are_the_bytes_that_came(raw):
    said = envelopes.read(b'{"event": "tool_step", "args": %s, "output": %s}' % (raw, raw))

    assert bytes(said.args) == bytes(said.output) == raw


def test_raw_parts_that_are_absent_or_null_are_none():
    said = envelopes.read(b'{"event": "tool_step", "args": null}')

    assert (said.args, said.result_summary, said.output, said.error) == (None, None, None, None)


def test_a_tool_step_of_ours_can_be_written():
    event = log.of_ours("x", {"event": "tool_step", "args": {"n": 1}, "status": "start"}, principals.SYSTEM)

    assert bytes(event.said.args) == b'{"n":1}'
