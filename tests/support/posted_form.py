"""What a browser posts of a form that nobody filled in: the HTML standard's parsing, sanitizing and line ends."""

from html.parser import HTMLParser


def posted_form(html: str, action: str) -> dict[str, str]:
    """Return the values of the fields of the form with this action, by name, without its buttons."""
    form = _Form(action)
    form.feed(html.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd"))
    assert form.values, f"no form {action}"
    return {name: value.replace("\n", "\r\n") for name, value in form.values.items()}


class _Form(HTMLParser):
    def __init__(self, action: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._action, self._is_inside, self._name = action, False, ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._is_inside = given.get("action") == self._action
        elif self._is_inside and tag in ("input", "textarea", "select"):
            self._begin(tag, given)
        elif self._is_inside and tag == "option" and ("selected" in given or self._name not in self.values):
            self.values[self._name] = given["value"]  # the first, unless another is selected

    def _begin(self, tag: str, given: dict[str, str]) -> None:
        self._name = given.get("name", "")
        if tag == "textarea":
            self.values[self._name] = ""
        elif tag == "input" and (given.get("type") not in ("radio", "checkbox") or "checked" in given):
            self.values[self._name] = given.get("value", "").replace("\n", "")

    def handle_endtag(self, tag: str) -> None:
        self._is_inside &= tag != "form"
        if tag == "textarea" and self._is_inside:  # the parser drops a newline directly after the start tag
            self.values[self._name] = self.values[self._name].removeprefix("\n")
        if tag != "option":
            self._name = ""

    def handle_data(self, data: str) -> None:
        if self._name and self.lasttag == "textarea":
            self.values[self._name] += data
