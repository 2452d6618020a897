"""What a browser sends of a page's forms: names and values, in order."""

from html.parser import HTMLParser


class SentForm(HTMLParser):
    """Collects what the inputs and selects of a page would send. `pairs`: without empty values."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.controls: list[tuple[str, str]] = []
        self._select: tuple[str, list[tuple[str, bool]]] = ("", [])
        self.feed(html)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return the names and values that are not empty."""
        return [(name, value) for name, value in self.controls if value]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take an input that counts; note a select and its options."""
        fields = dict(attrs)
        name, value = fields.get("name") or "", fields.get("value") or ""
        if tag == "select":
            self._select = name, []
        elif tag == "option":
            self._select[1].append((value, "selected" in fields))
        elif tag == "input" and name and (fields.get("type") not in ("checkbox", "radio") or "checked" in fields):
            self.controls.append((name, value))

    def handle_endtag(self, tag: str) -> None:
        """Take the selected option of a select, or its first."""
        if tag == "select":
            name, options = self._select
            self.controls += [(name, value) for value, is_selected in options if is_selected] or [(name, options[0][0])]
            self._select = "", []
