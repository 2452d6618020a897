"""Make invisible characters visible: controls, bidi overrides, zero-width and tag characters become tokens.

They reverse a sentence, hide an instruction to a model in a harmless line, or make two names look the same. Joiners
stay where a script or an emoji needs them (Unicode 16, sections 23.2 and 23.4; UTS 51 for emoji sequences).
"""

import json
import re
import unicodedata
from collections.abc import Callable

from conversations.core.html_escape import escape

MAX_TOKENS = 300  # in one text; what follows becomes U+FFFD, so that a hostile text cannot grow into megabytes
_RUN = 3  # characters drawn one by one; a longer run is one token that tells its length

_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_EMOJI = "\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff"
_JOINING = (  # scripts whose letters change shape at a joiner: Arabic to N'Ko, Indic, Myanmar, Khmer, Mongolian
    "\u0600-\u060f\u0620-\u08ff\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u1800-\u180a"
    "\u1810-\u18af\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc"
)
_IDEOGRAPH = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_FLAG = "\U0001f3f4\U000e0067\U000e0062(?:{})\U000e007f".format(  # England, Scotland, Wales
    "|".join("".join(chr(0xE0000 + ord(c)) for c in region) for region in ("eng", "sct", "wls"))
)
_KEPT = (
    f"{_FLAG}|(?<=[{_EMOJI}])\u200d(?=[{_EMOJI}])|(?<=[{_JOINING}])[\u200c\u200d](?![\u200c\u200d])"
    f"|(?<=[#*0-9©®\u203c-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f](?![\ufe00-\ufe0f])"
    f"|(?<=[{_IDEOGRAPH}])[\ufe00-\ufe0f\U000e0100-\U000e01ef](?![\ufe00-\ufe0f\U000e0100-\U000e01ef])"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180f]"
)
_SUSPECT = re.compile(f"[{_HIDDEN}]")
_FOUND = re.compile(f"{_KEPT}|([{_HIDDEN}]+)")
_NAMES = {0x00: "NULL", 0x07: "BELL", 0x08: "BACKSPACE", 0x0D: "CARRIAGE RETURN", 0x1B: "ESCAPE", 0x7F: "DELETE"}


def is_clean(text: str) -> bool:
    """Return whether the text has no such character, not even a joiner that stays."""
    return _SUSPECT.search(text) is None


def to_html(html: str) -> str:
    """Replace each character by a `<span class="hidden-char">`. For finished HTML whose attributes are ASCII."""
    return _replace(html, _span) if _SUSPECT.search(html) else html


def to_json_html(html: str) -> str:
    """Replace each character by its JSON escape (`\\u202e`) in a `<span class="hidden-char">`: copied text stays
    the same JSON."""
    return _replace(html, _json_span, lambda match: _json_escape(match.group())) if _SUSPECT.search(html) else html


def spelled_out(text: str) -> str:
    """Replace each character by `[U+202E]` and the like: for text nodes, attributes and titles, which hold no
    elements."""
    return _replace(text, lambda run: f"[{_short(run)}]") if _SUSPECT.search(text) else text


def title(character: str) -> str:
    """Return the character's Unicode name."""
    code = ord(character)
    if code < 0x20 or 0x7F <= code < 0xA0:
        return _NAMES.get(code, "CONTROL CHARACTER")
    return unicodedata.name(character, "UNASSIGNED OR INVISIBLE CHARACTER")


def _replace(text: str, draw_run: Callable[[str], str], rest: str | Callable[[re.Match[str]], str] = "\ufffd") -> str:
    parts: list[str] = []
    end = count = 0
    for match in _FOUND.finditer(text):
        if match.group(1) is None:
            continue
        if count == MAX_TOKENS:
            return "".join(parts) + _SUSPECT.sub(rest, text[end:])
        parts += (text[end : match.start()], draw_run(match.group()))
        end, count = match.end(), count + 1
    return "".join(parts) + text[end:]


def _span(run: str) -> str:
    if len(run) <= _RUN and not _spelled(run):
        return "".join(f'<span class="hidden-char" title="{title(c)}">U+{ord(c):04X}</span>' for c in run)
    names = ", ".join(title(c) for c in run[:_RUN])
    return f'<span class="hidden-char" title="{len(run):,} invisible: {names}">{escape(_short(run))}</span>'


def _json_span(run: str) -> str:
    return f'<span class="hidden-char" title="{title(run[0])}">{_json_escape(run)}</span>'


def _json_escape(run: str) -> str:
    return json.dumps(run)[1:-1]


def _short(run: str) -> str:
    """Describe a run on one line: what tag characters spell, else one character and its count, else the count."""
    if spelled := _spelled(run):
        return f"{len(run):,} tag characters: {spelled}"
    if len(set(run)) == 1:
        return f"U+{ord(run[0]):04X}" + (f" ×{len(run):,}" if len(run) > 1 else "")
    if len(run) <= _RUN:
        return " ".join(f"U+{ord(c):04X}" for c in run)
    return f"{len(run):,} invisible from U+{ord(run[0]):04X}"


def _spelled(run: str) -> str:
    """Return the ASCII that tag characters stand for (U+E0020 to U+E007E), at most 400; empty for none."""
    return "".join(chr(ord(c) - 0xE0000) for c in run[:400] if 0xE0020 <= ord(c) <= 0xE007E)
