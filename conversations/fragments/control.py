"""How a conversation was steered → thin lines: who did it, and why. Called by drawing."""

from markupsafe import Markup

from conversations import principals
from conversations.fragments import content, faces, hidden, richtext
from conversations.fragments.faces import Face, Read, Repeat
from conversations.fragments.runs import Line

_FIELDS = content.ENVELOPE | frozenset({"by", "reason", "owner", "how"})
_LINES = {
    "conversation.paused": Line("pause", "paused it: agents end their turn and wait"),
    "conversation.resumed": Line("play", "resumed it: agents go on"),
    "conversation.taken_over": Line("hand", "took it over: agents wait"),
    "conversation.handed_back": Line("agent", "handed it back to the agents"),
}
_HOW = {
    "stop": "asked a run to stop after its turn",
    "cancel": "asked a run to stop",
    "abort": "asked a run to stop at once",
}


def _steered(read: Read, group: str | None, repeat: Repeat) -> Markup:
    line = _LINES[read.event.kind]
    owner = faces.line(read.body.get("owner"))
    if owner and owner != _by(read):
        line = line._replace(facts=(f"{_name(owner)} had held it",))
    return _line(read, "chat", line)


def _stopping(read: Read, group: str | None, repeat: Repeat) -> Markup:
    words = _HOW.get(faces.line(read.body.get("how")), "asked a run to stop")
    return _line(read, "steps", Line("stop", words))


def _line(read: Read, level: str, line: Line) -> Markup:
    """Draw it with who did it in front. A claim from outside says that it is one; it steered nothing."""
    is_ours = principals.is_ours(read.event.principal)
    reason = faces.line(read.body.get("reason"))
    line = line._replace(detail=richtext.inline(reason[:1000]) if reason else None, tag="" if is_ours else "claim")
    by = _by(read) if is_ours else None
    face = faces.row(read, level, sender=by, principal=by)
    return faces.render("run", face, line, content.more(read.body, _FIELDS))


def _by(read: Read) -> str:
    by = faces.line(read.body.get("by"))
    return by if by and read.event.principal == "system" else read.event.principal


def _name(principal: str) -> str:
    return hidden.spell(principal.removeprefix("user:"))[:160]


FACES: dict[str, Face] = {**dict.fromkeys(_LINES, _steered), "run.stopping": _stopping}
