"""Stores an import: in staged chunks, so that live writers go on in between; visible whole at its end, or never."""

from conversations import doorbell, envelopes, log
from conversations.errors import Conflict, Invalid
from conversations.log import NewEvent
from conversations.models import Conversation
from conversations.principals import Principal
from conversations.recordings.wire import Imported, Line, line_of

CHUNK = 500  # events a transaction
CHUNK_BYTES = 4 << 20  # of bodies a transaction


class Intake:
    """One file on its way in. Made and used in one thread; end it with `finish` or `discard`."""

    def __init__(self, principal: Principal) -> None:
        self._principal = principal
        self._batch = log.Batch()
        self._keys: list[str] = []
        self._staged = ""
        self._waiting: list[NewEvent] = []
        self._bytes = 0
        self._is_complete = False

    def take(self, lines: list[bytes]) -> None:
        """Stage these lines. Raises `Conflict` when a conversation exists, `Invalid` and `TooLarge` for bad ones."""
        for text in lines:
            line = line_of(text)
            if self._is_complete:
                raise Invalid("expected nothing after the end")
            if line.conversation is not None:
                self._begin(line.conversation)
            elif line.end is not None:
                self._end(line.end)
            else:
                self._add(line)

    def finish(self) -> list[Imported]:
        """Make everything visible at once. Raises `Invalid` without an end, `Conflict` when a key came to exist."""
        if not self._is_complete:
            raise Invalid("expected an end line: the import was cut off")
        self._batch.publish()
        found = [item for at in range(0, len(self._keys), CHUNK) for item in _imported(self._keys[at : at + CHUNK])]
        doorbell.appeared({item.conversation_id: item.events for item in found})
        return found

    def discard(self) -> None:
        """Remove what was staged."""
        self._waiting.clear()
        self._batch.discard()

    def _begin(self, key: str) -> None:
        if not 1 <= len(key) <= envelopes.MAX_KEY or envelopes.fit(key) != key:
            raise Invalid(f"expected a conversation id of 1 to {envelopes.MAX_KEY} characters", field="conversation")
        try:
            self._staged = self._batch.stage(key)
        except Conflict:
            raise Conflict(
                f"conversation {key!r} exists already: import it under another id (--conversation)",
                code="conversation_exists",
            ) from None
        self._keys.append(key)

    def _add(self, line: Line) -> None:
        if not self._keys:
            raise Invalid("expected a conversation line before the first event")
        body = bytes(line.payload)
        said = envelopes.read(body)
        if said.conversation_id != self._keys[-1]:
            raise Invalid(f"expected events of {self._keys[-1]!r}", field="payload.conversation_id")
        event = log.of_payload(f"stream:{self._keys[-1]}", line.id, body.decode(), said, self._principal)
        self._waiting.append(event._replace(conversation=self._staged))
        self._bytes += len(body)
        if len(self._waiting) >= CHUNK or self._bytes >= CHUNK_BYTES:
            self._flush()

    def _end(self, conversations: int) -> None:
        if conversations != len(self._keys) or not conversations:
            raise Invalid(f"expected the end of {len(self._keys)} conversations, got {conversations}")
        self._flush()
        self._is_complete = True

    def _flush(self) -> None:
        if self._waiting:
            log.append(self._waiting, chained_as=self._batch.chained_as)
        self._waiting, self._bytes = [], 0


def _imported(keys: list[str]) -> list[Imported]:
    """Read what these have become, in their order."""
    found = {c.key: c for c in Conversation.objects.filter(key__in=keys)}
    return [
        Imported(key, found[key].head_seq, found[key].messages, found[key].tool_calls, found[key].errors)
        for key in keys
    ]
