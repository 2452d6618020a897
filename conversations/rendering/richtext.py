"""Untrusted text as HTML: Markdown limited to an allow-list, or plain text with every character visible.

Nothing here fetches, executes or evaluates (law G). HTML in the text stays text, an image becomes its address in words,
a link shows its target. Rendering is bounded by design, not by a timer: `cost` predicts the µs from the text's
contents, and above `BUDGET_US` the text is drawn plain. Measured over the corpus of
tests/rendering/test_richtext_bounds.py: 30 ms at worst rich (lazy lines of a quote), 32 ms plain at 256 kB; a usual
message takes 8 µs without Markdown, 0.1 to 2 ms with it.
"""

import re
from collections.abc import MutableMapping, Sequence
from html import unescape
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup

from conversations.core import hidden_characters
from conversations.core.html_escape import escape, safe
from conversations.rendering import ansi_codes, highlight

BUDGET_US = 25_000  # what Markdown may cost by our estimate; with code colours on top the bound of 50 ms holds
MAX_RICH = 16_000  # characters
SCHEMES = frozenset({"http", "https", "mailto"})

_SPECIAL = re.compile(r"[\\`*_\[\]<>&~|]|://|^[ \t+\-=#]|^\d{1,9}[.)]|[ \t]$", re.MULTILINE)
_NESTED = re.compile(r"^[ \t]*(?:>[ \t]?|(?:[-+*]|\d{1,9}[.)])[ \t]{1,8}){4}", re.MULTILINE)
_MARKER = re.compile(r"(?:>|[-+*]|\d[.)])(?=[ \t>])")  # of quotes and lists; each opens a block
_RULER = re.compile(r"^[ \t]*[|:\-][ \t|:\-]*$", re.MULTILINE)
_URL = re.compile(r"https?://[^\s<>\"'`|\\^{}]{1,2000}")
_SIGNS = re.compile(r"[\x00-/:-@\[-`{-\x7f\s]+")  # what Markdown may take as its own, and spaces
_NUMBER = re.compile(r"^[ >*+\t-]*(\d{1,9})[.)](?=\s|$)", re.MULTILINE)  # of a list's item
_TAG = re.compile(r"<[^>]*>")
_NEWLINE = re.compile(r"\r\n?")

Env = MutableMapping[str, Any]  # markdown-it's own scratch: any value


def render(text: str) -> Markup:
    """Render a message: Markdown if it has any and is within bounds, else paragraphs or plain text."""
    if len(text) > MAX_RICH:
        return plain(text)
    text = ansi_codes.strip(_NEWLINE.sub("\n", text))
    if _SPECIAL.search(text) is None:
        return safe(hidden_characters.to_html(_paragraphs(text)))
    if cost(text) > BUDGET_US:
        return plain(text)
    html = _cleaner.clean(_markdown.render(text, {}))
    return safe(hidden_characters.to_html(html)) if _tells_all(text, html) else plain(text)


def plain(text: str) -> Markup:
    """Render text as it is: line breaks kept, terminal colors from the fixed list, every character visible."""
    return safe(f'<p class="plain">{hidden_characters.to_html(ansi_codes.draw(_NEWLINE.sub(chr(10), text)))}</p>')


def inline(text: str) -> Markup:
    """Render a name or another short text: escaped, every character visible, no elements except for hidden
    characters."""
    return safe(hidden_characters.to_html(escape(text)))


def one_line(text: str, most: int) -> Markup:
    """Render the beginning of a text on one line of at most `most` characters, as `inline` does."""
    line = " ".join(text[: 4 * most].split())
    return inline(line if len(line) <= most else f"{line[: most - 1]}…")


def cost(text: str) -> float:
    """Predict the cost of Markdown in µs; infinite if the text is too long or too deeply nested.

    The weights are what markdown-it-py takes per character, line, sign and table cell at its worst.
    """
    if len(text) > MAX_RICH or _NESTED.search(text):
        return float("inf")
    lines = text.count("\n") + 1
    signs = sum(map(text.count, "*_~`&\\]")) + text.count("#") // 4
    links = sum(map(text.count, ("[", "<", "://")))
    cells = 0
    if _RULER.search(text):
        cells = lines * (1 + max(line.count("|") for line in text.split("\n")))
    markers = len(_MARKER.findall(text))
    return 1.2 * len(text) + 22 * lines + 6 * signs + 24 * links + 30 * markers + 12 * cells


def _tells_all(text: str, html: str) -> bool:
    """Return whether every letter, digit and sign beyond ASCII is still visible. Markdown drops some, such as a table's
    cells without a column: a way to tell a model something that the person watching does not see."""
    shown = unescape(_TAG.sub("", html))
    return len(_SIGNS.sub("", shown)) >= len(_SIGNS.sub("", unescape(text))) - _drawn_by_lists(text)


def _drawn_by_lists(text: str) -> int:
    """Return how many digits of the text are numbers of list items that a list draws itself: the first one as it is,
    then those that go on from an earlier one. Any other is drawn with another number."""
    drawn, numbers = 0, set[int]()
    for match in _NUMBER.finditer(text):
        number = int(match[1])
        if not numbers or number < 2 or numbers & {number, number - 1}:
            drawn += len(match[1])
            numbers.add(number)
    return drawn


def _paragraphs(text: str) -> str:
    """Return what Markdown would make of text without any markup: paragraphs at blank lines, breaks at other line
    ends."""
    blocks = (escape(block).replace("\n", "<br>\n") for block in re.split(r"\n{2,}", text.strip("\n")) if block)
    return "".join(f"<p>{block}</p>\n" for block in blocks)


def _is_allowed(url: str) -> bool:
    scheme, mark, rest = url.partition(":")
    return bool(mark and rest) and scheme.lower() in SCHEMES and url.isascii() and url.isprintable()


def _trimmed(url: str) -> str:
    """Return an address without the punctuation that ends a sentence, and without a bracket opened before it."""
    url = url.rstrip(".,;:!?*_]")
    return url[:-1] if url.endswith(")") and url.count(")") > url.count("(") else url


def _anchor(href: str) -> str:
    return f'<a href="{escape(href)}" rel="noopener noreferrer nofollow" target="_blank">'


def _target(href: str, text: str, title: str = "") -> str:
    """Return a link's full target, unless its text is just that; and its title, which would otherwise show on hover."""
    target = "" if text == href else f' <span class="target">{escape(href)}</span>'
    return f"{target} ({escape(title)})" if title else target


class _Renderer(RendererHTML):
    """markdown-it's renderer: links show their target, headings stay out of the page's outline, code is highlighted."""

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        content = tokens[idx].content
        if "://" not in content or "link" in env:
            return escape(content)
        parts, end = [], 0
        for match in _URL.finditer(content):
            url = _trimmed(match.group())
            href = _markdown.normalizeLink(url)
            if not _is_allowed(href):
                continue
            parts += [escape(content[end : match.start()]), _anchor(href), escape(url), "</a>", _target(href, url)]
            end = match.start() + len(url)
        return "".join(parts) + escape(content[end:])

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        env["link"] = idx
        return _anchor(str(tokens[idx].attrs["href"]))

    def link_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        start = env.pop("link")
        attrs, text = tokens[start].attrs, "".join(token.content for token in tokens[start + 1 : idx])
        return "</a>" + _target(str(attrs["href"]), text, str(attrs.get("title", "")))

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        return f'<p class="heading-{tokens[idx].tag[1]}">'

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        return "</p>\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        code = tokens[idx].content
        info = tokens[idx].info.strip()
        language = info.split(maxsplit=1)[0] if info else ""
        env["signs"] = env.get("signs", 0) + (highlight.signs(code) if language else 0)
        drawn = highlight.highlight(code, language) if env["signs"] <= highlight.MAX_SIGNS else escape(code)
        caption = f'<span class="caption">{escape(info)}</span>' if info else ""
        return f"<pre>{caption}<code>{drawn}</code></pre>\n"

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: Env) -> str:
        return f"<pre><code>{escape(tokens[idx].content)}</code></pre>\n"


def _make_markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": 20}, renderer_cls=_Renderer)
    markdown.enable(["table", "strikethrough"])
    markdown.disable("image")  # `![words](address)` leaves `!` and a link: nothing loads by itself
    markdown.disable("reference")  # `[x]: words` would vanish, and with it what it says
    markdown.validateLink = _is_allowed  # type: ignore[method-assign]  # the documented way to choose the schemes
    return markdown


_markdown = _make_markdown()
_cleaner = nh3.Cleaner(
    tags={"p", "br", "em", "strong", "s", "code", "pre", "ul", "ol", "li", "blockquote", "a", "hr", "span"}
    | {"table", "thead", "tbody", "tr", "th", "td"},
    attributes={"a": {"href", "rel", "target"}, "ol": {"start"}},
    allowed_classes={
        "p": {f"heading-{rank}" for rank in range(1, 7)},
        "span": {"target", "caption", *highlight.CLASSES},
    },
    url_schemes=set(SCHEMES),
    link_rel=None,  # the renderer writes it
    strip_comments=True,
)
