"""What lists whose filters live in the address have in common: the filters in force, and the file of what matches."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

from django.http import HttpRequest, StreamingHttpResponse
from markupsafe import Markup

from conversations.errors import NotFound
from conversations.exports import TYPES, Form
from conversations.fragments import richtext
from conversations.toolcalls.filters import LAST

FIELDS = {"from": "since", "to": "until"}  # how the filters call what the address calls otherwise
Chip = tuple[str, Markup, str]


def chips(
    pairs: Sequence[tuple[str, str]], names: Mapping[str, str], leave: Callable[[str], str], hidden: Sequence[str] = ()
) -> list[Chip]:
    """Answer the filters in force: name, what is asked for, and the address without it; none of `hidden`."""
    made = []
    for field in dict.fromkeys(FIELDS.get(name, name) for name, _ in pairs if name not in hidden):
        said = [text for name, text in pairs if FIELDS.get(name, name) == field]
        words = LAST[said[0]][0] if field == "last" else ", ".join(said)
        made.append((names[field], richtext.inline(words[:120]), leave(field)))
    return made


def form_of(text: str) -> Form:
    """Read which kind of file is asked for. Raises `NotFound`."""
    if text not in TYPES:
        raise NotFound("expected csv or jsonl")
    return "csv" if text == "csv" else "jsonl"


def attached(
    request: HttpRequest, name: str, form: Form, export: Callable[[], AsyncIterator[bytes]]
) -> StreamingHttpResponse:
    """Send a file in pieces, to a GET alone."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"', "X-Accel-Buffering": "no"}
    pieces: AsyncIterator[bytes] | Iterator[bytes] = iter(()) if request.method == "HEAD" else export()
    return StreamingHttpResponse(pieces, content_type=TYPES[form], headers=headers)
