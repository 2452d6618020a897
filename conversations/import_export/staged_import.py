"""Store an import in staged chunks, so that live writers continue in between; it becomes visible as a whole, or
never."""

from collections.abc import Callable, Iterable

from conversations.core.bounded_groups import bounded_groups
from conversations.core.errors import Invalid
from conversations.core.principals import Principal, is_imported
from conversations.events import commit_listeners, log, payload
from conversations.events.log import NewEvent
from conversations.import_export.additions import Additions
from conversations.import_export.import_lines import ImportedConversation, ImportLine, line_of
from conversations.models import Conversation

CHUNK = 500  # events a transaction
CHUNK_BYTES = 4 << 20  # of bodies a transaction


def _nothing() -> None:
    """Do nothing."""


class StagedImport:
    """One file while it is imported. For one thread; end it with `finish` or `discard`."""

    def __init__(
        self, principal: Principal, require_still: Callable[[], None] = _nothing, note: Callable[[], None] = _nothing
    ) -> None:
        """`require_still` raises when who imports may no longer; it is asked in the transaction that publishes, whose
        last step is `note`."""
        self._principal, self._require_still, self._note = principal, require_still, note
        self._batch = log.StagedBatch()
        self._keys: list[str] = []
        self._staged = ""
        self._waiting: list[NewEvent] = []
        self._additions = Additions()
        self._bytes = 0
        self._is_complete = False

    def receive(self, lines: list[bytes]) -> None:
        """Stage these lines. Raises Conflict if a conversation exists, Invalid and TooLarge for bad lines."""
        for text in lines:
            line = line_of(text)
            if self._is_complete:
                raise Invalid("the end line must be the last line")
            if line.conversation is not None:
                self._begin(line.conversation, is_update=line.update, is_whole=line.whole)
            elif line.end is not None:
                self._end(line.end)
            else:
                self._add(line)

    def finish(self) -> list[ImportedConversation]:
        """Make everything visible at once. Raises Invalid if the end is missing, Conflict if a key now exists."""
        if not self._is_complete:
            raise Invalid("the end line is missing: the import is incomplete")
        with log.write_transaction():
            self._require_still()
            self._batch.publish()
            self._additions.append()
            self._note()
        imported = [item for at in range(0, len(self._keys), CHUNK) for item in _imported(self._keys[at : at + CHUNK])]
        new = [item for item in imported if item.conversation_id not in self._additions.keys]
        commit_listeners.notify_imported({item.conversation_id: item.events for item in new})
        return imported

    def discard(self) -> None:
        """Delete what was staged."""
        self._waiting.clear()
        self._batch.discard()

    def _begin(self, key: str, *, is_update: bool, is_whole: bool) -> None:
        if not 1 <= len(key) <= payload.MAX_KEY or payload.clean_text(key) != key:
            raise Invalid(f"must be 1 to {payload.MAX_KEY} characters", field="conversation")
        if is_update or not self._staged:
            self._flush()  # what is held back and what is staged do not go together
        if is_update and key not in self._keys and self._additions.begin(key, is_whole=is_whole):
            self._staged = ""
            self._keys.append(key)
            return
        self._staged = self._batch.stage(key)
        self._keys.append(key)

    def _add(self, line: ImportLine) -> None:
        if not self._keys:
            raise Invalid("a conversation line must come before the first event")
        body = bytes(line.payload)
        parsed = payload.parse(body)
        if parsed.conversation_id != self._keys[-1]:
            raise Invalid(f"must be {self._keys[-1]!r}", field="payload.conversation_id")
        event = log.from_bus(f"stream:{self._keys[-1]}", line.id, body.decode(), parsed, self._principal)
        self._waiting.append(event._replace(conversation=self._staged) if self._staged else event)
        self._bytes += len(body)
        if len(self._waiting) >= CHUNK or self._bytes >= CHUNK_BYTES:
            self._flush()

    def _end(self, conversations: int) -> None:
        if conversations != len(self._keys) or not conversations:
            raise Invalid(f"the end line must count {len(self._keys)} conversations; got {conversations}")
        self._flush()
        self._is_complete = True

    def _flush(self) -> None:
        if self._waiting and self._staged:
            log.append(self._waiting, chained_as=self._batch.chained_as)
        elif self._waiting:
            self._additions.take(self._waiting)
        self._waiting, self._bytes = [], 0


def existing(keys: Iterable[str]) -> dict[str, bool]:
    """Return which of these conversations exist, and whether an import made them, so that it may be added to."""
    rows: dict[str, bool] = {}
    for some in bounded_groups(keys, len, most_items=CHUNK, most_bytes=CHUNK_BYTES):
        made = Conversation.objects.filter(key__in=some, is_staged=False).values_list("key", "opened_by", "copied_seq")
        rows |= {key: is_imported(opened_by) and not copied for key, opened_by, copied in made}
    return rows


def _imported(keys: list[str]) -> list[ImportedConversation]:
    """Return what these conversations have become, in order."""
    by_key = {c.key: c for c in Conversation.objects.filter(key__in=keys)}
    return [
        ImportedConversation(
            key, by_key[key].head_seq, by_key[key].messages, by_key[key].tool_calls, by_key[key].errors
        )
        for key in keys
    ]
