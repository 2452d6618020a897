"""Who really did it. Only this module makes a `Principal`; no function turns a sender's text into one (law G)."""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["user", "token", "agent", "bus", "import", "system"]

OURS = ("user", "agent", "system")  # whose events change state (law I)
_NAME = re.compile(r"[\w.@+-]{1,150}")


@dataclass(frozen=True, slots=True)
class Principal:
    """A kind and a name; as text `kind:name` (`system` stands alone)."""

    kind: Kind
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind

    @property
    def is_ours(self) -> bool:
        """Tell whether this principal's events may change state (law I)."""
        return self.kind in OURS


SYSTEM = Principal("system")
REDIS = Principal("bus", "redis")  # whoever wrote there: drawn as unverified


def of_user(username: str) -> Principal:
    """Make the principal of a signed-in person."""
    return _named("user", username)


def of_token(name: str) -> Principal:
    """Make the principal of a bearer token."""
    return _named("token", name)


def of_import(name: str) -> Principal:
    """Make the principal of an import or a play; characters a name cannot hold become `-`."""
    return _named("import", re.sub(r"[^\w.@+-]", "-", name)[:150] or "file")


def of_run(agent: str) -> Principal:
    """Make the principal of a run of ours; `agent` comes from the claimed run's row, never from a payload."""
    return Principal("agent", agent[:150])


def of_row(kept: str) -> Principal:
    """Make again the principal that a row of ours names: a person, a token, or the system. Raises ValueError."""
    kind, _, name = kept.partition(":")
    if kind not in ("user", "token"):
        return SYSTEM if kept == str(SYSTEM) else _named("user", "")
    return of_user(name) if kind == "user" else of_token(name)


def is_ours(stored: str) -> bool:
    """Tell it of a stored principal's text."""
    return stored.partition(":")[0] in OURS


def _named(kind: Kind, name: str) -> Principal:
    if not _NAME.fullmatch(name):
        raise ValueError(f"a {kind}'s name has 1 to 150 letters, digits or . _ @ + -; got {name!r}")
    return Principal(kind, name)
