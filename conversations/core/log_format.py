"""The contents of a log line: the ids of the work in progress, and no secrets. `dashboard.settings` installs it
everywhere.

Ids come from `log_context(request=…)` around the work, or from `extra={"conversation": …}` of one line.
"""

import json
import logging
import re
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import MappingProxyType

from conversations.core.secret_masking import mask

IDS = ("request", "conversation", "run", "call")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")  # all but tab and newline

_NONE: Mapping[str, str] = MappingProxyType({})
_current_ids: ContextVar[Mapping[str, str]] = ContextVar("log_ids", default=_NONE)


@contextmanager
def log_context(**ids: str) -> Iterator[None]:
    """Add these ids to every line logged inside the block: `request`, `conversation`, `run`, `call`."""
    token = _current_ids.set({**_current_ids.get(), **ids})
    try:
        yield
    finally:
        _current_ids.reset(token)


class MaskingFilter(logging.Filter):
    """Finish and mask the record's text and traceback here, so that no formatter sees more; add the ids."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; let it pass."""
        record.msg, record.args = mask(record.getMessage()), None
        if record.exc_info and record.exc_info[0] is not None:
            record.exc_text = mask("".join(traceback.format_exception(*record.exc_info)).rstrip())
            record.exc_info = None
        if record.stack_info:
            record.stack_info = mask(record.stack_info)
        context = _current_ids.get()
        for name in IDS:
            if not isinstance(getattr(record, name, None), str | int):  # Django puts the whole request there
                setattr(record, name, context.get(name, ""))
        return True


class QuietFilter(logging.Filter):
    """Turn what any stranger can cause, such as a foreign host name or too large a form, into a one-line warning."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record; let it pass."""
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.exc_info = record.exc_text = None
        return True


class TextFormatter(logging.Formatter):
    """One line for people: time, level, logger, message, then `key=value` of the ids."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a traceback follows on lines of its own. Foreign text cannot move the cursor or begin a
        line."""
        ids = "".join(f" {name}={value}" for name, value in ids_of(record).items())
        message = record.getMessage().replace("\n", "\\n")
        line = f"{_time(record)} {record.levelname} {record.name}: {message}{ids}"
        return _CONTROLS.sub(_spelled, "\n".join(filter(None, [line, record.exc_text, record.stack_info])))


class JsonFormatter(logging.Formatter):
    """One JSON object per line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        """Write it."""
        fields = {"at": _time(record), "level": record.levelname.lower(), "logger": record.name}
        fields |= {"message": record.getMessage(), **ids_of(record), "process": str(record.process or "")}
        more = {"exception": record.exc_text, "stack": record.stack_info}
        line = json.dumps(fields | {name: text for name, text in more.items() if text}, ensure_ascii=False)
        return _CONTROLS.sub(_spelled, line)


def ids_of(record: logging.LogRecord) -> dict[str, str]:
    """Return the ids of a log record, each as one word."""
    ids = {name: str(getattr(record, name)) for name in IDS if getattr(record, name, None)}
    return {name: re.sub(r"[\s\x00-\x1f\x7f]", "_", value)[:200] for name, value in ids.items()}


def _spelled(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"  # as JSON spells it


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
