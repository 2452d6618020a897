"""Terminal escapes in tool output: colors become CSS classes from a fixed list, cursor moves are dropped, the rest
stays visible."""

import re

from conversations.core.html_escape import escape

MAX_SPANS = 400  # colour changes drawn in one text; later ones are dropped

_SGR = re.compile(r"\x1b\[([0-9;]{0,40})m")
_CSI = re.compile(r"\x1b\[[0-9;:<=>?]{0,40}[ -/]{0,4}[@-~]")
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_OPERANDS = {5: 1, 2: 3}  # behind 38 and 48: 256 colors `5;n`, true colors `2;r;g;b` (ECMA-48, 8.3.117)


def strip(text: str) -> str:
    """Remove colors and cursor moves (CSI). Other escapes can carry hidden text, so they stay and are drawn as
    U+001B."""
    return _CSI.sub("", text) if "\x1b" in text else text


def draw(text: str) -> str:
    """Return escaped HTML with `<span class="ansi-red">` and the like. 256 and true colors are dropped."""
    if "\x1b" not in text:
        return escape(text)
    pieces = _SGR.split(text, MAX_SPANS)
    parts, style = [escape(strip(pieces[0]))], ""
    for codes, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        style = _styled(style, codes)
        html = escape(strip(piece))
        parts.append(f'<span class="{style}">{html}</span>' if style and html else html)
    return "".join(parts)


def _styled(style: str, codes: str) -> str:
    classes = set(style.split())
    numbers = iter([int(code or 0) for code in codes.split(";")])
    for number in numbers:
        if number == 0:
            classes.clear()
        elif number == 1:
            classes.add("ansi-bold")
        elif 30 <= number <= 39 or 90 <= number <= 97:
            classes &= {"ansi-bold"}
            if number not in (38, 39):
                classes.add(f"ansi-{_COLOURS[number % 10]}")
        if number in (38, 48):
            for _ in range(_OPERANDS.get(next(numbers, 0), 0)):
                next(numbers, 0)
    return " ".join(sorted(classes))
