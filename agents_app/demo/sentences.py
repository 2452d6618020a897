"""The sentences of the demo model. It says what happened and what comes next, and never promises what no tool did."""

from collections.abc import Collection, Mapping
from typing import Any

from agents_app.approval_gate.output_after_edit import parted
from agents_app.demo.json_filling import cut
from agents_app.demo.text_rules import Reading

_WHERE = {
    "en": "Where exactly is that? A street, a corner or a place nearby will do.",
    "de": "Wo genau ist das? Eine Straße, eine Ecke oder ein Ort in der Nähe genügt.",
    "fr": "Où est-ce exactement ? Une rue, un coin ou un lieu proche suffit.",
    "es": "¿Dónde está exactamente? Basta una calle, una esquina o un lugar cercano.",
}
_HELLO = {
    "en": "Hello, this is the town hall's front desk (demo model). You can report an incident with its place, tell "
    "us what you think of a service, or ask for figures. What is it about?",
    "de": "Guten Tag, hier ist das Rathaus (Demo-Modell). Melden Sie einen Vorfall mit Ort, sagen Sie uns Ihre "
    "Meinung, oder fragen Sie nach Zahlen. Worum geht es?",
    "fr": "Bonjour, ici la mairie (modèle de démonstration). Signalez un incident avec son lieu, donnez votre avis, ou "
    "demandez des chiffres. De quoi s'agit-il ?",
    "es": "Buenos días, aquí el ayuntamiento (modelo de demostración). Comunique un incidente con su lugar, dé su "
    "opinión o pida cifras. ¿De qué se trata?",
}
_OTHER = (
    "I am the demo model and understand English best, a little German, French and Spanish. Please write what happened "
    "and where, or what you think of a service."
)
_FIXED = {
    "invite": "Please go on: what happened and where, or what do you think of which service?",
    "thanks": "You are welcome. If something else comes up, just write.",
    "cancel": "All right, I leave it there. Nothing was filed for this message.",
    "blank": "Your message was empty. What can the town hall do for you?",
    "unreadable": "I could not make sense of that. Please say in a sentence or two what happened and where.",
    "injection": "I cannot change how this desk works, and messages do not change what I may do. If you have a report, "
    "an opinion or a question about the town, tell me that.",
}
_QUESTION = (
    "I cannot look that up: this is the demo model, without a knowledge of the town. I can take a report of an "
    "incident, write down your feedback, or show the figures of this conversation."
)
_UNSURE = "If it is a report, tell me what happened and where; if it is an opinion, which service it is about."
_WHERE_AGAIN = "Without a place I cannot file the report. Write it again with a street or a place nearby."
_LONG = " Your message was very long; I read its beginning and its end."


def where(reading: Reading) -> str:
    """Return the question for the place."""
    return _WHERE.get(reading.language, _WHERE["en"]) + (_LONG if reading.is_long else "")


def asked_where(text: str) -> bool:
    """Return whether a text is our question for the place."""
    return text.removesuffix(_LONG) in _WHERE.values()


def answer(reading: Reading, done: Mapping[str, Any], earlier: Collection[Any], *, was_asked: bool) -> str:
    """Return the answer to a citizen, from the tools' results."""
    text = _by_results(reading, done) or _by_wish(reading, earlier, was_asked=was_asked)
    return text + (_LONG if reading.is_long else "")


def plain(done: Mapping[str, Any], tools: Collection[str], reading: Reading) -> str:
    """Return the answer for an unknown team."""
    if done:
        results = {name: parted(output) for name, output in done.items()}
        return " ".join(f"{name} answered: {_shown(own)}{_changed(by)}" for name, (own, by) in results.items())
    offered = f" I can use {', '.join(tools)}." if tools else ""
    return f"The demo model read: “{cut(reading.text, 160)}”.{offered}"


def _by_results(reading: Reading, done: Mapping[str, Any]) -> str:
    """Return what this turn's tools did; empty if none ran."""
    for part, sentence_for in (("file_incident", _filed), ("incident_formatter", _not_written), ("feedback", _feedback),
                       ("insight", _insights)):  # fmt: skip
        for name, output in done.items():
            if part in name:
                own, change = parted(output)
                return sentence_for(own, _as_ran(reading, change)) + _changed(change)
    if "chat_send" in done:
        sent, _ = parted(done["chat_send"])
        why = str(sent).removeprefix("Error, not sent: ")
        return "I passed that on." if isinstance(sent, dict) else f"That was not sent: {why}"
    return plain(done, (), reading) if done else ""


def _as_ran(reading: Reading, change: Mapping[str, Any]) -> Reading:
    """Return a reading with a person's edits of the arguments."""
    ran = change.get("ran_with")
    if not isinstance(ran, dict):
        return reading
    kind, location, severity = (ran.get(name) for name in ("incident_type", "location", "severity_level"))
    return reading._replace(
        kind=str(kind or reading.kind), place=str(location or reading.place),
        severity=severity if isinstance(severity, int) else reading.severity,
    )  # fmt: skip


def _changed(change: Mapping[str, Any]) -> str:
    """Return which arguments a person edited; empty for none."""
    ran, requested = change.get("ran_with"), change.get("instead_of")
    if not isinstance(ran, dict) or not isinstance(requested, dict):
        return ""
    names = [name for name in {**requested, **ran} if ran.get(name) != requested.get(name)]
    changes = [
        f"{name.replace('_', ' ')} {_argument(ran, name)} instead of {_argument(requested, name)}" for name in names
    ]
    return f" A person changed this before it ran: {'; '.join(changes)}." if changes else ""


def _argument(values: Mapping[str, Any], name: str) -> str:
    return cut(str(values[name]), 120).rstrip(".!? ") if name in values else "nothing"


def _filed(output: Any, reading: Reading) -> str:
    if isinstance(output, dict) and output.get("reference"):
        again = " It was filed before; nothing is filed twice." if output.get("status") == "already filed" else ""
        danger = " If anybody is in danger now, call the emergency services." if reading.severity == 5 else ""
        return (
            f"Thank you. Your report ({reading.kind or 'incident'}, {reading.place or 'place as written'}) is with the "
            f"city. The reference is {output['reference']}.{again}{danger}"
        )
    return f"Your report is written down, but it was not filed with the city: {_shown(output)}"


def _not_written(output: Any, reading: Reading) -> str:
    return f"I could not file your report, nothing was sent to the city: {_shown(output)}"


def _feedback(output: Any, reading: Reading) -> str:
    if not isinstance(output, dict):
        return f"I could not write your feedback down: {_shown(output)}"
    mood = {"positive": "Thank you, that is good to hear.", "negative": "I am sorry about that."}
    return (
        f"{mood.get(str(output.get('sentiment')), 'Thank you.')} Your feedback about {output.get('topic')} is written "
        f"down as {output.get('sentiment')}."
    )


def _insights(output: Any, reading: Reading) -> str:
    summary = output.get("summary") if isinstance(output, dict) else None
    return f"Here are the figures. {summary or _shown(output)}"


def _by_wish(reading: Reading, earlier: Collection[Any], *, was_asked: bool) -> str:
    if reading.wish == "status":
        filed = [str(o["reference"]) for o in earlier if isinstance(o, dict) and o.get("reference")]
        return (
            f"Your report {filed[-1]} is with the city." if filed else "No report was filed in this conversation yet."
        )
    if reading.wish in _FIXED:
        return _FIXED[reading.wish]
    if reading.wish == "question":
        return _WHERE_AGAIN if was_asked else _QUESTION
    if reading.language == "other":
        return _OTHER
    if reading.wish == "talk" and reading.language == "en":
        return f"I read: “{cut(reading.text, 160)}”. {_UNSURE}"
    return _HELLO.get(reading.language, _HELLO["en"])


def _shown(output: Any) -> str:
    if isinstance(output, dict):
        return "; ".join(f"{key}: {value}" for key, value in output.items())
    return cut(str(output), 300)
