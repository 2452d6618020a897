"""The base of commands that print recorded text (ids, titles, reasons), which a terminal must not obey (law G)."""

import sys
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, OutputWrapper


class PlainOutput(OutputWrapper):
    """Writes control characters and other invisible ones as `[U+001B]`; line ends and tabs stay."""

    def write(  # type: ignore[override]  # Django's own signature
        self, msg: str = "", style_func: Callable[[str], str] | None = None, ending: str | None = None
    ) -> None:
        """Write a message; only `ending` may move the cursor."""
        super().write(msg if _is_plain(msg) else _spelled_out(msg), style_func, ending)


class RecordedTextCommand(BaseCommand):
    """A command whose output and errors may contain what others have written."""

    requires_system_checks = ()  # they are run by the tests; they import every page

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        style = self.stderr.style_func
        self.stdout, self.stderr = PlainOutput(sys.stdout), PlainOutput(sys.stderr)
        self.stderr.style_func = style

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run; `stdout` and `stderr` are streams to write to instead of the process's own."""
        for name in ("stdout", "stderr"):
            if stream := options.pop(name, None):
                setattr(self, name, PlainOutput(stream))
        return super().execute(*args, **options)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()


def _spelled_out(text: str) -> str:
    from conversations.core.hidden_characters import spelled_out  # its patterns take 20 ms, which few commands need

    return spelled_out(text)
