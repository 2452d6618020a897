"""One event → one short card in its sender's lane, pointing at the lane of whom it was said to. Drawn by `LanePen`.

The same groups, levels and states as in the transcript, so that the two views follow the same frames; the words are cut
short, and lead to the whole event in the transcript.
"""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from conversations import principals
from conversations.envelopes import Said
from conversations.fragments import calls, faces, hidden, richtext, times
from conversations.fragments.drawing import Fragment, Pen
from conversations.fragments.faces import Read, Repeat, Row
from conversations.fragments.who import Who, of_name, who
from conversations.log.events import Call, Stored

WORDS = 220  # characters of a card
_READ = 4 * WORDS  # characters looked at for them
NOBODY = "system"  # whose lane it is when nobody is named


class Kind(NamedTuple):
    """How events of a kind are drawn: the least detail at which they are seen, a word before theirs, a state."""

    level: str
    verb: str = ""
    state: str = ""
    field: str = ""  # of the body, where the words are not what was said


class Card(NamedTuple):
    """What templates/events/lane.html draws. `words` lead to the event in the transcript."""

    row: Row
    sender: Who
    recipient: Who | None
    is_to_all: bool
    verb: str
    words: Markup
    facts: tuple[str, ...] = ()
    is_code: bool = False
    is_open: bool = False  # more text comes
    sign: str = ""  # the word of the state, where it has to be told


KINDS = {
    "message": Kind("chat"),
    "user_message": Kind("chat"),
    "output": Kind("chat"),
    "token": Kind("chat", state="running"),
    "control": Kind("steps", "steers"),
    "signal_send": Kind("steps", "sent a signal", field="topic"),
    "signal_recv": Kind("steps", "received a signal", field="topic"),
    "signal": Kind("steps", "a signal was raised"),
    "log": Kind("all", "log", field="message"),
    "record.gap": Kind("chat", "Entries are missing here", "failed", "why"),
    "dead_letter": Kind("chat", "could not be delivered", "failed"),
    "agent.handoff": Kind("steps", "hands off", field="reason"),
    "conversation.opened": Kind("steps", "opened it", field="title"),
    "conversation.handler": Kind("steps", "answers from now on"),
    "conversation.paused": Kind("chat", "paused it", field="reason"),
    "conversation.resumed": Kind("chat", "resumed it", field="reason"),
    "conversation.taken_over": Kind("chat", "took it over", field="reason"),
    "conversation.handed_back": Kind("chat", "handed it back", field="reason"),
    "conversation.forked": Kind("chat", "forked it", field="reason"),
    "run.queued": Kind("all", "is to answer"),
    "run.started": Kind("steps", "started"),
    "run.waiting": Kind("steps", "waits"),
    "run.resumed": Kind("all", "goes on"),
    "run.done": Kind("steps", "is done"),
    "run.stopping": Kind("steps", "asked it to stop", field="reason"),
    "run.failed": Kind("chat", "failed", "failed", "error"),
    "run.cancelled": Kind("chat", "was stopped", "rejected", "reason"),
    "run.interrupted": Kind("chat", "was interrupted", "unknown", "reason"),
    "run.incompatible": Kind("chat", "could not go on", "failed", "reason"),
    "model.turn": Kind("all", "asked the model", field="model"),
    ".stage": Kind("steps", "is at the stage", field="stage"),
    "approval.requested": Kind("steps", "asked for approval of", field="name"),
    "approval.decided": Kind("steps", "decided", field="decision"),
    "approval.cancelled": Kind("steps", "withdrew a question", field="reason"),
    "approval.expired": Kind("steps", "waited too long for a decision"),
    "approval.escalated": Kind("steps", "still waits; told", field="to"),
    "policy.refused": Kind("steps", "was refused", field="reason"),
    "response.received": Kind("chat", "asked for a response"),
    "response.completed": Kind("steps", "the response is complete"),
}
CALLS = ("tool_step", "approval.requested")  # what a call begins with; one of a server's tools points at the server
_SIGNS = {"failed": "failed", "rejected": "stopped", "unknown": "outcome unknown"}
_CALLER = ("conversation.", "run.stopping")  # who did it is told by the principal


class LanePen(Pen):
    """Draws events as cards of lanes. What happens inside a call is a card of its own: its agent has a lane."""

    look = "lanes"

    def draw(self, event: Stored, call: Call | None = None, ended: Sequence[Call] = ()) -> Fragment:
        """Draw the next event, and tell whose lane it is in."""
        drawn = super().draw(event, call, ended)
        return drawn._replace(within="", ends=ends(event, call) if drawn.html or drawn.opens else None)

    def open_block(self, group: str, text: str, event: Stored) -> Markup:
        """Draw the card of a turn that is still being written."""
        row = faces.row(faces.read(event), "chat", state="running", group=group)
        return _draw(_card(row, event, None, words=richtext.inline(text))._replace(is_open=True))

    def _face(self, event: Stored, group: str | None, repeat: Repeat) -> Markup:
        return _draw(_of_event(event, group, repeat))

    def _call_face(self, call: Call, group: str | None) -> Markup:
        return _draw(_of_call(call, group))

    def _failed(self, event: Stored) -> Markup:
        bare = faces.Read(event, Said(), {})
        return _draw(_card(faces.row(bare, "all"), event, None, words=_short(event.body[:_READ])))


def ends(event: Stored, call: Call | None) -> tuple[Who, Who | None]:
    """Answer in whose lane an event is drawn, and whose lane it points at."""
    read = faces.read(call.called if call else event)
    sender, recipient = who(_sender(read) or NOBODY, read.event.principal), _recipient(read)
    if read.said.mcp_server and read.event.kind in CALLS:
        return sender, of_name(read.said.mcp_server, "system")._replace(key=hidden.spell(f"server:{recipient}"))
    return sender, who(recipient) if recipient else None


def _draw(card: Card) -> Markup:
    return faces.render("lane", card)


def _card(row: Row, event: Stored, call: Call | None, *, words: Markup, verb: str = "", code: bool = False) -> Card:
    sender, recipient = ends(event, call)
    read = faces.read(call.called if call else event)
    is_to_all = recipient is None and faces.is_to_all(read)
    return Card(row, sender, recipient, is_to_all, verb, words, is_code=code, sign=_SIGNS.get(row.state, ""))


def _of_event(event: Stored, group: str | None, repeat: Repeat) -> Card:
    read = faces.read(event)
    kind = KINDS.get(".stage" if event.kind.endswith(".stage") else event.kind)
    if kind is None or not read.body:
        row = faces.row(read, "all", group=group, sender=_sender(read) or NOBODY)
        return _card(row, event, None, words=_short(event.body[:_READ]), verb=event.kind[:64], code=True)
    is_claim = event.kind.startswith(("run.", "conversation.", "approval.")) and not principals.is_ours(event.principal)
    level = "all" if repeat == "same" else kind.level
    row = faces.row(read, level, state="" if is_claim else kind.state, group=group, sender=_sender(read) or NOBODY)
    told = (_duration(read), "claim" if is_claim else "", "again" if repeat else "")
    card = _card(row, event, None, words=_words(read, kind), verb=kind.verb)
    return card._replace(facts=tuple(filter(None, told)))


def _of_call(call: Call, group: str | None) -> Card:
    called, block = faces.read(call.called), calls.brief(call)
    is_loud = call.status in calls.LOUD
    row = faces.row(called, "chat" if is_loud else "steps", state=block.state, group=group)
    parts = [block.name, block.preview]
    words = Markup(" ").join(_short(part) for part in parts if part)
    card = _card(row, call.called, call, words=words, code=True)
    ended = (block.word, times.duration(call.duration_ms), block.came)
    return card._replace(facts=tuple(filter(None, ended)), sign="", verb="calls")


def _sender(read: Read) -> str:
    """Answer who it is told of, as in the transcript."""
    event, said, body = read
    if event.kind == "agent.handoff":
        return faces.agent(faces.line(body.get("from_agent")) or said.agent)
    if event.kind == "conversation.handler":
        return faces.agent(faces.line(body.get("handler")))
    if event.kind.startswith(_CALLER) and principals.is_ours(event.principal):
        by = faces.line(body.get("by"))
        return by if by and event.principal == "system" else event.principal
    return said.speaker or {"user_message": "user", "response.received": "client"}.get(event.kind, "")


def _recipient(read: Read) -> str:
    if read.event.kind == "agent.handoff":
        return faces.agent(faces.line(read.body.get("to_agent")))
    if read.event.kind in CALLS:
        return read.said.mcp_server or ""
    return "" if faces.is_to_all(read) else read.said.recipient or ""


def _words(read: Read, kind: Kind) -> Markup:
    told = faces.line(read.body.get(kind.field)) if kind.field else read.said.words
    return _short(told.replace("_", " ") if kind.field == "stage" else told)


def _short(text: str) -> Markup:
    line = " ".join(text[:_READ].split())
    return richtext.inline(line if len(line) <= WORDS else f"{line[: WORDS - 1]}…")


def _duration(read: Read) -> str:
    return times.duration(read.said.duration_ms) if read.event.kind in ("run.done", "model.turn") else ""
