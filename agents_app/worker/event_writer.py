"""Write the events of one attempt of a run: behind the fence, with secrets masked, through the log's writer."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from pydantic_core import to_json

from conversations.core import secret_masking
from conversations.core.errors import Busy, Fenced, NotAllowed, TooLarge
from conversations.events import log, registry
from conversations.events.log.records import NewEvent
from conversations.events.log.write_job import OpenTokens, TokenSource
from conversations.events.payload import check_depth
from conversations.runs.claims import Body, Claim

logger = logging.getLogger(__name__)

SHOWN = 400_000  # bytes of one value in an event; a payload has 1 MiB
BUSY_FOR = 0.1  # seconds before the next try while the write queue is full


class RunEventWriter:
    """Writes for one claim. Once the fence is lost, every further write raises `Fenced`."""

    def __init__(self, claim: Claim, writer: log.Writer) -> None:
        self.claim = claim
        self.is_lost = False
        self.keeps_lengths = False  # of the pieces of an answer: a client is told each piece
        self._writer = writer
        self._open_tokens: dict[int, OpenTokens] = {}  # by turn: nothing else of the run came after them
        self._token_source = TokenSource(claim.conversation, claim.run, claim.attempt, str(claim.principal))
        self._head = {"run_id": claim.run, "conversation_id": claim.conversation}

    def add_piece(self, turn: int, text: str) -> bool:
        """Add a piece to a turn's last token that is not stored yet; return False if there is none."""
        tokens = self._open_tokens.get(turn)
        return tokens is not None and tokens.add(text)

    def token(self, text: str, fields: Mapping[str, Any]) -> None:
        """Write a piece of an answer without waiting; a full queue drops it, because the turn's output contains it
        too."""
        tokens = OpenTokens(self._token_source, fields, text, keeps_lengths=self.keeps_lengths)
        try:
            self._writer.submit((), open_tokens=tokens)
            self._open_tokens[fields["turn"]] = tokens
        except Busy:
            self._open_tokens.pop(fields["turn"], None)
            logger.warning("tokens are dropped: the write queue is full", extra={"run": self.claim.run})

    async def store(self, *payloads: Body, in_same_transaction: Callable[[], None] | None = None) -> None:
        """Store events together and wait for the commit; `in_same_transaction` changes further rows. Raises Fenced, or
        the reason why they are invalid."""
        if self.is_lost:
            raise Fenced(f"run {self.claim.run} no longer belongs to this worker")
        events = [self.event(payload) for payload in payloads]
        self._open_tokens.clear()
        while True:
            done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            try:
                self._writer.submit(events, done, in_same_transaction=in_same_transaction)
                await done
                return
            except Busy:
                await asyncio.sleep(BUSY_FOR)
            except Fenced:
                self.is_lost = True
                raise

    def tell(self, payload: Body) -> None:
        """Write an event of a team's own type, from any thread, without waiting. Raises NotAllowed for a type that may
        change state, which tools must not write."""
        kind = next((text for name in ("event", "type") if isinstance(text := payload.get(name), str) and text), "")
        if registry.is_reserved(kind):
            allowed = "event types of its own team, such as town_hall.stage"
            raise NotAllowed(f"a tool may only write {allowed}; got {mask(kind)}")
        self._open_tokens.clear()
        self._writer.submit([self.event(payload | self._head)])

    def event(self, payload: Body) -> NewEvent:
        """Create an event behind the fence; values that are too large are truncated."""
        try:
            return self.claim.event(payload)
        except TooLarge:
            return self.claim.event(truncate_fields(payload))

    def fit(self, payload: Body) -> Body:
        """Return the payload of an event; if it is too large, with its large values truncated."""
        try:
            self.claim.event(payload)
        except TooLarge:
            return truncate_fields(payload)
        return payload


def to_json_value(value: Any) -> tuple[Any, int]:
    """Return a value as JSON can represent it, with secrets masked and limited in size, and its original size in
    bytes."""
    try:
        raw = to_json(value, fallback=str, inf_nan_mode="strings", bytes_mode="base64")
        check_depth(raw)
        text = raw.decode()
        json_value = json.loads(text)
    except Exception:  # a value of a tool: whatever its own methods raise, it has a text
        json_value = _text_of(value)
        text = json.dumps(json_value, ensure_ascii=False)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > SHOWN:
        return f"{mask((json_value if isinstance(json_value, str) else text)[: SHOWN // 4])}…", size
    return mask_value(json_value, text), size


def mask_value(value: Any, text: str) -> Any:
    """Return a JSON value with its secrets masked; `text` is its JSON."""
    if not secret_masking.may_hold(text) and not any(
        json.dumps(own)[1:-1] in text or own in text for own in _own_secrets()
    ):
        return value
    masked = mask(text)
    whole = value if masked == text else _loaded(masked, value)
    each = _masked(whole)  # a text inside may be JSON itself, quoted once more
    return value if each == value else each


def mask(text: str) -> str:
    """Mask what looks like a secret, and the secrets known to this process."""
    for secret in _own_secrets():
        text = text.replace(secret, secret_masking.MASK)
    return secret_masking.mask(text)


def _own_secrets() -> list[str]:
    candidates = settings.SECRET_KEY, settings.CONFIG.openai_api_key.get_secret_value()
    return [secret for secret in candidates if len(secret) > 7]


def reason_of(error: BaseException) -> str:
    """Return the reason of a failure: the exception and its causes, as text without secrets."""
    parts: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(parts) < 4:
        text = str(seen).strip()
        if not parts or text not in parts[-1]:
            parts.append(f"{type(seen).__name__}: {text}" if text else type(seen).__name__)
        seen = seen.__cause__
    return mask(" ← ".join(parts))[:4000]


def _text_of(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:  # as above
        return f"<{type(value).__name__} without a text: {type(error).__name__}>"


def _loaded(masked: str, value: Any) -> Any:
    """Parse a masked value; if masking made the JSON invalid, mask text by text."""
    try:
        return json.loads(masked)
    except ValueError:
        return _masked(value)


def _masked(value: Any) -> Any:
    match value:
        case str():
            return mask(value)
        case dict():
            return {mask(str(key)): _masked(inner) for key, inner in value.items()}
        case list():
            return [_masked(inner) for inner in value]
    return value


def truncate_fields(payload: Body) -> Body:
    """Truncate the values that are too large for one event; they become text."""
    return {name: truncate(value) for name, value in payload.items()}


def truncate(value: Any) -> Any:
    """Return a value, or the beginning of its text if that is too large for one event."""
    if isinstance(value, str | dict | list):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        if len(text) > SHOWN // 4:
            return f"{text[: SHOWN // 4]}…"
    return value
