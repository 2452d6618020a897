"""Track who is viewing a conversation and who is typing, for its other viewers (§3.5). Created by `ServerRuntime`.

Presence is a hint and kept only in memory; it is not part of the record. A process knows its own viewers by their
sockets. It publishes changes through the channel layer, and its full state every 10 seconds. A process that falls
silent is removed with its viewers. Without a channel layer each process shows only its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from conversations.core import broadcast_sender
from conversations.core.background_loop import cancel_all, run_forever
from conversations.events import commit_listeners
from conversations.realtime import frames
from conversations.realtime.socket_writer import SocketWriter
from conversations.rendering.participant_marks import letters

State = Literal["typing", "looking", "away"]
STATES: tuple[State, ...] = get_args(State)  # the one that is shown of several first
COALESCE = 0.25  # seconds between two frames
TELL_EVERY = 10.0  # seconds until a process tells again who looks
FORGET_AFTER = 25.0  # seconds of silence
TYPING_S = 6.0  # a page says it again while somebody types
MAX_PEOPLE = 20  # people of one frame, and of one word to other processes
MAX_NAME = 200  # characters of a name that another process tells

People = tuple[tuple[str, State], ...]


def say(key: str, name: str, state: State) -> None:
    """Report that a person is typing, viewing, or has hidden the page. Any thread; it takes effect where their socket
    is."""
    commit_listeners.notify_presence("", [("said", key, name, state)])
    if (sender := broadcast_sender.sender()) is not None:
        sender.say_presence({("said", key, name): state})


@dataclass(eq=False, slots=True)
class Viewer:
    """A socket that follows a conversation. `name` is empty for a program, which receives presence but is not shown."""

    key: str
    name: str
    writer: SocketWriter
    sent: People = ()


class Presence:
    """All viewers of this process. Call `start` in its loop; everything except `say` is called there."""

    def __init__(self) -> None:
        self._viewers: dict[str, set[Viewer]] = {}
        self._states: dict[tuple[str, str], tuple[State, float]] = {}  # until when (monotonic) a person does what
        self._others: dict[str, dict[str, tuple[float, People]]] = {}  # by conversation and process: when, who
        self._last_sent: dict[str, People] = {}  # to other processes
        self._changed: set[str] = set()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_listening: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Start listening and publishing."""
        loop = asyncio.get_running_loop()

        def on_notice(process: str, updates: Sequence[Any]) -> None:
            loop.call_soon_threadsafe(self._hear, process, updates)

        self._stop_listening = commit_listeners.on_presence(on_notice)
        rounds = {"telling who looks": self._publish_changes, "telling again who looks": self._renew}
        self._tasks = [asyncio.create_task(run_forever(work, what=what), name=what) for what, work in rounds.items()]

    async def stop(self) -> None:
        """Stop it."""
        self._stop_listening()
        await cancel_all(self._tasks)

    def look(self, key: str, name: str, writer: SocketWriter) -> Viewer:
        """Add a viewer of a conversation."""
        viewer = Viewer(key, name, writer)
        self._viewers.setdefault(key, set()).add(viewer)
        self._note(key)
        return viewer

    def leave(self, viewer: Viewer) -> None:
        """Remove a viewer."""
        here = self._viewers.get(viewer.key, set())
        here.discard(viewer)
        if not any(other.name == viewer.name for other in here):
            self._states.pop((viewer.key, viewer.name), None)
        if not here:
            self._viewers.pop(viewer.key, None)
            self._others.pop(viewer.key, None)
        self._note(viewer.key)

    def _note(self, *keys: str) -> None:
        self._changed.update(keys)
        self._wake.set()

    def _hear(self, process: str, updates: Sequence[Any]) -> None:
        """Apply an update from a page or from another process, as far as it is valid."""
        for word in updates:
            match word:
                case ["said", str(key), str(name), "typing" | "looking" | "away" as state]:
                    self._take(key, name, state)
                case ["here", str(key), list() | tuple() as people] if process and key in self._viewers:
                    self._take_others(process, key, _read(people))

    def _take(self, key: str, name: str, state: State) -> None:
        if name and any(viewer.name == name for viewer in self._viewers.get(key, ())):
            until = time.monotonic() + TYPING_S if state == "typing" else float("inf")
            self._states[key, name] = (state, until)
            self._note(key)

    def _take_others(self, process: str, key: str, people: People) -> None:
        others = self._others.setdefault(key, {})
        if not people:
            others.pop(process, None)
        else:
            if process not in others:
                self._last_sent.pop(key, None)  # they may not know who looks here
            others[process] = (time.monotonic(), people)
        self._note(key)

    async def _publish_changes(self) -> None:
        """Publish changes; typing expires after a while without a further update."""
        with_typing = any(state == "typing" for state, _ in self._states.values())
        try:
            async with asyncio.timeout(1.0 if with_typing else None):
                await self._wake.wait()
        except TimeoutError:
            self._forget_typing()
        self._wake.clear()
        changed, self._changed = self._changed, set()
        for key in changed:
            self._publish_key(key)
        await asyncio.sleep(COALESCE)

    def _forget_typing(self) -> None:
        now = time.monotonic()
        for (key, name), (_, until) in list(self._states.items()):
            if until < now:
                del self._states[key, name]
                self._changed.add(key)

    def _publish_key(self, key: str) -> None:
        here = self._here(key)
        if self._last_sent.get(key, ()) != here and (sender := broadcast_sender.sender()) is not None:
            sender.say_presence({("here", key): here})
        self._last_sent[key] = here
        if key not in self._viewers:
            del self._last_sent[key]
            return
        everybody = _merged([here, *(people for _, people in self._others.get(key, {}).values())])
        text = _frame(key, everybody)
        for viewer in self._viewers[key]:
            if viewer.sent != everybody and viewer.writer.hint(text):
                viewer.sent = everybody

    def _here(self, key: str) -> People:
        """Return the viewers of this process."""
        names = {viewer.name for viewer in self._viewers.get(key, ()) if viewer.name}
        return _first((name, self._states.get((key, name), ("looking", 0.0))[0]) for name in names)

    async def _renew(self) -> None:
        """Remove processes that fell silent, and publish the full state again, because any hint may be lost."""
        await asyncio.sleep(TELL_EVERY)
        old = time.monotonic() - FORGET_AFTER
        for key, others in self._others.items():
            self._others[key] = {process: report for process, report in others.items() if report[0] > old}
        self._last_sent.clear()
        self._note(*self._viewers)


def _merged(groups: Iterable[People]) -> People:
    """Merge the viewers of several processes; a person with several activities has the most active one."""
    loudest: dict[str, State] = {}
    for people in groups:
        for name, state in people:
            loudest[name] = min(state, loudest.get(name, state), key=STATES.index)
    return _first(loudest.items())


def _first(people: Iterable[tuple[str, State]]) -> People:
    """Sort by name; if there are too many, keep the most active ones."""
    shown = sorted(people, key=lambda pair: (STATES.index(pair[1]), pair[0]))[:MAX_PEOPLE]
    return tuple(sorted(shown))


def _read(people: Sequence[Any]) -> People:
    """Read an update from another process, leaving out invalid parts."""
    pairs = (tuple(entry) for entry in people[:MAX_PEOPLE] if isinstance(entry, list | tuple) and len(entry) == 2)
    return _first((str(name)[:MAX_NAME], state) for name, state in pairs if name and state in STATES)


def _frame(key: str, people: People) -> str:
    entries = [{"name": name, "letters": letters(name, "operator"), "state": state} for name, state in people]
    return frames.control("presence", topic=f"stream:{key}", people=entries)
