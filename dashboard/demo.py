"""Gives the demo what it uses: the log, the sockets, the rows (§9). It ends when something real is there."""

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from conversations import search
from conversations.core import principals
from conversations.core.background_loop import run_forever
from conversations.core.ids import new_id
from conversations.events import commit_listeners, log
from conversations.events.log.records import NewEvent
from conversations.import_export import demo
from conversations.import_export.demo import DemoDecision, Payload
from conversations.models import Approval, Conversation, Event, LegalHold, Run, ToolSchema
from conversations.models.run import UNFINISHED
from conversations.realtime.server_runtime import ServerRuntime

POLL_EVERY_S = 1.0  # for something real, while anything happens
POLL_EVERY_IDLE_S = 5.0  # the same while nothing does
_REAL = """SELECT EXISTS(SELECT 1 FROM conversations_conversation WHERE NOT is_staged AND NOT is_demo)
OR EXISTS(SELECT 1 FROM conversations_event e JOIN conversations_conversation c ON c.id=e.conversation_id
WHERE c.is_demo AND e.principal<>%s)"""


class Demo:
    """The demo of one server process."""

    def __init__(self, runtime: ServerRuntime) -> None:
        self._runtime = runtime
        self._is_real = False
        self._has_news = True
        self._waited = 0.0  # seconds since the last look

    async def run(self) -> None:
        """Play until the record has something real."""
        self._is_real = await asyncio.to_thread(_is_real)
        await asyncio.to_thread(_end_left_runs)
        existing = await asyncio.to_thread(_demos)
        forget = commit_listeners.on_committed(self._on_news), commit_listeners.on_remote_heads(self._on_news)
        looking = asyncio.create_task(run_forever(self._look, what="looking for something real"), name="demo-look")
        try:
            await demo.run(
                self._publish, self._has_viewers, lambda: self._is_real, self._forget, _Approvals(), existing=existing
            )
        finally:
            looking.cancel()
            for stop in forget:
                stop()

    def _on_news(self, _: object) -> None:
        self._has_news = True

    async def _publish(self, key: str, payload: Payload) -> int:
        event = _recorded(key, payload)
        if event.kind == "token":
            self._runtime.writer.submit([event])
            return 0
        (stored,) = await self._runtime.writer.store([event])
        return stored.seq

    def _has_viewers(self) -> bool:
        return bool(self._runtime.socket_registry.sockets)

    async def _forget(self, key: str) -> None:
        await asyncio.to_thread(_remove, key)

    async def _look(self) -> None:
        await asyncio.sleep(POLL_EVERY_S)
        self._waited += POLL_EVERY_S
        if self._has_news or self._waited >= POLL_EVERY_IDLE_S:
            self._has_news, self._waited = False, 0.0
            self._is_real = self._is_real or await asyncio.to_thread(_is_real)


class _Approvals:
    """Requests in the demo, decided as any other."""

    async def request(self, key: str, payloads: Sequence[Payload], schema: Payload) -> None:
        """Store a run that waits, with its request."""
        await asyncio.to_thread(_request, key, payloads, schema)

    async def decision(self, approval: str) -> DemoDecision | None:
        """Return what was decided; None while it waits."""
        return await asyncio.to_thread(_decision, approval)


def _recorded(key: str, payload: Payload) -> NewEvent:
    """Make an event of a recording: no agent answers it (§3.4)."""
    prefix = "stream" if "event" in payload else "chat"
    return log.from_internal(key, payload, principals.SYSTEM, topic=f"{prefix}:{key}")._replace(starts_no_run=True)


def _request(key: str, payloads: Sequence[Payload], schema: Payload) -> None:
    body = json.dumps(schema, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    hash_ = hashlib.sha256(body.encode()).hexdigest()
    with log.write_transaction():
        ToolSchema.objects.get_or_create(hash=hash_, defaults={"name": str(schema["name"]), "body": body})
        log.append(
            [
                _recorded(key, payload | ({"schema": hash_} if payload["event"] == "approval.requested" else {}))
                for payload in payloads
            ]
        )


def _decision(approval: str) -> DemoDecision | None:
    row = Approval.objects.filter(id=approval).first()
    if row is None or row.status in ("cancelled", "expired"):
        return DemoDecision("ended")
    if row.status == "pending":
        return None
    body = json.loads(Event.objects.get(conversation=row.conversation_id, seq=row.decided_seq or 0).body)
    return DemoDecision(str(row.decision), body.get("args"), body.get("output") or "", row.decided_by or "")


def _end_left_runs() -> None:
    """End what waits in the demo of a server that has stopped: nobody would go on after the decision."""
    runs = Run.objects.filter(kind="recording", status__in=UNFINISHED)
    for run, agent, key in list(runs.values_list("id", "agent", "conversation__key")):
        body = {"event": "run.cancelled", "id": new_id(), "run_id": run, "agent": agent, "run_kind": "recording"}
        body["reason"] = "the server stopped"
        log.append([_recorded(key, body)])


def _demos() -> list[str]:
    """Return the demo's conversations so far, oldest first."""
    return list(Conversation.objects.filter(is_demo=True).order_by("id").values_list("key", flat=True))


def _is_real() -> bool:
    """Return whether there is anything but the demo. Asked each second: plain SQL."""
    with connection.cursor() as cursor:
        cursor.execute(_REAL, [str(principals.SYSTEM)])
        return bool(cursor.fetchone()[0])


def _strangers(**which: Any) -> QuerySet[Event]:
    """Find what somebody else published into a demo conversation: it was acknowledged, so it stays (law C)."""
    return Event.objects.filter(conversation__is_demo=True, **which).exclude(principal=str(principals.SYSTEM))


def _remove(key: str) -> None:
    """Take a demo conversation out of sight in one step, unless it holds more than the demo, a fork goes on from it, or
    a legal hold or a redaction needs it; then remove it."""
    with log.write_transaction():
        conversation = Conversation.objects.filter(key=key, is_demo=True).first()
        if conversation is None or _strangers(conversation=conversation).exists() or log.is_needed(conversation):
            return
        if LegalHold.objects.filter(conversation=None, released_at=None).exists():
            return
        search.forget(conversation.id)
        conversation.key, conversation.is_staged = f"staged:{key}"[:200], True
        conversation.save(update_fields=["key", "is_staged"])
    log.remove(conversation)
