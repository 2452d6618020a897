"""Find who is behind a principal, where four eyes need two people: a token acts for whoever made it (law G).

Whom the record cannot tell counts as another: the two accounts of one person, who made an import's file, and who ran a
command on the server's machine (`system`), which could change any account anyway.
"""

from collections.abc import Collection, Iterable

from conversations.core.principals import SYSTEM
from conversations.models import AuditEntry

_TOKEN = "token:"


def people_behind(principals: Iterable[str]) -> dict[str, set[str]]:
    """Return for each principal itself and, of a token, whoever made it; of one made by a token, those behind that,
    too. A name may have been used again: everybody who made a token of that name counts."""
    names = set(principals)
    makers: dict[str, set[str]] = {}
    unknown = {who for who in names if who.startswith(_TOKEN)}
    while unknown:
        makers |= {token: set() for token in unknown}
        entries = AuditEntry.objects.filter(target__in=unknown, verb="make_token", outcome="done")
        for token, maker in entries.values_list("target", "principal"):
            makers[token] |= {maker} - {str(SYSTEM)}
        unknown = {who for token in unknown for who in makers[token] if who.startswith(_TOKEN)} - makers.keys()
    return {who: _reached(who, makers) for who in names}


def is_same_person(principal: str, other: str) -> bool:
    """Return whether somebody is behind both of these principals."""
    return is_among(principal, people_behind([other])[other])


def is_among(principal: str, people: Collection[str]) -> bool:
    """Return whether anybody behind a principal is one of these people."""
    return bool(people) and not people_behind([principal])[principal].isdisjoint(people)


def _reached(who: str, makers: dict[str, set[str]]) -> set[str]:
    reached, fresh = {who}, {who}
    while fresh:
        fresh = {maker for each in fresh for maker in makers.get(each, ())} - reached
        reached |= fresh
    return reached
