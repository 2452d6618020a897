"""Letters in upper and lower case, beyond ASCII too: SQLite folds none of those, PostgreSQL what its locale knows."""

import unicodedata
from functools import cache

END = 0x1F000  # no letter from here on has a case


def fold_name(name: str) -> str:
    """Return what names have in common that differ in case only, or in how their characters are composed."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def fold_letters(text: str) -> str:
    """Return a text without case, letter by letter: it has the same length, and `ß` stays as it is."""
    return "".join(map(_folded, text))


def other_cases(letter: str) -> str:
    """Return the letters beyond ASCII that differ from a folded one by their case only."""
    return _other_cases().get(letter, "")


@cache
def _other_cases() -> dict[str, str]:
    others: dict[str, str] = {}
    for letter in map(chr, range(0x80, END)):
        if (folded := _folded(letter)) != letter:
            others[folded] = others.get(folded, "") + letter
    return others


def _folded(letter: str) -> str:
    return next((folded for folded in (letter.casefold(), letter.lower()) if len(folded) == 1), letter)
