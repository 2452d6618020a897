"""What a client asked for and what it was answered (Open Responses) → a row and a thin line. Called by drawing."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from conversations.fragments import content, faces, hidden, richtext
from conversations.fragments.content import Content
from conversations.fragments.faces import Face, Read, Repeat
from conversations.fragments.runs import Line

SHOWN, FEW = 3, 6  # items in sight, more of them where the user's last words are among these; earlier ones fold away
MOST = 40  # items drawn at all: the rest is in the JSON
WORD = 200  # characters of a name
_KNOWN = content.ENVELOPE | frozenset(
    {"response_id", "previous_response_id", "model", "input", "instructions", "tools", "hosted", "tool_choice"}
    | {"allowed_tools", "params", "store", "stream"}
)
_ENDED = content.ENVELOPE | frozenset(
    {"response_id", "status", "output", "error", "incomplete_details", "model", "tool_call"}
)
_STATES = {"completed": "s-done", "incomplete": "s-unknown", "failed": "s-failed", "cancelled": "s-rejected"}

Json = Mapping[str, Any]  # any JSON: a claim may hold anything


class Item(NamedTuple):
    """One input item: what it is, and its words or its JSON."""

    label: str
    name: Markup | None = None
    words: Content | None = None
    tree: Markup | None = None


class Tool(NamedTuple):
    """A tool that was offered, and who runs it."""

    name: Markup
    where: str


class Request(NamedTuple):
    """What templates/events/response_received.html draws."""

    model: Markup
    earlier: list[Item]
    items: list[Item]
    left_out: int
    instructions: Content | None
    tools: list[Tool]
    facts: list[Markup]
    raw: Markup


def _received(read: Read, group: str | None, repeat: Repeat) -> Markup:
    body = read.body
    items = [_item(one) for one in _objects(body.get("input"))]
    kept = items[-MOST:]
    asked = max((at for at, item in enumerate(kept) if not item.label), default=0)  # what the user said last
    shown = max(SHOWN, min(FEW, len(kept) - asked))
    request = Request(
        model=richtext.inline(faces.line(body.get("model"))[:WORD] or "unknown"),
        earlier=kept[:-shown],
        items=kept[-shown:],
        left_out=len(items) - len(kept),
        instructions=_said(body.get("instructions")),
        tools=list(_tools(body)),
        facts=list(_facts(body)),
        raw=content.tree({name: value for name, value in body.items() if name in _KNOWN}),
    )
    face = faces.row(read, "chat", sender=None if read.said.sender else "client")
    return faces.render("response_received", face, request, content.more(body, _KNOWN))


def _completed(read: Read, group: str | None, repeat: Repeat) -> Markup:
    body = read.body
    status = faces.line(body.get("status"))
    calls = sum(1 for item in _objects(body.get("output")) if item.get("type") == "function_call")
    error, incomplete = body.get("error"), body.get("incomplete_details")
    reason = incomplete.get("reason") if isinstance(incomplete, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    facts = (
        faces.usage(body.get("usage")),
        f"{calls} call{'' if calls == 1 else 's'} for the client" if calls else "",
        hidden.spell(faces.line(reason)[:WORD]),
    )
    is_claim = read.event.run is None
    line = Line(
        _STATES.get(status, "s-unknown"),
        f"answered the client: {hidden.spell(status)[:WORD] or 'it is not told how'}",
        richtext.inline(faces.line(body.get("response_id"))[:WORD] or "no id"),
        facts=tuple(filter(None, facts)),
        tag="claim" if is_claim else "",
        fault=richtext.plain(message[:8000]) if isinstance(message, str) and message else None,
    )
    told = {name: body[name] for name in ("output", "error", "incomplete_details") if body.get(name)}
    state = "failed" if status == "failed" and not is_claim else ""
    face = faces.row(read, "steps", state=state, sender=None if read.said.speaker else "system")
    return faces.render("run", face, line, content.tree(told) if told else content.more(body, _ENDED))


def _item(item: Json) -> Item:
    kind, name = item.get("type"), faces.line(item.get("name"))[:WORD]
    call_id = richtext.inline(faces.line(item.get("call_id"))[:WORD])
    match kind:
        case "message" | None:
            return _message(item)
        case "function_call":
            arguments = item.get("arguments")
            tree = content.result(arguments) if isinstance(arguments, str) else content.tree(arguments)
            return Item("called", richtext.inline(name or "unnamed"), tree=tree)
        case "function_call_output":
            output = item.get("output")
            return Item("answers the call", call_id, _said(output)) if output else Item("answers the call", call_id)
        case "reasoning":
            return Item("thought", words=_said(item.get("summary")))
        case "compaction":
            return Item("an earlier conversation, compacted")
        case "item_reference":
            return Item("refers to", richtext.inline(faces.line(item.get("id"))[:WORD] or "nothing"))
    return Item("item", richtext.inline(faces.line(kind)[:WORD] or "unknown"), tree=content.tree(item))


def _message(item: Json) -> Item:
    role = faces.line(item.get("role"))[:WORD]
    return Item("" if role == "user" else hidden.spell(role or "nobody"), words=_said(item.get("content")))


def _said(told: object) -> Content | None:
    """Draw a text, or parts: their words, and of a picture or a file what it is. Nothing is fetched or embedded."""
    if isinstance(told, str):
        return content.words(told[:20_000]) if told.strip() else None
    words = "\n\n".join(_part(part) for part in _objects(told))
    return content.words(words[:20_000]) if words else None


def _part(part: Json) -> str:
    for name in ("text", "refusal"):
        if isinstance(part.get(name), str):
            return str(part[name])
    kind = faces.line(part.get("type")).removeprefix("input_") or "part"
    data = next((part[name] for name in ("image_url", "file_data", "file_url", "video_url") if part.get(name)), "")
    where = str(part.get("filename") or "")[:WORD]
    if isinstance(data, str) and data:
        where += (
            f" {len(data):,} characters of data" if data[:5] == "data:" or "file_data" in part else f" {data[:WORD]}"
        )
    return f"`{kind}:{where.replace('`', ' ') or ' empty'}`"


def _tools(body: Json) -> Iterator[Tool]:
    hosted = body.get("hosted")
    names = {name for name in hosted if isinstance(name, str)} if isinstance(hosted, list) else set()
    for tool in _objects(body.get("tools"))[:MOST]:
        name, kind = faces.line(tool.get("name")), faces.line(tool.get("type"))
        is_hosted = name in names or kind != "function"
        yield Tool(richtext.inline((name or kind or "unnamed")[:WORD]), "hosted" if is_hosted else "external")


def _facts(body: Json) -> Iterator[Markup]:
    """Tell what else was wished for, in a few words each."""
    choice, allowed, params = body.get("tool_choice"), body.get("allowed_tools"), body.get("params")
    if isinstance(choice, dict):
        yield richtext.inline(f"must call {faces.line(choice.get('name'))[:WORD]}")
    elif choice not in (None, "auto"):
        yield richtext.inline(f"tools: {faces.line(choice)[:WORD]}")
    if isinstance(allowed, list):
        yield richtext.inline(f"only {', '.join(faces.line(name)[:WORD] for name in allowed[:MOST])}")
    for name, value in (params if isinstance(params, dict) else {}).items():
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            yield richtext.inline(f"{name.replace('_', ' ')} {value}"[:WORD])
    if body.get("store") is False:
        yield richtext.inline("not to be continued")
    if previous := faces.line(body.get("previous_response_id")):
        yield richtext.inline(f"goes on from {previous[:WORD]}")


def _objects(told: object) -> Sequence[Json]:
    return [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []


FACES: dict[str, Face] = {"response.received": _received, "response.completed": _completed}
