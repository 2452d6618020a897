"""Reads drawn HTML as a strict reader would: which elements and attributes, what text, which addresses."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlsplit

OURS = re.compile(
    r"fork/\?event=\d+|\?view=lanes&event=\d+#e\d+|/calls/[~\w.%-]{1,200}/"
    r"|/conversations/(?:(?:[\w.~!$&'()*+,;=:@-]|%[0-9A-F]{2}){1,300}|~[\w-]{1,1100})"  # one segment
    r"/(fork/)?(\?event=\d+(#e\d+)?)?",
    re.ASCII,
)
VOID = {"br", "hr", "use", "path"}
ALLOWED = {
    "*": {"class", "dir", "title", "id", "hidden"},
    "article": {
        "data-item",
        "data-seq",
        "data-last",
        "data-kind",
        "data-level",
        "data-state",
        "data-sender",
        "data-group",
        "data-by",
        *(
            "data-at",
            "data-far",
            "data-way",
            "data-recipient",
            "data-calls",
            "data-to-all",
            "data-hue",
            "aria-label",
        ),  # in lanes
    },
    "a": {"data-to", "href", "rel", "target", "aria-label"},
    "span": {
        "data-delivery",
        "data-kind",
        "data-hue",
        "data-size",
        "data-state",
        "data-tone",
        "aria-hidden",
        "data-label",
        *("data-live-text", "aria-live"),
    },
    "b": {"data-hue"},
    "svg": {"role", "aria-label", "aria-hidden"},
    "use": {"href"},
    "time": {"datetime", "data-clock"},
    "div": {"data-shown", "data-path", "data-source", "data-copies", "aria-live"},
    "details": {"open", "data-state", "data-status"},
    "summary": {"data-count", "data-end", "data-label", "aria-label"},
    "button": {"type", "data-copy", "aria-label"},
    "p": {"data-live-text"},
    "ol": {"start"},
    "permission-gate": {"data-right"},
}
BARE = {"bdi", "del", "ul", "li", "em", "strong", "s", "code", "pre", "blockquote", "hr", "br", "dl", "dt", "dd"} | {
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}


@dataclass
class Seen(HTMLParser):
    """What a parser found. `faults` names every element, attribute or address outside the allow-list."""

    html: str
    texts: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(str(self.html))
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self.open]

    @property
    def text(self) -> str:
        """All text, in order."""
        return "".join(self.texts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ALLOWED.keys() | BARE:
            self.faults.append(f"<{tag}>")
        allowed = ALLOWED["*"] | ALLOWED.get(tag, set())
        self.faults += [f"<{tag} {name}={value!r}>" for name, value in attrs if name not in allowed]
        if tag == "a" or tag == "use":
            self._address(tag, dict(attrs).get("href") or "", dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> out of place")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self.faults.append(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        self.faults.append(f"<?{data}>")

    def _address(self, tag: str, href: str, attrs: dict[str, str | None]) -> None:
        if tag == "use":
            if not href.startswith("#i-"):
                self.faults.append(f"<use {href}>")
        elif (
            href and not href.startswith("?event=") and not OURS.fullmatch(href)
        ):  # without an address (the cleaner took it) it is no link
            self.links.append(href)
            is_known = urlsplit(href).scheme in ("http", "https", "mailto")
            if not is_known or attrs.get("rel") != "noopener noreferrer nofollow" or attrs.get("target") != "_blank":
                self.faults.append(f"<a {attrs}>")
