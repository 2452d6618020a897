"""Ids in addresses: short, readable, and read back whichever way a client wrote them."""

import base64
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.core.url_converters import MAX_SEGMENT, from_url, segment_of, to_url, with_slashes
from tests.support.doors import Caller

ORDINARY = {
    "chat:sales:42": "chat:sales:42",
    "team 7": "team%207",
    "a@b.c": "a@b.c",
    "café": "caf%C3%A9",
    "C1/5": "~QzEvNQ",
    "a.b-c_d": "a.b-c_d",
    "..": "~Li4",
    "~tilde": "~fnRpbGRl",
    "100%": "~MTAwJQ",
}


def encoded(key):
    """Write it as clients do that know nothing of ours: every reserved character escaped."""
    return quote(key, safe="")


@pytest.mark.parametrize(("key", "segment"), ORDINARY.items())
def test_links_are_short_and_readable(key, segment):
    assert to_url(key) == segment


def decoded_path(path):
    """Return the last segment of a path as the pages see it, from its bytes as they came."""
    return with_slashes({"path": unquote(path), "raw_path": path.encode()})["path"]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200))
def test_every_id_is_read_back_from_each_of_its_forms(key):
    assert from_url(decoded_path(to_url(key))) == key
    assert len(to_url(key)) <= max(MAX_SEGMENT, 5 + len(key.encode()) * 4 // 3)
    if key not in (".", ".."):
        again = from_url(decoded_path(encoded(key)))
        assert again == key or key.startswith("~")  # an id that looks like the other form is that one


@pytest.mark.parametrize("key", ["chat:sales:42", "team 7", "a@b.c", "café"])
def test_the_form_of_older_links_is_read(key):
    old = "~" + base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")

    assert from_url(old) == key


@pytest.mark.parametrize("segment", ["", ".", "..", "x" * 201])
def test_what_names_nothing_is_refused(segment):
    with pytest.raises(ValueError, match="not an id"):
        from_url(segment)


def test_only_an_encoded_slash_changes_a_path():
    for raw in ("/conversations/team%207/", "/v1/responses", "/conversations/caf%C3%A9/"):
        scope = {"path": "as it was", "raw_path": raw.encode()}
        assert with_slashes(scope) is scope
    assert with_slashes({"path": "", "raw_path": b"/a/C1%2f5/b%20c?x=%2F"})["path"] == "/a/~QzEvNQ/b c"
    assert segment_of("C1/5") == "~QzEvNQ"


@pytest.mark.parametrize("key", [key for key in ORDINARY if key != ".."])
def test_pages_and_api_take_ordinary_ids_percent_encoded(callers: dict[str, Caller], key: str) -> None:
    caller = callers["admin"]
    message = {
        "type": "message",
        "conversation_id": key,
        "sender": "user:x",
        "recipient": f"chat:{key}",
        "content": key,
    }
    assert caller.publish(f"chat:{key}", message).status == 201

    for segment in {encoded(key), to_url(key)}:
        assert caller.get(f"/api/v1/conversations/{segment}").body["conversation_id"] == key
        (event,) = caller.get(f"/api/v1/conversations/{segment}/events").body["items"]
        assert event["seq"] == 1
        assert caller.get(f"/conversations/{segment}/").status == 200
    page = caller.get(f"/api/v1/topics/{encoded(f'stream:{key}')}/messages")
    assert [item["payload"]["content"] for item in page.body["items"]] == [key]


def test_agents_and_tools_have_readable_addresses(callers: dict[str, Caller]) -> None:
    caller = callers["admin"]

    for path in ("/agents/Town%20Hall/Dialogue/", "/agents/~VG93biBIYWxs/Dialogue/"):
        assert caller.get(path).status == 200, path
