"""Split text into words, for indexing, searching and marking alike: both databases are given these words and split
nothing themselves.

Words are runs of letters, digits and their marks, folded: no case, accents, vowel points or width. Scripts without
spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese), and Korean, whose words take endings, are cut into
overlapping pairs of characters, so that any part of two or more characters is found. The first and the last character
of such a run are words of their own as well, next to the word before or after it: 100円 is found in 100円です. Measured
over sample texts: FTS5's trigrams take 7 times the index for English (2.5 of the text instead of 0.37) and find nothing
of two characters, the commonest length of a word in Chinese; its unicode61 is as small as ours and finds in these
scripts only what stands between signs (권리: 20 of 820 places).
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

MAX_WORD = 64  # characters of a word; a longer one is its beginning

# Runs without spaces. Punctuation of these blocks is left out.
_DENSE = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109d\u1100-\u11ff\u1780-\u17d3\u17d7"
    "\u17dc\u17dd\u17e0-\u17e9\u2e80-\u2fdf\u3005-\u3007\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003ffff"
)
_VARIANTS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_IGNORED = "\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff"  # within a word they are nothing
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670"
    f"\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u08ca-\u08ff\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
    f"{_VARIANTS}{_IGNORED}]"
)
_ASCII = re.compile("[0-9A-Za-z]+")
# Of ASCII alone: words in lower case between blanks, in half the time of the pattern.
_LOWER = "".join(chr(code).lower() if chr(code).isalnum() else " " for code in range(128))


class Word(NamedTuple):
    """A word and its position. `is_part`: one or two characters of a script without spaces."""

    text: str
    start: int
    end: int
    is_part: bool = False


def composed(text: str) -> str:
    """Return the text in NFC, the form in which positions of words are counted."""
    return text if text.isascii() or unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def read(text: str) -> Iterator[Word]:
    """Yield the words of a composed text, in order."""
    if text.isascii():
        for match in _ASCII.finditer(text):
            yield Word(match.group().lower()[:MAX_WORD], *match.span())
        return
    for match in _pattern().finditer(text):
        if match.lastindex:
            yield from _pairs(match.group(), match.start())
        elif folded := fold(match.group()):
            yield Word(folded[:MAX_WORD], *match.span())


def split_words(text: str) -> tuple[list[str], set[str]]:
    """Return the words of a composed text, and the single characters of scripts without spaces; like `read`, without
    positions."""
    if text.isascii():
        pieces = text.translate(_LOWER).split()
        is_long = max(map(len, pieces), default=0) > MAX_WORD
        return [piece[:MAX_WORD] for piece in pieces] if is_long else pieces, set()
    tokens = list(read(text))
    return [word.text for word in tokens], {piece for word in tokens if word.is_part for piece in word.text}


def read_part(text: str) -> list[Word]:
    """Return the words that a composed text has wherever it is a part of another: a run at its beginning or end may go
    on there."""
    words = list(read(text))
    if len(words) > 1 and words[0].start == words[1].start:
        words = words[1:]
    if len(words) > 1 and words[-1].end == words[-2].end:
        words = words[:-1]
    return words


def fold(text: str) -> str:
    """Return a word in the form that is compared."""
    return text.translate(_folds)


def _pairs(run: str, start: int) -> Iterator[Word]:
    """Cut a run of a script without spaces into its first character, overlapping pairs, and its last character."""
    characters = [
        Word(folded, at, at + 1, True) for at, character in enumerate(run, start) if (folded := fold(character))
    ]
    yield from characters[:1]
    for first, second in pairwise(characters):
        yield Word(first.text + second.text, first.start, second.end, True)
    yield from characters[1:][-1:]


class _Folds(dict[int, str]):
    """Folds characters on first use."""

    def __missing__(self, code: int) -> str:
        compared = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", chr(code)).casefold())
        bare = unicodedata.normalize("NFC", _ACCENTS.sub("", compared))
        folded = self[code] = "".join(
            character for character in bare if character.isalnum() or unicodedata.category(character)[0] == "M"
        )
        return folded


_folds = _Folds()


@cache
def _pattern() -> re.Pattern[str]:
    """Compile the pattern of words in any script; group 1 is a run without spaces. Takes about 30 ms, on first use."""
    dense = re.compile(f"[{_DENSE}]")
    marks = [character for character in map(chr, range(0x300, 0x1F000)) if unicodedata.category(character)[0] == "M"]
    joined = "".join(character for character in marks if not dense.match(character))
    return re.compile(f"([{_DENSE}][{_DENSE}{_VARIANTS}]*)|(?:[^\\W_{_DENSE}]|[{joined}\u0640{_VARIANTS}{_IGNORED}])+")
