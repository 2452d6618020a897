"""What a browser posts of a form that nobody filled in: the HTML standard's parsing, sanitizing and line ends."""

from html.parser import HTMLParser


def posted_form(html: str, action: str) -> dict[str, str]:
    """Return the values of the fields of the form with this action, by name, without its buttons."""
    pairs = sent_pairs(html, action)
    assert pairs, f"no form {action}"
    return dict(pairs)


def sent_pairs(html: str, action: str | None = None) -> list[tuple[str, str]]:
    """Return the names and values that the form with this action sends, or all forms of a page, in order."""
    form = _Form(action)
    form.feed(html.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd"))
    return [(name, value.replace("\n", "\r\n")) for name, value in form.pairs]


class _Form(HTMLParser):
    def __init__(self, action: str | None) -> None:
        super().__init__()
        self.pairs: list[tuple[str, str]] = []
        self._action, self._is_inside = action, action is None
        self._name, self._text, self._options = "", "", list[tuple[str, bool]]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._is_inside = self._action in (None, given.get("action"))
        elif tag in ("textarea", "select"):
            self._name, self._text, self._options = given.get("name", ""), "", []
        elif tag == "option":
            self._options.append((given["value"], "selected" in given))
        elif tag == "input" and (given.get("type") not in ("radio", "checkbox") or "checked" in given):
            self._add(given.get("name", ""), given.get("value", "").replace("\n", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._is_inside = self._action is None
        elif tag == "textarea":  # the parser drops a newline directly after the start tag
            self._add(self._name, self._text.removeprefix("\n"))
        elif tag == "select":
            for value in [value for value, is_selected in self._options if is_selected] or [self._options[0][0]]:
                self._add(self._name, value)

    def handle_data(self, data: str) -> None:
        self._text += data

    def _add(self, name: str, value: str) -> None:
        if name and self._is_inside:
            self.pairs.append((name, value))
