"""Make what agents and tools pass fit for an event: JSON, with secrets masked, truncated to a size. Called by whatever
records a run or answers with the reason of a failure."""

import json
from typing import Any

from django.conf import settings
from pydantic_core import to_json

from conversations.core import secret_masking
from conversations.core.ids import text_digest
from conversations.events.payload import check_depth
from conversations.runs.claims import Body

SHOWN = 400_000  # bytes of one value in an event; a payload has 1 MiB


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
    is_possible = secret_masking.may_hold(text) or secret_masking.may_name_secret(text)
    if not is_possible and not any(json.dumps(own)[1:-1] in text or own in text for own in _own_secrets()):
        return value
    masked = mask_json_text(text)
    whole = value if masked == text else _loaded(masked, value)
    each = _masked(whole)  # a text inside may be JSON itself, quoted once more
    return value if each == value else each


def mask(text: str) -> str:
    """Mask what looks like a secret, and the secrets known to this process."""
    return secret_masking.mask(_own_masked(text))


def mask_json_text(text: str) -> str:
    """Mask as `mask` does; if a text is JSON, as the arguments of a call are, also what is below the name of a
    secret."""
    return secret_masking.mask_json_text(_own_masked(text))


def _own_masked(text: str) -> str:
    for secret in _own_secrets():
        text = text.replace(secret, secret_masking.MASK)
    return text


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
            return mask_json_text(value)
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


def recorded_digests(sent: str) -> tuple[str, ...]:
    """Return the digests that a call with these arguments can have in the record: of all of them, masked, and if they
    are large, of the part that an event contains."""
    masked = mask_json_text(sent)
    part = truncate(masked)
    return (text_digest(masked),) if part == masked else (text_digest(masked), text_digest(part))
