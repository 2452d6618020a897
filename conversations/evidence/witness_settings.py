"""Who else keeps checkpoints, as the settings name them. No Django: the settings read it."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from conversations.evidence.notes import VerifierKey


class Witness(NamedTuple):
    """One witness as it is configured: `file`, `command`, `url` or `timestamp`, and where. `suffix`: what tells it from
    another one of the same short name."""

    kind: str
    place: str
    suffix: str = ""

    @property
    def name(self) -> str:
        """What it is called here, alone of all: no more of a URL than its host, no argument of a command."""
        return self._short_name[-200 + len(self.suffix) :] + self.suffix

    @property
    def _short_name(self) -> str:
        if self.kind in ("url", "timestamp"):
            return (urlsplit(self.place).hostname or "")[:200]
        return self.place.split(" ")[0] if self.kind == "command" else self.place


def parse(text: str) -> Witness:
    """Read `file:PATH`, `command:WORDS`, `timestamp:URL` or a URL. Raises ValueError."""
    kind, _, place = text.partition(":")
    if kind in ("http", "https"):
        return Witness("url", text)
    if kind == "timestamp" and place.startswith(("http://", "https://")):
        return Witness(kind, place)
    if kind == "file" and Path(place).is_absolute():
        return Witness("file", place)
    if kind == "command" and shlex.split(place):
        return Witness("command", place)
    raise ValueError(f"must be file:/PATH, command:WORDS, timestamp:URL or a URL; got {text!r}")


def parse_all(texts: Sequence[str]) -> list[Witness]:
    """Parse a list, each once. Those of the same short name get a digest of the whole place behind it. Raises
    ValueError."""
    witnesses = list(dict.fromkeys(map(parse, texts)))
    counts = Counter(witness.name for witness in witnesses)
    return [
        witness._replace(suffix=f" {_digest(witness)}") if counts[witness.name] > 1 else witness
        for witness in witnesses
    ]


def _digest(witness: Witness) -> str:
    return hashlib.sha256(f"{witness.kind}:{witness.place}".encode()).hexdigest()[:12]


def parse_keys(texts: Sequence[str]) -> list[VerifierKey]:
    """Parse the verifier keys of witnesses. Raises Invalid."""
    if not texts:
        return []
    from conversations.evidence import notes  # here: it imports `cryptography`, and few commands need it

    return [notes.parse_key(text) for text in texts]
