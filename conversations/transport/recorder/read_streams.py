"""Read Redis streams in rounds of entries: find streams, read hot and cold ones, check for losses. One task.

While one round is being stored the next is read; everything else first waits until what was read is stored, since
positions come from the database.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

import redis
import redis.asyncio

from conversations.core.bounded_groups import blocks
from conversations.core.failpoints import failpoint
from conversations.events.payload import MAX_BYTES
from conversations.models import RedisPosition
from conversations.transport import entry_ids as ids
from conversations.transport.recorder import gap_detection, parse_entry
from conversations.transport.recorder.database import RecorderDatabase
from conversations.transport.recorder.gap_detection import Loss
from conversations.transport.recorder.held_streams import HeldStream, Holds
from conversations.transport.recorder.parse_entry import StreamEntry
from conversations.transport.recorder.relay import Echoes
from conversations.transport.recorder.store import EntryStore
from conversations.transport.recorder.streams import BATCH, Stream, Streams, first_seen, is_ours, name_of, read_command

SCAN_EVERY = 0.6  # seconds: what is found now was there a second ago at most
SLICE = 1000  # cold streams in one read; streams described in one go
READ_EVERY = 0.1  # seconds: hot streams are read as often while all keys of Redis are looked through
MIN_ROUND_S = 0.2  # seconds between two such rounds of looking, however long one took
HEAVY_EVERY = 30.0  # seconds between looks at streams with entries so large that XINFO, which carries two, is dear
LOOKED_AT = 100  # quiet streams described at each scan, in turn

_place = attrgetter("place")
Raw = tuple[Stream, int, list[Any]]  # a stream, how many entries came before, what XREAD answered


class StreamsReader:
    """Reads on one connection. Created anew, with its positions, after any error."""

    def __init__(
        self,
        client: redis.asyncio.Redis,
        database: RecorderDatabase,
        filing: EntryStore,
        echoes: Echoes,
        *,
        looked_at: int,
        from_now: bool,
    ) -> None:
        self.streams = Streams()
        self.looked_at = looked_at  # µs by Redis's clock: the last complete look at what streams there are
        self._client, self._database, self._filing, self._echoes = client, database, filing, echoes
        self._from_now = from_now
        self._positions: dict[str, RedisPosition] = {}
        self._storing: asyncio.Future[list[HeldStream]] | None = None
        self._stored: dict[str, Stream] = {}  # the streams of that round, by name
        self._holds = Holds()
        self._oldest = self._newest = 0.0  # Unix times of the round that is being stored or was last
        self._scan_at = 0.0
        self._is_turn_of_all = False
        self._to_look: dict[bytes, Stream] = {}
        self._unreported: dict[bytes, Stream] = {}  # with a loss whose conversation somebody holds
        self._looked = 0
        self._heavy_at = time.monotonic() + HEAVY_EVERY

    async def resume(self) -> None:
        """Load every position, and report what went missing meanwhile."""
        self._positions = await self._database(self._filing.positions)
        known_names = set(self._positions)
        if known_names:  # else this is the first contact with Redis
            self.looked_at = max(self.looked_at, self._filing.went_back_at)
        await self._scan()
        await self._look([stream for stream in self.streams.all() if stream.name in known_names])

    async def round(self) -> None:
        """Read once, waiting for new entries as long as nothing else is due."""
        left = self._scan_at - time.monotonic()
        if left <= 0:
            await self._housekeep()
            return
        self._release()
        left = min(left, self._holds.next_in())
        hot = self.streams.hot()
        if not hot:
            await self.drain()
            await asyncio.sleep(min(left, self._holds.next_in()))
            return
        behind = self.streams.behind()
        if behind and not self._is_turn_of_all:
            self._is_turn_of_all = True
            await self._read(behind)
        else:
            self._is_turn_of_all = False
            await self._read(hot, block_ms=None if behind else int(left * 1000))

    async def drain(self) -> None:
        """Wait until everything read is stored, or waits for a locked conversation. Raises what storing raised."""
        storing, self._storing = self._storing, None
        if storing is not None:
            self._holds.settle(self._stored, await storing)

    @property
    def lag_s(self) -> float:
        """Return the age in seconds of what is read and not stored; else, while there is more to read, of what was
        stored last."""
        now = time.time()
        if self._storing is not None and not self._storing.done():
            return max(0.0, now - min(self._oldest, self._holds.oldest()))
        newest = self._newest if self.streams.behind() else now
        return max(0.0, now - min(newest, self._holds.oldest()))

    async def _read(self, streams: list[Stream], *, block_ms: int | None = None) -> None:
        command, requested = read_command(streams, block_ms=block_ms)
        answer = await self._ask(*command)
        if not answer:
            if block_ms is not None:
                await self.drain()
            return
        failpoint("after-read")
        reads: list[Raw] = []
        for key, items in answer:
            stream = self.streams[key]
            reads.append((stream, stream.entries_read, items))
            stream.take(items, requested)
            self.streams.move_to_hot_end(stream)
            self._to_look[key] = stream
        for batch in _light_first(reads):
            await self._store(batch)

    async def _store(self, reads: list[Raw]) -> None:
        """Parse a round's entries, merged by entry id, while the previous round is stored; then have them stored."""
        entries = [entry for stream, before, items in reads for entry in self._entries(stream, before, items)]
        entries.sort(key=_place)
        await self.drain()
        reads = [raw for raw in reads if not raw[0].is_held]  # read on before it was known: they are read again
        if not reads:
            return
        self._stored = {stream.name: stream for stream, _, _ in reads}
        entries = [entry for entry in entries if entry.stream in self._stored]
        self._oldest = min(ids.at(items[0][0].decode()) for _, _, items in reads) / 1e6
        self._newest = max(ids.at(items[-1][0].decode()) for _, _, items in reads) / 1e6
        self._storing = self._database(self._filing.store, entries)

    def _release(self) -> None:
        """Read the streams again whose wait is over."""
        for stream in self._holds.release():
            if stream.key in self.streams:
                self.streams.move_to_hot_end(stream)

    def _entries(self, stream: Stream, before: int, items: list[Any]) -> Iterator[StreamEntry]:
        for nth, (entry_id, fields) in enumerate(items, before + 1):
            count = nth if before >= 0 else gap_detection.UNCOUNTED
            entry = parse_entry.parse_entry(
                stream.name, entry_id.decode(), count, fields or (), found_at=stream.found_at
            )
            event = entry.event
            if event is not None and event.bus_id and self._echoes.take(stream.name, event.bus_id):
                entry = entry._replace(event=None)
            yield entry

    async def _housekeep(self) -> None:
        """Find streams, read the cold ones, check those with new entries and some of the idle ones."""
        await self.drain()
        await self._scan()
        for streams in blocks(self.streams.cold(), SLICE):
            await self._read(streams)
        await self.drain()
        quiet = self.streams.all()
        streams = quiet[self._looked : self._looked + LOOKED_AT]
        self._looked = self._looked + LOOKED_AT if len(streams) == LOOKED_AT else 0
        due = self._to_look | self._unreported | {stream.key: stream for stream in streams}
        heavy_too = time.monotonic() >= self._heavy_at
        if heavy_too:
            self._heavy_at = time.monotonic() + HEAVY_EVERY
        now = {
            key: stream
            for key, stream in due.items()
            if (heavy_too or not stream.is_heavy) and (key in self._unreported or not stream.is_held)
        }
        self._to_look = {key: stream for key, stream in self._to_look.items() if key not in now}
        await self._look(list(now.values()))
        self._scan_at = max(self._scan_at, time.monotonic() + MIN_ROUND_S)

    async def _scan(self) -> None:
        """List all streams (authoritative); follow the new ones, and report those that are gone.

        SCAN visits every key. Where these are many, hot streams are read between its pages, and the pause after it is
        as long as it took.
        """
        read_at = began = time.monotonic()
        seconds, micros = await self._client.time()
        keys: set[bytes] = set()
        cursor = b"0"
        while True:
            cursor, page_keys = await self._ask("SCAN", cursor, "COUNT", SLICE, "TYPE", "stream")
            keys.update(filter(is_ours, page_keys))
            if cursor == b"0":
                break
            if time.monotonic() - read_at > READ_EVERY and (hot := self.streams.hot()):
                await self._read(hot)
                read_at = time.monotonic()
        await self.drain()
        now = seconds * 1_000_000 + micros
        await self._follow([key for key in keys if key not in self.streams], self.looked_at or now)
        await self._miss([stream for stream in self.streams.all() if stream.key not in keys], len(keys))
        self.looked_at = now
        spent = time.monotonic() - began
        self._scan_at = began + max(SCAN_EVERY, min(10 * spent, 1.0), 2 * spent)

    async def _follow(self, keys: Iterable[bytes], found_at: int) -> None:
        """Start reading streams: where they were left, or from their beginning (at first contact perhaps from now)."""
        fresh: list[Stream] = []
        for key in keys:
            row = self._positions.pop(name_of(key), None)
            if row is None:
                fresh.append(first_seen(key, found_at))
            else:
                self.streams.put([self._stream_at(key, row)])
        for batch in blocks(fresh, SLICE):
            described = [(stream, info) for stream, info in await self._describe(batch) if info is not None]
            for stream, info in described:
                stream.entries_read = gap_detection.base_of(info)
                if self._from_now and not self.looked_at:
                    stream.last_id, stream.entries_read = (
                        info.last_id,
                        info.added if info.added is not None else gap_detection.UNCOUNTED,
                    )
            streams = [stream for stream, _ in described]
            if streams:
                await self._database(self._filing.follow, streams)
                self.streams.put(streams)
                for stream in streams:
                    self.streams.move_to_hot_end(stream)

    async def _miss(self, streams: list[Stream], others: int) -> None:
        """Report streams that no longer exist."""
        left, self._positions = self._positions, {}
        streams += [self._stream_at(name.encode(), row) for name, row in left.items()]
        gone: list[Stream] = []
        for batch in blocks(streams, SLICE):
            described = await self._describe(batch)
            gone += [stream for stream, info in described if info is None]
            self.streams.put([stream for stream, info in described if info is not None])
        reason: gap_detection.Reason = "emptied" if not others and len(gone) > 1 else "deleted"
        await self._report_losses([Loss(stream, reason, None, stream.last_id, None, None) for stream in gone])

    async def _look(self, streams: list[Stream]) -> None:
        """Report what is missing from these streams."""
        losses: list[Loss] = []
        for batch in blocks(streams, SLICE):
            for stream, info in await self._describe(batch):
                if info is None:
                    continue  # the next scan says so
                gap_detection.recount(stream, info)
                loss = gap_detection.find_loss(stream, info)
                if loss is None:
                    self._resume_reading(stream)
                else:
                    losses.append(await self._placed(loss, info))
        await self._report_losses(losses)

    async def _placed(self, loss: Loss, info: gap_detection.Info) -> Loss:
        """Return where a stream that went back continues: after its end if the record has that, else at its start."""
        if loss.reason != "went_back":
            return loss
        if info.last_entry is None or await self._database(self._filing.is_known, loss.stream, info.last_entry):
            return loss._replace(move_to=(info.last_id, gap_detection.UNCOUNTED if info.added is None else info.added))
        return loss

    async def _report_losses(self, losses: list[Loss]) -> None:
        for batch in blocks(losses, BATCH):
            waiting = {loss.stream.name for loss in await self._database(self._filing.report_losses, batch)}
            for loss in batch:
                if loss.stream.name in waiting:
                    self._report_later(loss.stream)
                    continue
                self._resume_reading(loss.stream)
                if loss.move_to is None:
                    self.streams.drop(loss.stream.key)
                    self._holds.forget(loss.stream.name)
                else:
                    loss.stream.last_id, loss.stream.entries_read = loss.move_to

    def _report_later(self, stream: Stream) -> None:
        """Stop reading a stream until its loss is stored: after further reading the loss might not be detected."""
        self._holds.forget(stream.name)
        stream.is_held = True
        self._unreported[stream.key] = stream
        self.streams.put([stream])

    def _resume_reading(self, stream: Stream) -> None:
        if self._unreported.pop(stream.key, None) is not None:
            stream.is_held = False

    def _stream_at(self, key: bytes, row: RedisPosition) -> Stream:
        found_at = max(row.found_at, self._filing.went_back_at)
        return Stream(key, row.stream, row.last_id, row.entries_read, found_at)

    async def _ask(self, *command: Any) -> Any:
        return await self._client.execute_command(*command)  # type: ignore[no-untyped-call]  # redis-py's own

    async def _describe(self, streams: list[Stream]) -> list[tuple[Stream, gap_detection.Info | None]]:
        """Ask Redis about streams; None for one that is gone or no longer a stream."""
        if not streams:
            return []
        pipeline = self._client.pipeline(transaction=False)
        for stream in streams:
            pipeline.execute_command("XINFO STREAM", stream.key)
        answers = await pipeline.execute(raise_on_error=False)
        described: list[tuple[Stream, gap_detection.Info | None]] = []
        for stream, answer in zip(streams, answers, strict=True):
            if isinstance(answer, redis.ResponseError) and _is_no_stream(answer):
                described.append((stream, None))
            elif isinstance(answer, Exception):
                raise answer
            else:
                described.append((stream, gap_detection.info_of(answer)))
        return described


def _is_no_stream(error: redis.ResponseError) -> bool:
    return "no such key" in str(error) or str(error).startswith("WRONGTYPE")


def _light_first(reads: list[Raw]) -> list[list[Raw]]:
    """Store streams with a too large entry after the others, which do not wait for it."""
    heavy = [raw for raw in reads if any(len(value) > MAX_BYTES for _, fields in raw[2] for value in fields or ())]
    light = [raw for raw in reads if raw not in heavy] if heavy else reads
    return [group for group in (light, heavy) if group]
