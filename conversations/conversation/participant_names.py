"""Find participants by a part of their name, in all conversations. Called by pages for the command palette."""

from itertools import islice

from conversations.conversation.conversation_row import strip_prefix
from conversations.core import hidden_characters
from conversations.listing.sql_conditions import fetch_rows
from conversations.models import Participant

WALKED = 300  # names that are looked through, the first of all
FURTHER = 8  # names that are looked at from each spelling on, where there are more than that
# From name to name by the index: as many steps as names, however many conversations each takes part in.
_NAMES = """WITH RECURSIVE walk(name) AS (
SELECT * FROM (SELECT name FROM conversations_participant WHERE name>=%s ORDER BY name LIMIT 1) AS f UNION ALL
SELECT (SELECT name FROM conversations_participant WHERE name>walk.name ORDER BY name LIMIT 1)
FROM walk WHERE walk.name IS NOT NULL) SELECT name FROM walk WHERE name IS NOT NULL LIMIT %s"""


def matching(text: str, limit: int) -> list[str]:
    """Return names without prefixes that contain `text`, in any case, sorted; without those that have hidden
    characters. If there are more than `WALKED` names, further ones are found by how they begin."""
    walked = _walk("", WALKED)
    if len(walked) == WALKED:
        for begin in dict.fromkeys((text, text.lower(), text[:1].upper() + text[1:])):
            for prefix in ("", "agent:", "user:"):
                walked += _walk(prefix + begin, FURTHER)
    names = {strip_prefix(name) for name in walked}
    matches = (name for name in sorted(names, key=str.lower) if text.lower() in name.lower())
    return list(islice(filter(_is_shown, matches), limit))


def _is_shown(name: str) -> bool:
    """Return whether the participant of a conversation that people see has this name, written in the open."""
    rows = Participant.objects.filter(name__in=[name, f"agent:{name}", f"user:{name}"], conversation__is_staged=False)
    return hidden_characters.is_clean(name) and rows.exists()


def _walk(begin: str, limit: int) -> list[str]:
    return [name for (name,) in fetch_rows(_NAMES, [begin.replace("\0", ""), limit])]
