"""Find outputs of calls that were never made before a request is stored, so that its client gets an error that names
them. Sync; called by `create`. The worker checks again, item by item."""

from collections import Counter
from collections.abc import Iterable, Sequence

from django.db import connection

from conversations.events.log.sql import marks
from conversations.events.response_ids import CLIENT_ORIGIN, Json
from conversations.runs.responses import response_chain
from conversations.runs.responses.response_chain import CHAIN, MAX_LINKS

_OPEN = f"""{CHAIN} SELECT t.call_id FROM chain c JOIN conversations_toolcall t ON t.run=c.run
WHERE t.origin=%s AND t.status='called' AND t.call_id IN ({{marks}})"""


def first_unknown(items: Sequence[Json], earlier: str | None) -> int | None:
    """Return the index of the first output without its call, among `items` or in the chain that ends with the response
    `earlier`; None if each has one, or if the chain is too long to check."""
    outputs = [str(item.get("call_id")) for item in items if item.get("type") == "function_call_output"]
    if not outputs or any(item.get("type", "item_reference") == "item_reference" for item in items):
        return None  # what is only named may be a call
    calls = _open_calls(earlier, outputs) if earlier else Counter()
    if (index := _unpaired(calls, items)) is None or earlier is None:
        return index
    chain = response_chain.of(earlier)
    calls = Counter()
    _unpaired(calls, chain.items)
    return _unpaired(calls, items) if chain.is_whole else None


def _open_calls(earlier: str, outputs: Sequence[str]) -> Counter[str]:
    with connection.cursor() as cursor:
        cursor.execute(_OPEN.format(marks=marks(len(outputs))), [earlier, MAX_LINKS, CLIENT_ORIGIN, *outputs])
        return Counter(row[0] for row in cursor.fetchall())


def _unpaired(calls: Counter[str], items: Iterable[Json]) -> int | None:
    """Add the calls of items and remove those that have outputs; return the first output without a call."""
    first = None
    for index, item in enumerate(items):
        call = str(item.get("call_id"))
        if item.get("type") == "function_call":
            calls[call] += 1
        elif item.get("type") == "function_call_output":
            if calls[call] <= 0 and first is None:
                first = index
            calls[call] -= calls[call] > 0
    return first
