"""Hostile content through the pages of calls: no element and no attribute is there that tame content does not bring."""

import json
import re
from html.parser import HTMLParser

import pytest

from conversations.core import principals
from conversations.events import log
from conversations.models import Agent, ToolCall
from conversations.tool_calls.listing.export import EXPORT
from conversations.tool_calls.listing.filters import CallFilters
from tests.support import listed
from tests.support.cast import cast, client_of
from tests.support.hostile import payloads
from tests.support.replay_desk import Desk
from tests.support.tiers import rounds
from tests.support.unchecked import from_text, unchecked

pytestmark = pytest.mark.django_db(transaction=True)
TAME = (
    "word", "plain words", "other words\nof two lines, longer than what a form shows in one line of its own, by far",
    '{"a": [1, null, true, {"b": "c"}], "d": {}}', "\u202e\x1b[31mred\x1b[0m\u200b", "x" * 9000,
)  # fmt: skip


class Vocabulary(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, html):
        super().__init__()
        self.noted = set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            is_address = name in ("href", "src", "action", "formaction")
            self.noted.add((tag, name, re.split("[/?]", value or "")[0] if is_address else ""))
        self.noted.add((tag, "", ""))


def pair(text, number):
    """Two observed calls that say the text in every place; the second fails."""
    step = {"event": "tool_step", "agent": text, "name": text, "namespace": text, "lookup_key": text, "origin": text}
    step |= {"qualified_name": text, "mcp_server": text, "parent_call": text, "replay_of": text, "effect": text}
    key, robot, events = f"h{number}", principals.token_principal("robot"), []
    for n, end in enumerate(({"status": "success", "output": {text: [text]}}, {"status": "error", "error": text})):
        step["tool_call_id"] = f"{text}{n}"
        start = {"status": "start", "args": {text: text}, "args_raw": text}
        events += [unchecked(key, step | more, robot) for more in (start, end)]
    log.append(events)
    return list(ToolCall.objects.filter(conversation__key=key).values_list("id", flat=True))


def pages(client, text, number):
    """The vocabulary of all pages that show it."""
    left, other = pair(text, number)
    addresses = set()
    for address in (f"/calls/{left}/", f"/calls/{other}/?part=outcome", f"/calls/compare/?a={left}&b={other}"):
        answer = client.get(address)
        assert answer.status_code == 200, (address, text)
        addresses |= Vocabulary(answer.content.decode()).noted
    return addresses


@pytest.mark.slow
@pytest.mark.any_database
def test_observed_calls_that_say_hostile_things_bring_nothing_of_theirs_into_a_page():
    viewer = client_of(cast()["viewer"])
    tame = set().union(*(pages(viewer, text, f"t{n}") for n, text in enumerate(TAME)))

    for number, text in enumerate(payloads(rounds(8, 20))):
        assert pages(viewer, text, number) <= tame, text


def test_what_the_eye_cannot_see_is_no_title_and_is_not_offered():
    vera = client_of(cast()["viewer"])
    for number in range(12):
        (call, _) = pair(f"\u202eevil\x1b[31m{number}", number)

    page, calls = vera.get(f"/calls/{call}/").content.decode(), vera.get("/calls/").content.decode()

    assert not {"\u202e", "\x1b"} & set(page.partition("</title>")[0])
    assert 'datalist id="known-tool"' in calls
    assert not re.findall(r'<option value="[^"]*\x1b', calls)


ODD = (
    '{"n":1e999,"is":"there"}',
    '{"n":-1e400,"is":"there"}',
    f'{{"n":{"9" * 400},"is":"there"}}',
    '{"n":"\\ud800","is":"there"}',
)


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd[:12])
def test_what_no_number_or_text_of_ours_holds_hides_nothing_of_a_call(odd):
    vera = client_of(cast()["viewer"])
    step = '"event":"tool_step","name":"look","agent":"A","tool_call_id":"c","conversation_id":"odd"'
    for more in (f'"status":"start","args":{odd}', f'"status":"success","output":{odd},"duration_ms":{"9" * 400}'):
        log.append([from_text("stream:odd", f"{{{step},{more}}}", principals.token_principal("robot"))])
    (call,) = ToolCall.objects.values_list("id", flat=True)

    answer_text = vera.get(f"/api/v1/tool-calls/{call}").content.decode()
    page = vera.get(f"/calls/{call}/")

    item = json.loads(answer_text, parse_constant=pytest.fail)
    assert (item["arguments"]["is"], item["output"]["is"]) == ("there", "there")
    assert page.status_code == 200
    assert page.content.decode().count("there") > 3
    for form in ("csv", "jsonl"):
        exported = listed.exported(EXPORT, CallFilters(), form)
        assert "there" in exported
        assert form == "csv" or json.loads(exported, parse_constant=pytest.fail)


@pytest.mark.thorough
def test_a_form_that_is_filled_with_hostile_things_brings_nothing_of_theirs(tmp_path):
    desk, ada = Desk(tmp_path), client_of(cast()["admin"])
    old = desk.recorded("look")["look"]
    Agent.objects.update(served_until=1 << 62)

    def vocabulary(text):
        addresses = set()
        for posted in ({"do": "dry", "arg.street": text}, {"do": "dry-raw", "raw": json.dumps({"street": text})}):
            answer = ada.post(f"/calls/{old.id}/replays/", posted | {"reason": text, "tool": text})
            addresses |= Vocabulary(answer.content.decode()).noted
        return addresses

    tame = set().union(*map(vocabulary, TAME))
    for text in payloads(12):
        assert vocabulary(text) <= tame, text
