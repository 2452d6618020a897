"""What people's acts allow, apart from the product's code (§3.7). Used by `authority_machine`."""

from __future__ import annotations

from dataclasses import dataclass, field

from conversations.access.permissions import Reach

GUESTS = ("Billing", "Mallory", "Helper")  # agents with a token each


@dataclass(frozen=True)
class Deed:
    """One event as the rules see it: whose, where it comes from, and which agent it names."""

    source: str  # "people", "run", "outside", or an agent with a token
    names: str = ""
    speaker: str = ""


@dataclass
class World:
    """What people's acts allow: kept by the machine, from what it did and was answered."""

    deeds: dict[str, list[Deed]] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    decided: dict[str, tuple[str, str]] = field(default_factory=dict)
    posts: list[tuple[str, str, str]] = field(default_factory=list)  # topic, conversation, id

    def let_in(self, key: str) -> set[str]:
        """Return the agents whom somebody let in who may do so."""
        deeds, is_closed, names_seen = self.deeds.get(key, []), False, set[str]()
        for deed in deeds:
            is_guest = deed.source in GUESTS and (deeds[0].source == deed.source or deed.source in names_seen)
            is_closed |= not (deed.source in ("people", "run") or is_guest)
            names_another = deed.names and deed.names not in (deed.speaker, deed.source)
            if names_another and (deed.source == "people" or not is_closed):
                names_seen.add(deed.names)
        return names_seen

    def readable(self, agent: str, topic: str) -> set[str]:
        """Return the ids on `chat:X` that an agent's token may read."""
        name = topic.removeprefix("chat:")
        is_in = agent in self.let_in(name)
        here = [(key, id_) for on, key, id_ in self.posts if on == topic]
        return {id_ for key, id_ in here if (is_in if key == name else agent == name)}

    def reach(self, agent: str, topic: str) -> Reach | None:
        """Return how much of `chat:X` an agent's token may read."""
        name = topic.removeprefix("chat:")
        is_in, is_inbox = agent in self.let_in(name), agent == name
        if is_in and is_inbox:
            return "all"
        return "inbox" if is_inbox else "conversation" if is_in else None

    def named(self) -> set[tuple[str, str]]:
        """Return every conversation with the agents who were let in."""
        return {(key, name) for key in self.deeds for name in self.let_in(key) if name in GUESTS}
