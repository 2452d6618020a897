"""The state topics `fleet`, `approvals`, `audit`: changed rows, with the latest version winning, coalesced (§3.5)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from conversations.access.audit.listing import newest_entry
from conversations.conversation import conversation_list
from conversations.core.background_loop import cancel_all, run_forever
from conversations.core.db_threads import DatabaseThreads
from conversations.core.failpoints import should_drop
from conversations.events import commit_listeners
from conversations.events.log.records import Stored
from conversations.realtime import frames
from conversations.realtime.socket_writer import SocketWriter, report_failure
from conversations.redaction import erase_id
from conversations.runs.approvals import live_requests

COALESCE = 0.25  # seconds between two frames
HEAL_EVERY = 1.0  # seconds
SNAPSHOT = 100  # rows
STATE_TOPICS = ("fleet", "approvals", "audit")

Row = dict[str, Any]
Note = Callable[[Callable[[], Collection[str]]], None]  # of keys of changed rows


class RowSource(Protocol):
    """The source of a topic's rows. Sync; called in a thread."""

    def newest_rows(self, limit: int) -> list[Row]:
        """Render the newest rows: key, version, html and further fields."""

    def changed_rows(self, conversations: Sequence[str], versions: Mapping[str, int]) -> list[Row]:
        """Render the rows that changed in these conversations; `versions` are those of rows that were already sent."""

    def versions(self, limit: int) -> dict[str, tuple[str, int]]:
        """Return each newest row's conversation and version, by key."""

    def waiting_counts(self) -> Row:
        """Count the approval requests that wait for a person (`conversations.runs.approvals.pending_counts`)."""


class StateTopic:
    """The changes of a topic's rows, for all its subscribers. Call `start` in the loop."""

    right = "view"  # the permission that its subscribers need
    changed_by = ""  # how the types of events begin that change its rows

    def __init__(self, topic: str, source: RowSource) -> None:
        self.topic, self._source = topic, source
        self.subscribers: set[StateSubscription] = set()
        self.waiting_counts: Row = {"waiting": 0}  # approval requests that wait for a person
        self._changed: dict[str, None] = {}
        self._versions: dict[str, int] = {}
        self._newest_redaction = -1  # at the last look; negative: nobody looks
        self.erased_at = 0  # when the last id was erased, µs UTC; a page drawn before that has it
        self._pool = DatabaseThreads(topic)
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_listening: list[Callable[[], None]] = []

    def start(self) -> None:
        """Start listening for commits."""
        loop = asyncio.get_running_loop()

        def note(keys_of: Callable[[], Collection[str]]) -> None:
            if self.subscribers and not should_drop("notification"):
                loop.call_soon_threadsafe(self._note, keys_of())

        self._stop_listening = self._listen(note)
        self._tasks = [
            asyncio.create_task(run_forever(work, what=f"{name} of {self.topic}"), name=f"{self.topic}: {name}")
            for name, work in {"publishing rows": self._publish_changes, "looking at rows": self._heal}.items()
        ]

    async def stop(self) -> None:
        """Stop listening."""
        for stop in self._stop_listening:
            stop()
        await cancel_all(self._tasks)
        self._pool.shutdown(wait=False)

    async def snapshot(self) -> list[Row]:
        """Return the newest rows. An id that is erased from now on is noticed, and so is what changes."""
        if self._newest_redaction < 0:
            self._newest_redaction, self.erased_at = await self._pool.run(erase_id.newest, self._newest_redaction)
        if not self._versions:
            there = await self._pool.run(self._source.versions, SNAPSHOT)
            self._versions = {key: version for key, (_, version) in there.items()} | self._versions
        self.waiting_counts = await self._pool.run(self._source.waiting_counts)
        return await self._pool.run(self._source.newest_rows, SNAPSHOT)

    def _listen(self, note: Note) -> list[Callable[[], None]]:
        """Have `note` called at each commit, in any thread, with what returns its conversations if somebody subscribes;
        return what ends it."""

        def on_stored(stored: Sequence[Stored]) -> None:
            if any(event.kind.startswith(self.changed_by) for event in stored):
                note(lambda: {event.conversation for event in stored})

        def on_heads(heads: Mapping[str, int]) -> None:
            note(lambda: set(heads))

        return [commit_listeners.on_committed(on_stored), commit_listeners.on_remote_heads(on_heads)]

    def _note(self, keys: Iterable[str]) -> None:
        self._changed.update(dict.fromkeys(keys))
        self._wake.set()

    async def _publish_changes(self) -> None:
        """Wait for changes, read the rows, offer them to the subscribers."""
        await self._wake.wait()
        self._wake.clear()
        keys, self._changed = list(self._changed), {}
        versions = dict(self._versions)
        rows = await self._pool.run(self._source.changed_rows, keys, versions) if self.subscribers else []
        if rows:
            self.waiting_counts = await self._pool.run(self._source.waiting_counts)
        for subscriber in list(self.subscribers):
            subscriber.offer(rows)
        self._versions |= {row["key"]: row["version"] for row in rows}
        await asyncio.sleep(COALESCE)

    async def _heal(self) -> None:
        """Query once a second, and publish changes whose notification was lost."""
        await asyncio.sleep(HEAL_EVERY)
        if not self.subscribers:
            self._versions.clear()
            self._newest_redaction = -1
            return
        await self._look_for_erased_ids()
        versions = await self._pool.run(self._source.versions, SNAPSHOT)
        self._versions = {key: self._versions[key] for key in versions if key in self._versions}
        if missed := {of for key, (of, version) in versions.items() if self._versions.get(key) != version}:
            self._note(missed)

    async def _look_for_erased_ids(self) -> None:
        """Have pages loaded again once a conversation's id was erased: their rows have the old one."""
        before = self._newest_redaction
        self._newest_redaction, erased_at = await self._pool.run(erase_id.newest, before)
        self.erased_at = erased_at or self.erased_at
        for subscriber in tuple(self.subscribers if erased_at and before >= 0 else ()):
            subscriber.reset()


class ConversationListTopic(StateTopic):
    """The topic `fleet`: conversations."""

    def __init__(self) -> None:
        super().__init__("fleet", conversation_list.SOURCE)


class ApprovalsTopic(StateTopic):
    """The topic `approvals`: approval requests."""

    changed_by = "approval."

    def __init__(self) -> None:
        super().__init__("approvals", live_requests.SOURCE)


class AuditTopic(StateTopic):
    """The topic `audit`: how many entries the audit log has."""

    right = "audit"

    def __init__(self) -> None:
        super().__init__("audit", newest_entry.SOURCE)

    def _listen(self, note: Note) -> list[Callable[[], None]]:
        return [commit_listeners.on_audited(lambda: note(lambda: {newest_entry.KEY}))]


class StateSubscription:
    """A socket's subscription to a topic: the rows still to be sent to it, by key. Without `drawn`, rows have no
    html."""

    def __init__(
        self, state: StateTopic, writer: SocketWriter, *, failed: Callable[[BaseException], None], drawn: bool = True
    ) -> None:
        self._is_drawn = drawn
        self._state, self._writer = state, writer
        self._waiting: dict[str, Row] = {}
        self._is_reset = False
        self._event = asyncio.Event()
        state.subscribers.add(self)
        self._task = asyncio.create_task(self._run(), name=f"subscription {state.topic}")
        self._task.add_done_callback(partial(report_failure, failed))

    def offer(self, rows: Sequence[Row]) -> None:
        """Keep the latest version of each row until it can be sent."""
        for row in rows:
            pending = self._waiting.get(row["key"])
            if pending is None or pending["version"] <= row["version"]:
                self._waiting[row["key"]] = row
        if rows:
            self._event.set()

    def reset(self) -> None:
        """Tell the client that what it shows is wrong."""
        self._is_reset = True
        self._event.set()

    def send_head(self) -> None:
        """Send an empty head frame: a state topic has no seq, and the frame only shows that the connection is alive."""
        self._writer.hint(frames.control("head", topic=self._state.topic, seq=0))

    async def _run(self) -> None:
        rows = await self._state.snapshot()
        await self._send(rows, erased_at=self._state.erased_at)
        while True:
            await self._event.wait()
            self._event.clear()
            if self._is_reset:
                self._is_reset = False
                await self._writer.text(frames.control("reset", topic=self._state.topic))
            rows, self._waiting = list(self._waiting.values()), {}
            await self._send(rows)

    async def _send(self, rows: list[Row], **more: int) -> None:
        if not self._is_drawn:
            rows = [{name: value for name, value in row.items() if name != "html"} for row in rows]
        frame = {"t": "rows", "topic": self._state.topic, "rows": rows, **self._state.waiting_counts, **more}
        text = json.dumps(frame, separators=(",", ":"), ensure_ascii=False)
        await self._writer.frame(frames.Frame(0, 0, text))

    def close(self) -> None:
        """End the subscription."""
        self._state.subscribers.discard(self)
        self._task.cancel()
