"""Who looks and who types: over one process and two, who vanishes, who is never told."""

import asyncio
import json

import pytest

from conversations.core import broadcast_sender
from conversations.events import commit_listeners
from conversations.models import Conversation, Event, ReadMarker
from conversations.realtime import presence
from conversations.realtime.presence import Presence
from conversations.realtime.socket_writer import SocketWriter
from tests.support.cast import client_of


class Page:
    """One socket of somebody, as far as presence sees it: what it was sent, newest last."""

    def __init__(self, has_room: bool = True) -> None:
        self.frames: list[dict] = []
        self.has_room = has_room
        self.writer = SocketWriter(self._send, self._write)

    async def _send(self, message) -> None:
        raise AssertionError("a hint never waits")

    def _write(self, data: bytes) -> bool:
        if self.has_room:
            self.frames.append(json.loads(data[data.index(b"{") :]))
        return self.has_room

    @property
    def people(self) -> list[tuple[str, str]]:
        people = self.frames[-1]["people"] if self.frames else []
        return [(person["name"], person["state"]) for person in people]


async def until(condition, within: float = 5.0) -> None:
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110  # a page tells nobody
            await asyncio.sleep(0.005)


def during(work, count: int = 1) -> None:
    """Run `work` with so many processes' presence; what one says the others hear, as by the layer."""

    async def live() -> None:
        started = [Presence() for _ in range(count)]
        for process in started:
            process.start()
        try:
            await work(*started)
        finally:
            await asyncio.gather(*(process.stop() for process in started))

    asyncio.run(live())


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(presence, "COALESCE", 0.01)


def test_people_see_each_other_come_type_and_go():
    async def work(board):
        otto, vera = Page(), Page()
        board.look("flood", "otto", otto.writer)
        await until(lambda: otto.people == [("otto", "looking")])

        seat = board.look("flood", "vera", vera.writer)
        await until(lambda: otto.people == vera.people == [("otto", "looking"), ("vera", "looking")])
        assert otto.frames[-1]["topic"] == "stream:flood"
        assert otto.frames[-1]["people"][0]["letters"] == "OT"
        presence.say("flood", "vera", "typing")
        await until(lambda: ("vera", "typing") in otto.people)
        board.leave(seat)
        await until(lambda: otto.people == [("otto", "looking")])

    during(work)


def test_typing_is_over_without_another_word(monkeypatch):
    monkeypatch.setattr(presence, "TYPING_S", 0.05)

    async def work(board):
        otto = Page()
        board.look("flood", "otto", otto.writer)
        presence.say("flood", "otto", "typing")
        await until(lambda: otto.people == [("otto", "typing")])
        await until(lambda: otto.people == [("otto", "looking")])

    during(work)


def test_two_windows_of_one_person_are_one_person_until_both_are_closed():
    async def work(board):
        otto, vera = Page(), Page()
        seats = [board.look("flood", "otto", otto.writer) for _ in range(2)]
        board.look("flood", "vera", vera.writer)
        presence.say("flood", "otto", "away")
        await until(lambda: vera.people == [("otto", "away"), ("vera", "looking")])
        board.leave(seats[0])
        presence.say("flood", "otto", "looking")
        await until(lambda: vera.people == [("otto", "looking"), ("vera", "looking")])
        board.leave(seats[1])
        await until(lambda: vera.people == [("vera", "looking")])

    during(work)


def test_a_program_is_told_and_not_shown_and_a_word_about_who_is_not_there_changes_nothing():
    async def work(board):
        otto, program = Page(), Page()
        board.look("flood", "otto", otto.writer)
        board.look("flood", "", program.writer)
        presence.say("flood", "nora", "typing")
        presence.say("elsewhere", "otto", "typing")
        await until(lambda: otto.people == program.people == [("otto", "looking")])
        assert len(otto.frames) == 1

    during(work)


def test_who_had_no_room_is_told_again(monkeypatch):
    monkeypatch.setattr(presence, "TELL_EVERY", 0.05)

    async def work(board):
        slow = Page(has_room=False)
        board.look("flood", "otto", slow.writer)
        await asyncio.sleep(0)
        slow.has_room = True
        await until(lambda: slow.people == [("otto", "looking")])

    during(work)


def test_a_crowd_is_cut_and_those_who_type_are_kept():
    async def work(board):
        page = Page()
        for n in range(presence.MAX_PEOPLE + 5):
            board.look("flood", f"p{n:02}", page.writer)
        presence.say("flood", "p24", "typing")
        await until(lambda: ("p24", "typing") in page.people)
        assert len(page.people) == presence.MAX_PEOPLE

    during(work)


class Layer:
    """What a sender would carry: words of one process reach the others."""

    def __init__(self) -> None:
        self.words: list = []

    def say_presence(self, words) -> None:
        self.words += [json.loads(json.dumps([*key, word])) for key, word in words.items()]

    def carry(self, process: str, board: Presence) -> None:
        words, self.words = self.words, []
        board._hear(process, words)


@pytest.fixture
def layer(monkeypatch):
    made = Layer()
    monkeypatch.setattr(broadcast_sender, "sender", lambda: made)
    return made


def test_people_of_another_process_are_seen_and_forgotten_when_it_falls_silent(layer, monkeypatch):
    monkeypatch.setattr(presence, "TELL_EVERY", 0.05)
    monkeypatch.setattr(presence, "FORGET_AFTER", 0.2)

    async def work(board):
        otto = Page()
        board.look("flood", "otto", otto.writer)
        await until(lambda: layer.words)
        assert layer.words[0] == ["here", "flood", [["otto", "looking"]]]
        layer.words.clear()
        board._hear("b", [["here", "flood", [["vera", "typing"]]]])
        await until(lambda: otto.people == [("otto", "looking"), ("vera", "typing")])
        await until(lambda: otto.people == [("otto", "looking")])
        assert layer.words  # it told its own people again, for those who came later

    during(work)


def test_what_makes_no_sense_of_other_processes_is_passed_over(layer):
    async def work(board):
        otto = Page()
        board.look("flood", "otto", otto.writer)
        wrong = [
            7,
            [],
            ["here"],
            ["here", "flood", "x"],
            ["here", "flood", [7, ["a"], ["a", "b", "c"]]],
            ["said", 1, 2, 3],
        ]
        board._hear("b", [*wrong, ["here", "flood", [["vera", "dancing"], ["", "looking"], ["tomas", "looking"]]]])
        board._hear("b", [["here", "nobody looks here", [["vera", "looking"]]]])
        await until(lambda: otto.people == [("otto", "looking"), ("tomas", "looking")])
        assert set(board._others) == {"flood"}

    during(work)


def test_nothing_is_kept_of_who_went(layer):
    async def work(board):
        pages = [Page() for _ in range(3)]
        seats = [board.look(f"c{n}", "otto", page.writer) for n, page in enumerate(pages)]
        presence.say("c1", "otto", "typing")
        board._hear("b", [["here", "c1", [["vera", "looking"]]]])
        await until(lambda: pages[1].people == [("otto", "typing"), ("vera", "looking")])
        for seat in seats:
            board.leave(seat)
        await until(lambda: not board._changed and not board._last_sent)
        assert (board._viewers, board._states, board._others) == ({}, {}, {})
        assert layer.words[-1][0] == "here"

    during(work)


@pytest.mark.django_db
def test_a_page_says_what_its_reader_does_and_nothing_is_recorded(team):
    Conversation.objects.create(key="flood")
    received = []
    stop = commit_listeners.on_presence(lambda process, words: received.extend(words))
    vera, address = client_of(team["viewer"]), "/api/v1/conversations/flood/presence"

    done = vera.post(address, {"state": "typing"}, content_type="application/json")
    wrong = vera.post(address, {"state": "dancing"}, content_type="application/json")
    nowhere = vera.post(address.replace("flood", "none"), {"state": "typing"}, content_type="application/json")
    stop()

    assert (done.status_code, done.json()) == (200, {"conversation_id": "flood", "state": "typing"})
    assert (wrong.status_code, nowhere.status_code) == (400, 404)
    assert received == [("said", "flood", "vera", "typing")]
    assert (Event.objects.count(), ReadMarker.objects.count()) == (0, 0)
