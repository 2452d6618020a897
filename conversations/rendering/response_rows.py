"""Draw requests of the Open Responses API as rows, and their answers as thin lines. Called by `event_renderer`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from conversations.core import hidden_characters, principals
from conversations.core.plain_text import counted
from conversations.rendering import event_rows, message_body, richtext
from conversations.rendering.event_rows import ParsedEvent, Repeat, view
from conversations.rendering.message_body import Content
from conversations.rendering.run_rows import RunLine

SHOWN = 3  # items in sight; earlier ones fold away
MAX_SHOWN = 6  # of them where the user's last words are among these
MAX_DRAWN = 40  # items drawn at all: the rest is in the JSON
WORD = 200  # characters of a name
_KNOWN = message_body.ENVELOPE | frozenset(
    {"response_id", "previous_response_id", "model", "input", "instructions", "tools", "hosted", "tool_choice"}
    | {"allowed_tools", "params", "store", "stream", "conversation"}
)
_ENDED = message_body.ENVELOPE | frozenset(
    {"response_id", "status", "output", "error", "incomplete_details", "model", "tool_call"}
)
_STATES = {"completed": "s-done", "incomplete": "s-unknown", "failed": "s-failed", "cancelled": "s-rejected"}

Json = Mapping[str, Any]  # any JSON: a claim may hold anything


class Item(NamedTuple):
    """One input item: what it is, and its text or JSON."""

    label: str
    name: Markup | None = None
    words: Content | None = None
    tree: Markup | None = None


class ResponseTool(NamedTuple):
    """An offered tool, and who executes it."""

    name: Markup
    where: str


class Request(NamedTuple):
    """The context of templates/events/response_received.html."""

    model: Markup
    earlier: list[Item]
    items: list[Item]
    left_out: int
    instructions: Content | None
    tools: list[ResponseTool]
    facts: list[Markup]
    raw: Markup


@view
def response_received(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw a client's request."""
    body = read.body
    entries = list(_objects(body.get("input")))
    saved = [_item(entry) for entry in entries[-MAX_DRAWN:]]
    last_request = max((at for at, item in enumerate(saved) if not item.label), default=0)  # what the user said last
    shown = max(SHOWN, min(MAX_SHOWN, len(saved) - last_request))
    request = Request(
        model=richtext.inline(event_rows.line(body.get("model"))[:WORD] or "unknown"),
        earlier=saved[:-shown],
        items=saved[-shown:],
        left_out=len(entries) - len(saved),
        instructions=_content_text(body.get("instructions")),
        tools=list(_tools(body)),
        facts=list(_facts(body)),
        raw=message_body.tree({name: value for name, value in body.items() if name in _KNOWN}),
    )
    fields = event_rows.row(read, sender=None if read.payload.sender else event_rows.default_speaker(read.event.kind))
    return event_rows.render("response_received", fields, request, message_body.more(body, _KNOWN))


@view
def response_completed(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw the end of a response."""
    body = read.body
    status = event_rows.line(body.get("status"))
    calls = sum(1 for item in _objects(body.get("output")) if item.get("type") == "function_call")
    error, incomplete = body.get("error"), body.get("incomplete_details")
    reason = incomplete.get("reason") if isinstance(incomplete, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    details = (
        message_body.usage(body.get("usage")),
        f"{counted(calls, 'call')} for the client" if calls else "",
        hidden_characters.spelled_out(event_rows.line(reason)[:WORD]),
    )
    is_claim = read.event.run is None
    line = RunLine(
        _STATES.get(status, "s-unknown"),
        f"responded to the client: {hidden_characters.spelled_out(status)[:WORD] or 'status unknown'}",
        richtext.inline(event_rows.line(body.get("response_id"))[:WORD] or "no ID"),
        facts=tuple(filter(None, details)),
        tag=event_rows.CLAIM if is_claim else "",
        fault=richtext.plain(message[:8000]) if isinstance(message, str) and message else None,
    )
    shown = {name: body[name] for name in ("output", "error", "incomplete_details") if body.get(name)}
    state = "failed" if status == "failed" and not is_claim else ""
    fields = event_rows.row(read, state=state, sender=None if read.payload.speaker else "system")
    return event_rows.render(
        "run", fields, line, message_body.tree(shown) if shown else message_body.more(body, _ENDED)
    )


@view
def response_deleted(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw who deleted a response."""
    body = read.body
    by = event_rows.line(body.get("by"))[:WORD]
    line = RunLine(
        "s-rejected",
        f"deleted a response for {hidden_characters.spelled_out(by)}" if by else "deleted a response",
        richtext.inline(event_rows.line(body.get("response_id"))[:WORD] or "no ID"),
        tag="" if principals.is_people(read.event.principal) else event_rows.CLAIM,
    )
    fields = event_rows.row(read, sender=None if read.payload.speaker else "system")
    return event_rows.render("run", fields, line, message_body.more(body, _ENDED | {"by"}))


def _item(item: Json) -> Item:
    kind, name = item.get("type"), event_rows.line(item.get("name"))[:WORD]
    call_id = richtext.inline(event_rows.line(item.get("call_id"))[:WORD])
    match kind:
        case "message" | None:
            return _message(item)
        case "function_call":
            arguments = item.get("arguments")
            tree = message_body.result(arguments) if isinstance(arguments, str) else message_body.tree(arguments)
            return Item("called", richtext.inline(name or "unnamed"), tree=tree)
        case "function_call_output":
            output = item.get("output")
            return Item("output of call", call_id, _content_text(output)) if output else Item("output of call", call_id)
        case "reasoning":
            return Item("thought", words=_content_text(item.get("summary")))
        case "compaction":
            return Item("compacted earlier conversation")
        case "item_reference":
            return Item("reference to", richtext.inline(event_rows.line(item.get("id"))[:WORD] or "nothing"))
    return Item("item", richtext.inline(event_rows.line(kind)[:WORD] or "unknown"), tree=message_body.tree(item))


def _message(item: Json) -> Item:
    role = event_rows.line(item.get("role"))[:WORD]
    return Item(
        "" if role == "user" else hidden_characters.spelled_out(role or "nobody"),
        words=_content_text(item.get("content")),
    )


def _content_text(content: object) -> Content | None:
    """Draw a text, or the texts of parts; a picture or a file only by its kind. Nothing is fetched or embedded."""
    if isinstance(content, str):
        return message_body.words(content[:20_000]) if content.strip() else None
    text = "\n\n".join(_part(part) for part in _objects(content))
    return message_body.words(text[:20_000]) if text else None


def _part(part: Json) -> str:
    for name in ("text", "refusal"):
        if isinstance(part.get(name), str):
            return str(part[name])
    kind = event_rows.line(part.get("type")).removeprefix("input_") or "part"
    data = next((part[name] for name in ("image_url", "file_data", "file_url", "video_url") if part.get(name)), "")
    where = str(part.get("filename") or "")[:WORD]
    if isinstance(data, str) and data:
        where += (
            f" {len(data):,} characters of data" if data[:5] == "data:" or "file_data" in part else f" {data[:WORD]}"
        )
    return f"`{kind}:{where.replace('`', ' ') or ' empty'}`"


def _tools(body: Json) -> Iterator[ResponseTool]:
    hosted = body.get("hosted")
    names = {name for name in hosted if isinstance(name, str)} if isinstance(hosted, list) else set()
    for tool in _objects(body.get("tools"))[:MAX_DRAWN]:
        name, kind = event_rows.line(tool.get("name")), event_rows.line(tool.get("type"))
        is_hosted = name in names or kind != "function"
        yield ResponseTool(richtext.inline((name or kind or "unnamed")[:WORD]), "hosted" if is_hosted else "external")


def _facts(body: Json) -> Iterator[Markup]:
    """Yield the other options of a request, a few words each."""
    choice, allowed, params = body.get("tool_choice"), body.get("allowed_tools"), body.get("params")
    if isinstance(choice, dict):
        yield richtext.inline(f"must call {event_rows.line(choice.get('name'))[:WORD]}")
    elif choice not in (None, "auto"):
        yield richtext.inline(f"tools: {event_rows.line(choice)[:WORD]}")
    if isinstance(allowed, list):
        yield richtext.inline(f"only {', '.join(event_rows.line(name)[:WORD] for name in allowed[:MAX_DRAWN])}")
    for name, value in (params if isinstance(params, dict) else {}).items():
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            yield richtext.inline(f"{name.replace('_', ' ')} {value}"[:WORD])
    if body.get("store") is False:
        yield richtext.inline("not stored for continuation")
    if previous := event_rows.line(body.get("previous_response_id")):
        yield richtext.inline(f"continues {previous[:WORD]}")


def _objects(value: object) -> Sequence[Json]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
