"""The progress of a command: one line that is overwritten on a terminal, a line every five seconds elsewhere."""

import time

from django.core.management.base import OutputWrapper


class ProgressLine:
    """Shows two numbers in a text with two `{}`."""

    def __init__(self, out: OutputWrapper, text: str) -> None:
        self._out, self._text = out, text
        self._is_terminal = out.isatty()
        self._every = 0.2 if self._is_terminal else 5.0  # seconds
        self._told_at = time.monotonic()
        self._has_told = False

    def tell(self, first: int, other: int) -> None:
        """Show the progress, unless it was shown a moment ago."""
        if time.monotonic() - self._told_at < self._every:
            return
        line = self._text.format(f"{first:,}", f"{other:,}")
        self._out.write(line, ending="\r" if self._is_terminal else "\n")
        self._told_at, self._has_told = time.monotonic(), True

    def end(self) -> None:
        """End the line."""
        if self._has_told and self._is_terminal:
            self._out.write("")
