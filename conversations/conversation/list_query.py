"""Which conversations the list shows: by an index, or by a bounded walk, newest first. Called by `conversation_list`
alone.

A filter that fits many conversations fills its page among the newest few. Else each filter's index is asked for at most
`FEW` conversations: of the smallest answer each one is looked at, and the page is whole. Where no index has so few, the
walk goes on to its bound, the page says how far back it looked, and its cursor goes on from there: nothing is ever
skipped, and no page costs more than the bound.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from conversations.access import permissions
from conversations.core.errors import Invalid
from conversations.events.payload import clean_text
from conversations.models import Approval, Conversation, Participant
from conversations.models.conversation import ConversationQuerySet
from conversations.search import title_index

CHUNKS = (300, 2_700)  # conversations looked at in turn, when more is looked at than is shown
FEW = 700  # conversations of an index that are all looked at
MAX_WORDS = 8  # of a filter; more are ignored
MAX_WORDS_SIZE = 1000  # characters of it; databases have bounds of their own
STATES = ("open", "paused", "person", "mine", "waiting")


@dataclass(frozen=True, slots=True)
class ListFilters:
    """What the list is filtered by. `holder`: who `mine` is, a principal; `agent`: whom an agent's token speaks for."""

    q: str = ""
    participant: str = ""
    state: str = ""
    holder: str = ""
    agent: str = ""

    @property
    def is_empty(self) -> bool:
        """Tell that every conversation fits."""
        return not (self.words or self.participant or self.state or self.agent)

    @property
    def words(self) -> list[str]:
        """What a title, an id or a last line must hold, each."""
        return clean_text(self.q[:MAX_WORDS_SIZE]).split()[:MAX_WORDS]

    @property
    def names(self) -> set[str]:
        """How the participant may be spelled on the wire."""
        return {clean_text(self.participant), clean_text(f"agent:{self.participant}")} if self.participant else set()


class ListPosition(NamedTuple):
    """Where a conversation stands in the list; no two stand at one. `at` is µs UTC."""

    at: int
    id: int

    def __str__(self) -> str:
        return f"{self.at}.{self.id}"


class FoundConversations(NamedTuple):
    """Conversations by the columns that were asked for, newest first, one more than the limit where there are more.

    `after`: where the walk ended at its bound, with more behind it; None where all was looked at.
    """

    rows: list[tuple[Any, ...]]
    after: ListPosition | None = None


def find(filters: ListFilters, columns: Sequence[str], *, before: str, limit: int) -> FoundConversations:
    """Return the newest conversations that match, those behind the cursor `before`. Raises Invalid for a wrong one."""
    position = _place_of(before) if before else None
    fitting = _matching(filters)

    if filters.is_empty:
        return FoundConversations(list(_behind(fitting, position).newest_first().values_list(*columns)[: limit + 1]))
    rows: list[tuple[Any, ...]] = []
    for number, size in enumerate(CHUNKS):
        if number == 1 and (few := _few(filters)) is not None:
            # In an order that no index has: SQLite would walk along that one, and look for these among all.
            chunk = _behind(fitting.filter(id__in=few), position).order_by((F("last_at") + 0).desc(), "-id")
            return FoundConversations(rows + list(chunk.values_list(*columns)[: limit + 1 - len(rows)]))
        floor = _floor(filters, position, size)
        chunk = _from_on(_behind(fitting, position), floor).newest_first()
        rows += chunk.values_list(*columns)[: limit + 1 - len(rows)]
        if len(rows) > limit or floor is None:
            return FoundConversations(rows)
        position = floor
    return FoundConversations(rows, position)


def _floor(filters: ListFilters, position: ListPosition | None, size: int) -> ListPosition | None:
    """Return where so many conversations behind a place end; None when there are no more than these."""
    ends = _behind(_walked(filters), position).newest_first().values_list("last_at", "id")[size - 1 : size]
    return next((ListPosition(*end) for end in ends), None)


def _walked(filters: ListFilters) -> ConversationQuerySet:
    """Return what is walked along: all conversations, or those of a state with an index in the list's order."""
    visible = Conversation.objects.visible()
    return visible.filter(state="paused") if filters.state == "paused" else visible


def _behind(conversations: ConversationQuerySet, position: ListPosition | None) -> ConversationQuerySet:
    """Keep what stands behind a place: by the index a range of moments, then the rows of that very moment."""
    if position is None:
        return conversations
    return conversations.filter(last_at__lte=position.at).exclude(last_at=position.at, id__gte=position.id)


def _from_on(conversations: ConversationQuerySet, floor: ListPosition | None) -> ConversationQuerySet:
    """Keep what does not stand behind the end of a walk."""
    if floor is None:
        return conversations
    return conversations.filter(last_at__gte=floor.at).exclude(last_at=floor.at, id__lt=floor.id)


def _place_of(cursor: str) -> ListPosition:
    at, mark, row_id = cursor.partition(".")
    if not (mark and at.isdecimal() and row_id.isdecimal() and len(cursor) <= 38):
        raise Invalid("must be a cursor from an earlier response", field="before")
    return ListPosition(int(at), int(row_id))


def _matching(filters: ListFilters) -> ConversationQuerySet:
    """Return the visible conversations that match: every word somewhere, the participant, the state, who may look."""
    conversations = _in_state(Conversation.objects.visible(), filters)
    for word in filters.words:
        conversations = conversations.filter(
            Q(title__icontains=word) | Q(key__icontains=word) | Q(last_line__icontains=word)
        )
    if filters.names:
        named = Participant.objects.filter(conversation=OuterRef("pk"), name__in=filters.names)
        conversations = conversations.filter(Exists(named))
    return conversations.filter(permissions.named(filters.agent)) if filters.agent else conversations


def _in_state(conversations: ConversationQuerySet, filters: ListFilters) -> ConversationQuerySet:
    """Keep those in a state, as it is shown: owned goes before paused goes before open (§3.6)."""
    match filters.state:
        case "":
            return conversations
        case "waiting":
            return conversations.filter(Exists(Approval.objects.open().filter(conversation=OuterRef("pk"))))
        case "mine":
            return conversations.filter(owner=filters.holder) if filters.holder else conversations.none()
        case "person":
            return conversations.exclude(owner="")
        case "paused" | "open":
            return conversations.filter(state=filters.state, owner="")
    raise Invalid(f"must be one of {', '.join(STATES)}", field="state")


def _few(filters: ListFilters) -> list[int] | None:
    """Return all conversations that one filter leaves by its index, of the filter with the fewest; None for too many.

    Others may be among them: each is held against all filters. Words are looked up only where no other filter leaves
    few: PostgreSQL reads all that hold a word before it returns the first.
    """
    smallest: list[int] | None = None
    for ids in _by_index(filters):
        if ids is not None and (smallest is None or len(ids) < len(smallest)):
            smallest = ids
    return title_index.find(filters.words, FEW) if smallest is None and filters.words else smallest


def _by_index(filters: ListFilters) -> Iterator[list[int] | None]:
    if filters.names:
        yield _bounded(Participant.objects.filter(name__in=filters.names).values_list("conversation_id", flat=True))
    if filters.agent:
        named = Participant.objects.filter(name__in=permissions.names_of(filters.agent), is_named=True)
        yield _bounded(named.values_list("conversation_id", flat=True))
    if filters.state in _HELD:
        yield _bounded(_HELD[filters.state](filters))


def _bounded(ids: "QuerySet[Any, int]") -> list[int] | None:
    fetched = list(ids[: FEW + 1])
    return None if len(fetched) > FEW else sorted(set(fetched))


def _ids(conversations: ConversationQuerySet) -> "QuerySet[Any, int]":
    return conversations.values_list("id", flat=True)


_HELD: dict[str, Callable[[ListFilters], "QuerySet[Any, int]"]] = {
    "waiting": lambda filters: Approval.objects.open().values_list("conversation_id", flat=True),
    "mine": lambda filters: _ids(Conversation.objects.exclude(owner="").filter(owner=filters.holder)),
    "person": lambda filters: _ids(Conversation.objects.exclude(owner="")),
    "paused": lambda filters: _ids(Conversation.objects.filter(state="paused")),
}
