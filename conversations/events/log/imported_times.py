"""Read when the imported ones of some events first happened. Called by the list of calls, its exports and a call's
page."""

from collections.abc import Sequence

from conversations.core import principals
from conversations.events import original_times, payload
from conversations.events.log.reads import column_at
from conversations.models import ToolCall

READ = 65_536  # characters of a body; the time in a longer one is not read, unless all are

_IS_IMPORTED = f"substr(principal,1,{len(principals.IMPORTED)})='{principals.IMPORTED}'"


def read(positions: Sequence[tuple[int, int]], *, whole: bool = False) -> dict[tuple[int, int], int | None]:
    """Return the imported ones of these events (conversation's row id, seq), each with the time at which it first
    happened (µs UTC), None if the record does not have it. `whole`: however long the body."""
    text = "body" if whole else f"CASE WHEN length(body)<={READ} THEN body ELSE '' END"
    bodies = column_at(positions, f"CASE WHEN {_IS_IMPORTED} THEN {text} END")
    imported = ((place, body) for place, body in bodies.items() if body is not None)
    return {place: original_times.of_imported(payload.fields_of(body)) for place, body in imported}


def called_at(calls: Sequence[ToolCall]) -> dict[str, int]:
    """Return when each of these calls was made (µs UTC), by its id: of an imported one its original time, if known."""
    places = {call.id: (call.conversation_id, call.called_seq) for call in calls}
    times = read(list(places.values()))
    first = {call.id: times.get(places[call.id]) for call in calls}
    return {call.id: call.started_at if (at := first[call.id]) is None else at for call in calls}
