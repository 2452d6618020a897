"""The authenticated author of an event or action. Only this module creates a `Principal`, never from a sender's text
(law G)."""

import re
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["user", "token", "agent", "bus", "import", "system"]

OURS = ("user", "agent", "system")  # whose events change state (law I)
PEOPLE = ("user", "system")  # who decides and controls; the system writes it down for a token, and `by` names that
IMPORTED = "import:"  # begins the principal of an import, as it is stored
_NAME = re.compile(r"[\w.@+-]{1,150}")


@dataclass(frozen=True, slots=True)
class Principal:
    """A kind and a name; as text `kind:name` (`system` alone). `credential`: of a token that made a request, the digest
    of its secret, because a revoked token's name may be used again."""

    kind: Kind
    name: str = ""
    credential: str = field(default="", repr=False, compare=False)
    text: str = field(init=False, repr=False, compare=False)  # what `str` returns

    def __post_init__(self) -> None:
        """Compute the text once: each event stores it."""
        object.__setattr__(self, "text", f"{self.kind}:{self.name}" if self.name else self.kind)

    def __str__(self) -> str:
        return self.text

    @property
    def is_ours(self) -> bool:
        """Return whether this principal's events may change state (law I)."""
        return self.kind in OURS


SYSTEM = Principal("system")
REDIS = Principal("bus", "redis")  # whoever wrote there: drawn as unverified
AGUI = Principal("bus", "agui")  # what a remote agent, asked by us, tells of itself


def user_principal(username: str) -> Principal:
    """Make the principal of a signed-in person."""
    return _named("user", username)


def token_principal(name: str, credential: str = "") -> Principal:
    """Make the principal of a bearer token; `credential`: the digest of its secret."""
    return _named("token", name, credential)


def import_principal(name: str) -> Principal:
    """Make the principal of an import or a play; characters a name cannot hold become `-`."""
    return _named("import", re.sub(r"[^\w.@+-]", "-", name)[:150] or "file")


def run_principal(agent: str) -> Principal:
    """Make the principal of a run of ours; `agent` comes from the claimed run's row, never from a payload."""
    return Principal("agent", agent[:150])


def principal_from_row(stored: str) -> Principal:
    """Return the principal that a row of ours names: a person, a token, or the system. Raises ValueError."""
    kind, _, name = stored.partition(":")
    if kind not in ("user", "token"):
        return SYSTEM if stored == str(SYSTEM) else _named("user", "")
    return user_principal(name) if kind == "user" else token_principal(name)


def is_ours(stored: str) -> bool:
    """Return whether a stored principal's events may change state (law I)."""
    return stored.partition(":")[0] in OURS


def is_people(stored: str) -> bool:
    """Return whether a stored principal decides and controls: a person, or the system on behalf of a token."""
    return stored.partition(":")[0] in PEOPLE


def is_imported(stored: str) -> bool:
    """Return whether a stored principal is that of an import: its events happened elsewhere, before."""
    return stored.startswith(IMPORTED)


def doer(stored: str, by: str) -> str:
    """Return who did what an event reports: its principal, or, if that is the system, the token that `by` names."""
    return by if stored == str(SYSTEM) and by.startswith("token:") else stored


def _named(kind: Kind, name: str, credential: str = "") -> Principal:
    if not _NAME.fullmatch(name):
        raise ValueError(f"the name of a {kind} must be 1 to 150 letters, digits or . _ @ + -; got {name!r}")
    return Principal(kind, name, credential)
