"""The script of the demo: an evening at a town hall, about 65 seconds. People, town and texts are fictional."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

TITLE = "Dark footpath along the canal"


def _day(days: int) -> str:
    """Return the date of so many days after the server's start, ISO 8601."""
    return (datetime.now(UTC).date() + timedelta(days)).isoformat()


@dataclass(frozen=True)
class Person:
    """A person writes to an agent, and a new run answers. `after` so many seconds of quiet."""

    name: str
    to: str
    text: str
    after: float


@dataclass(frozen=True)
class Speaks:
    """An agent speaks, streamed; sent to someone unless `to` is empty (then there is only its output)."""

    agent: str
    text: str
    to: str = ""
    after: float = 1.1


@dataclass(frozen=True)
class Hands:
    """One agent hands over to another."""

    agent: str
    to: str
    reason: str
    after: float = 0.8


@dataclass(frozen=True)
class CallsTool:
    """An agent calls a tool, which takes some seconds and inside which other agents may work."""

    agent: str
    name: str
    args: dict[str, Any]
    output: Any = None
    error: str = ""
    takes: float = 0.8
    after: float = 0.7
    inside: "tuple[Speaks | CallsTool, ...]" = field(default=())
    more: dict[str, str] = field(default_factory=dict)  # identity: namespace, origin, mcp_server


@dataclass(frozen=True)
class ControlStep:
    """The system sends an agent a control message."""

    to: str
    text: str
    after: float = 0.8


@dataclass(frozen=True)
class AsksPerson:
    """A call that waits until the person who watches decides it. If approved, it continues with the approved arguments;
    otherwise `otherwise` is played and the conversation ends."""

    call: CallsTool
    schema: dict[str, Any]
    why: str
    otherwise: "tuple[Beat, ...]"
    after: float = 0.7


Beat = Person | Speaks | Hands | CallsTool | ControlStep | AsksPerson

DIALOGUE, TRIAGE, COORDINATOR = "Dialogue", "Triage", "Format Coordinator"
INCIDENTS, FEEDBACK = "Incident Formatter", "Feedback Formatter"
CITIZEN = "user:Inês Carvalho"

FILE_INCIDENT: dict[str, Any] = {
    "name": "file_incident",
    "description": "File an incident with the city: a crew is sent out.",
    "params_json_schema": {
        "type": "object",
        "properties": {
            "incident_type": {"type": "string", "description": "what it is about", "minLength": 1},
            "severity_level": {
                "type": "integer", "description": "1 (can wait) to 5 (danger to life)", "minimum": 1, "maximum": 5,
            },
            "lamps": {"type": "array", "items": {"type": "string"}, "description": "numbers in the lamp register"},
        },
        "required": ["incident_type", "severity_level", "lamps"],
        "additionalProperties": False,
    },
    "strict": True,
}  # fmt: skip

NOT_FILED: tuple[Beat, ...] = (
    Speaks(COORDINATOR, "The report was not filed: a person decided otherwise.", to=f"agent:{DIALOGUE}"),
    Hands(COORDINATOR, DIALOGUE, "not filed"),
    Speaks(
        DIALOGUE,
        "Thank you for waiting, Inês. A colleague has looked at your report and did not file it as it is. It stays "
        "with us, and somebody will call you. Until then please take Mill Lane, it is lit all the way.",
        to=CITIZEN,
        after=0.8,
    ),
)

SCRIPT: tuple[Beat, ...] = (
    Person(
        "Inês Carvalho",
        DIALOGUE,
        "Good evening. The lamps on the canal footpath, from the lock to Tanner’s Bridge, have been out for four days. "
        "My father walks there after dialysis and yesterday he fell. Nada de grave, graças a Deus, but please have "
        "somebody look at it. And could we get the old bench at the lock back? He needs a place to rest.",
        after=1.0,
    ),
    Speaks(
        DIALOGUE,
        "I am sorry about your father, Inês. *As melhoras!* These are two things: lamps that are out where somebody "
        "was hurt, and a wish for the bench. I am asking my colleagues to write both down, one moment please.",
        to=CITIZEN,
        after=1.2,
    ),
    Hands(DIALOGUE, TRIAGE, "a report and a wish in one message"),
    CallsTool(
        TRIAGE,
        "classify_message",
        {"labels": ["incident", "feedback", "question", "praise"], "languages": "any"},
        {
            "labels": [{"label": "incident", "score": 0.94}, {"label": "feedback", "score": 0.72}],
            "languages": ["en", "pt"],
            "urgent": True,
        },
        takes=0.7,
    ),
    Hands(TRIAGE, COORDINATOR, "incident and feedback, the incident first"),
    CallsTool(
        COORDINATOR,
        "locate",
        {"place": "canal footpath, lock to Tanner’s Bridge", "town": "Brackwater"},
        error="TimeoutError: the map server did not answer within 4 s (2 tries)",
        takes=4.0,
        more={"namespace": "geo", "origin": "mcp", "mcp_server": "map-server"},
    ),
    Speaks(COORDINATOR, "The map does not answer. The lamp register knows where its lamps stand, I will ask there."),
    CallsTool(
        COORDINATOR,
        "search_lamps",
        {"path": "canal footpath", "between": ["lock", "Tanner’s Bridge"], "state": ["out", "flickering"]},
        {
            "lamps": [
                {"id": "CF-118", "state": "out", "since": _day(-4), "position": {"m": 40, "side": "water"}},
                {"id": "CF-119", "state": "out", "since": _day(-4), "position": {"m": 75, "side": "water"}},
                {"id": "CF-120", "state": "flickering", "since": _day(-1), "position": {"m": 110, "side": "wall"}},
            ],
            "feeder": {
                "id": "B7",
                "last_inspection": "2025-08-30",
                "faults": [{"code": "E12", "text": "earth leakage, switched itself off", "cleared": False}],
            },
        },
        takes=1.1,
    ),
    ControlStep(COORDINATOR, "Priority raised to 2: a person was hurt. The night crew may be called."),
    CallsTool(
        COORDINATOR,
        "incident_formatter_tool",
        {"topic": "lamps out on the canal footpath", "quote": "have been out for four days … yesterday he fell"},
        {
            "incident_type": "street lighting",
            "description": "Three lamps of feeder B7 are dark or flicker; a pedestrian fell.",
            "date_of_occurrence": _day(-1),
            "location": "Canal footpath, lock to Tanner’s Bridge, metres 40 to 110",
            "person_involved": "the reporter’s father, slight fall",
            "severity_level": 3,
        },
        takes=0.6,
        inside=(
            Speaks(
                INCIDENTS,
                "One incident. Place and lamps come from the register, the fall from the message. Severity 3: dark, "
                "wet ground beside water, one slight injury.",
            ),
        ),
    ),
    CallsTool(
        COORDINATOR,
        "feedback_formatter_tool",
        {"topic": "bench at the lock", "quote": "could we get the old bench at the lock back?"},
        {"topic": "bench at the lock", "summary": "A bench to rest on, where one stood before", "sentiment": "neutral"},
        takes=0.5,
        inside=(
            Speaks(
                FEEDBACK,
                '{"topic": "bench at the lock", "summary": "A bench to rest on, where one stood before", '
                '"sentiment": "neutral", "person": "walks there after treatment", "tags": ["canal", "seating"]}',
            ),
        ),
    ),
    AsksPerson(
        CallsTool(
            COORDINATOR,
            "file_incident",
            {"incident_type": "street lighting", "severity_level": 3, "lamps": ["CF-118", "CF-119", "CF-120"]},
            {
                "reference": "INC-2291",
                "assigned_to": {"team": "Street lighting", "crew": "night", "phone": None},
                "promise": {"first_look": "today, 23:00", "repair_by": _day(6)},
            },
            takes=1.3,
        ),
        schema=FILE_INCIDENT,
        why="file_incident sends out a crew, so it requires approval. This is the demo: nothing leaves this server",
        otherwise=NOT_FILED,
    ),
    Speaks(
        COORDINATOR,
        "Filed as INC-2291, the night crew looks at it today. The wish for the bench is with the parks department.",
        to=f"agent:{DIALOGUE}",
    ),
    Hands(COORDINATOR, DIALOGUE, "both written down"),
    Speaks(
        DIALOGUE,
        "Thank you for waiting, Inês. This is what happens now:\n\n"
        "- **Lamps CF-118 to CF-120** are reported as `INC-2291`. The cause is known: their feeder switched itself "
        f"off because of the wet. The night crew comes **today at 23:00**, everything should be lit by {_day(6)}.\n"
        "- **The bench** is noted as a wish, with your father’s reason, and goes to the parks department.\n\n"
        "Until then please take Mill Lane, it is lit all the way. *Diga ao seu pai que desejamos as melhoras.*",
        to=CITIZEN,
        after=0.8,
    ),
    Person(
        "Inês Carvalho",
        DIALOGUE,
        "Obrigada! Could he get a message when the lamps are on again? He reads Portuguese only.",
        after=4.0,
    ),
    CallsTool(
        DIALOGUE,
        "schedule_notice",
        {"when": "INC-2291 is closed", "languages": ["pt", "en", "ar", "uk"], "also_at": "notice board, lock"},
        {
            "notice": "N-77",
            "texts": {
                "pt": "O caminho do canal voltou a ter luz.",
                "en": "The canal footpath is lit again.",
                "ar": "عادت الإنارة إلى ممشى القناة.",
                "uk": "Стежка вздовж каналу знову освітлена.",
            },
        },
        takes=0.9,
        after=1.0,
    ),
    Speaks(
        DIALOGUE,
        "Of course. As soon as INC-2291 is closed he gets this, and it hangs at the lock in four languages:\n\n"
        "> O caminho do canal voltou a ter luz.\n\nBoa noite, Inês, and thank you for telling us.",
        to=CITIZEN,
    ),
    Person("Inês Carvalho", DIALOGUE, "Que bom. Boa noite!", after=2.5),
)
