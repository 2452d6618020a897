"""The filters of the audit log. A target, a conversation or a name that ends with `*` is a prefix."""

from dataclasses import dataclass
from typing import ClassVar

from conversations.listing.url_filters import TIMES, Reader, UrlFilters, ValuesReader, one_of, person, short

OUTCOMES = ("done", "refused")
BEGINNING = "*"


def _principal(text: str) -> str:
    """Parse a principal; the system has no name."""
    return text if text == "system" else person(text)


@dataclass(frozen=True, slots=True)
class AuditFilters(UrlFilters):
    """The filters in force, named as in the address. Lengths are those of the columns."""

    many: ClassVar[dict[str, ValuesReader]] = {
        "who": ValuesReader(160, _principal), "acting_as": ValuesReader(200), "verb": ValuesReader(60),
    }  # fmt: skip
    single: ClassVar[dict[str, Reader]] = TIMES | {
        "outcome": one_of(*OUTCOMES), "target": short(300), "conversation": short(300), "q": short(200),
    }  # fmt: skip

    who: tuple[str, ...] = ()  # principals
    acting_as: tuple[str, ...] = ()
    verb: tuple[str, ...] = ()
    outcome: str = ""
    target: str = ""
    conversation: str = ""  # what was done to it, or within it
    q: str = ""  # words in the reason, in any case, all of them
    last: str = ""
    since: int | None = None
    until: int | None = None

    @property
    def words(self) -> list[str]:
        """Return the words that a reason must contain."""
        return self.q.casefold().split()
