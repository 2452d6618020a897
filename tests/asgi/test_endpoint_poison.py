"""Poison over HTTP: what anybody's program may send is stored as it is or refused with a reason; neighbours go on."""

import pytest

from tests.support.doors import Caller, encode, message_payload
from tests.support.poison import CASES, TOPIC, Case

# Half a character, escaped: JSON's grammar has it, Unicode does not. The recorder keeps it; this door refuses it, since
# whoever sent it is there to be told.
HALVES = {case.name for case in CASES if case.is_fit and "surrogate" in case.name} - {"a surrogate pair"}


def is_taken(case: Case) -> bool:
    """Return whether this door stores it."""
    return case.is_fit and case.name not in HALVES


def around(case: Case) -> bytes:
    """Write the request of a case: its payload as the bytes they are."""
    return b'{"topic":' + encode(TOPIC) + b',"payload":' + case.payload + b"}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_poison_is_stored_or_refused_with_a_reason(callers: dict[str, Caller], case: Case) -> None:
    answer = callers["admin"].ask("POST", "/api/v1/publish", around(case))

    if is_taken(case):
        assert (answer.status, answer.body.get("conversation_id")) == (201, "poison"), answer
    else:
        assert answer.status in (400, 413), answer
        assert answer.body["error"]["message"]


def test_neighbours_of_poison_are_stored_in_order(callers: dict[str, Caller]) -> None:
    bad = [case for case in CASES if b"\n" not in case.payload]
    lines: list[bytes] = []
    for n, case in enumerate(bad):
        lines += [around(case), encode({"topic": "chat:beside", "payload": message_payload("beside", f"{n}")})]

    items = callers["admin"].lines(*lines).body["items"]

    assert [item.get("seq") for item in items[1::2]] == list(range(1, len(bad) + 1))
    assert [
        case.name for case, item in zip(bad, items[::2], strict=True) if ("seq" in item) is not is_taken(case)
    ] == []
