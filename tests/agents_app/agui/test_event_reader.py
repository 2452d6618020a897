"""One event of a remote agent: read, passed over, or the end of its run."""

import json

import pytest

from agents_app.agui.event_reader import NEEDED, event_of
from agents_app.agui.http_stream import RemoteFailed


@pytest.mark.parametrize("prefix", [*NEEDED, "LATER_"])
def test_a_type_of_a_later_version_is_passed_over(prefix: str) -> None:
    assert event_of(json.dumps({"type": f"{prefix}PROGRESS", "percent": 50}).encode()) is None


def test_a_wrong_event_ends_the_run_if_the_rest_cannot_be_read_without_it() -> None:
    with pytest.raises(RemoteFailed, match="invalid TEXT_MESSAGE_CONTENT event"):
        event_of(b'{"type": "TEXT_MESSAGE_CONTENT"}')

    assert event_of(b'{"type": "CUSTOM"}') is None


@pytest.mark.parametrize("data", [b"no JSON", b"[]", b'{"type": 1}', b"[" * 5000 + b"]" * 5000])
def test_what_is_no_event_ends_the_run(data: bytes) -> None:
    with pytest.raises(RemoteFailed):
        event_of(data)
