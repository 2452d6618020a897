"""Short excerpts of an event around the words that were searched for, which are marked. Text is escaped piece by
piece."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import NamedTuple

from markupsafe import Markup

from conversations.core import hidden_characters
from conversations.core.plain_text import without_markers
from conversations.search import searchable_text, tokenizer
from conversations.search.finder import SearchHit
from conversations.search.query import Query, Term

BEFORE, MAX_EXCERPT = 60, 280  # characters before the first mark, and of a whole excerpt
MAX_PARTS = 2  # of one event
# Of all events of one page, half a second of CPU together. Past one of them an event is found, but not marked.
MAX_OF_ALL = 500_000  # characters that are read
MAX_SPLIT = 30_000  # words into which they are split, where a term may match
MAX_COMPARED = 1_000_000  # words that are compared with a further word of a phrase
MAX_READ = 100_000  # characters of one event
READ_AHEAD = 256  # words into which a text is split at a time
_MARK = Markup("<mark>{}</mark>")

Span = tuple[int, int]


class Excerpt(NamedTuple):
    """Some text of an event. `label`: the field it comes from, empty for the spoken text. `marks`: the spans of the
    matches."""

    label: str
    text: str
    marks: Sequence[Span]

    @property
    def html(self) -> Markup:
        """Draw the excerpt with every character visible."""
        from conversations.rendering import richtext  # late: commands draw nothing

        pieces, at = Markup(), 0
        for start, end in self.marks:
            pieces += richtext.inline(self.text[at:start]) + _MARK.format(richtext.inline(self.text[start:end]))
            at = end
        return pieces + richtext.inline(self.text[at:])

    @property
    def caption(self) -> str:
        """Return the field's name, escaped."""
        return hidden_characters.spelled_out(self.label[:60])


class Matches(NamedTuple):
    """The spans of a text that match, in order, as far as one excerpt shows them; `terms`: how many terms match
    anywhere in it."""

    spans: list[Span]
    terms: int


@dataclass(slots=True)
class ExcerptBudget:
    """What may still be read of an event, in characters, and split and compared, in words."""

    characters: int
    words: int
    comparisons: int

    def share(self, events: int) -> "ExcerptBudget":
        """Return the share of the next of so many events."""
        characters = min(MAX_READ, max(self.characters // events, MAX_EXCERPT))
        return ExcerptBudget(characters, self.words // events, self.comparisons // events)


def of_hits(hits: Sequence[SearchHit], query: Query) -> Iterator[list[Excerpt]]:
    """Yield the excerpts of each hit of a page, in order. At most `MAX_READ` characters are read per hit, `MAX_OF_ALL`
    in all, `MAX_SPLIT` words are split off and `MAX_COMPARED` compared; matches past these bounds are not marked."""
    left = ExcerptBudget(MAX_OF_ALL, MAX_SPLIT, MAX_COMPARED)
    for at, hit in enumerate(hits):
        share = left.share(len(hits) - at)
        budget = replace(share)
        yield _of_hit(hit, query, budget)
        left.characters -= share.characters - budget.characters
        left.words -= share.words - budget.words
        left.comparisons -= share.comparisons - budget.comparisons


def _of_hit(hit: SearchHit, query: Query, budget: ExcerptBudget) -> list[Excerpt]:
    """Return the first match in each of the two fields in which the most terms match, else the beginning of the
    event."""
    candidates = []
    parts = searchable_text.parts_of(hit.event.kind, searchable_text.read(hit.event.body))
    for part in parts if query.terms else ():
        text = tokenizer.composed(" ".join(part.text[: budget.characters].split()))
        budget.characters -= len(text)
        text, matches = _marked(part.label, text, query.terms, budget)
        if matches.spans:
            candidates.append((matches.terms, _cut(part.label, text, matches.spans)))
        if budget.characters <= 0:
            break
    if candidates:
        best = sorted(candidates, key=lambda candidate: -candidate[0])[:MAX_PARTS]
        return [excerpt for _, excerpt in candidates if any(excerpt is candidate for _, candidate in best)]
    lines = [(part.label, tokenizer.composed(" ".join(part.text[: 2 * MAX_EXCERPT].split()))) for part in parts[:1]]
    return [_cut(label, line if label else without_markers(line), ()) for label, line in lines]


def _marked(label: str, text: str, terms: Sequence[Term], budget: ExcerptBudget) -> tuple[str, Matches]:
    """Find terms in spoken text without its Markdown, in a field, or, if only an address contains them, in the raw
    text."""
    plain = text if label else without_markers(text)
    matches = _matches(plain, terms, budget)
    return (plain, matches) if matches.spans or plain == text else (text, _matches(text, terms, budget))


def _matches(text: str, terms: Sequence[Term], budget: ExcerptBudget) -> Matches:
    """Find terms in a composed text; overlapping spans are joined."""
    matches = list(_alone(text, [term for term in terms if term.is_character]))
    if word_terms := _possible(text, [term for term in terms if not term.is_character]):
        matches += _together(text, word_terms, budget)
    joined: list[Span] = []
    for start, end in sorted(span for span, _ in matches):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return Matches(joined, len({term for _, term in matches}))


def _possible(text: str, terms: Sequence[Term]) -> list[Term]:
    """Leave out terms of which a word is nowhere in a composed text, not even within another word: most that do not
    match, without splitting the text."""
    if not terms:
        return []
    folded = text.lower() if text.isascii() else tokenizer.fold(text)
    return [term for term in terms if all(word in folded for word in term.words)]


def _together(text: str, terms: Sequence[Term], budget: ExcerptBudget) -> Iterator[tuple[Span, Term]]:
    """Find terms in one pass: by their first words, and by prefixes. After one excerpt's length only terms without a
    match are looked for, and the text is split into words no further than that."""
    by_first: dict[str, list[Term]] = {}
    for term in terms:
        if len(term.words) > 1 or not term.is_prefix:
            by_first.setdefault(term.words[0], []).append(term)
    prefixes = {term.words[0]: term for term in terms if len(term.words) == 1 and term.is_prefix}
    beginnings, matched, shown_to = tuple(prefixes), set[Term](), float("inf")
    longest = max(len(term.words) for term in terms)
    rest, tokens = tokenizer.read(text), list[tokenizer.Word]()
    for at in count():
        if at + longest > len(tokens):
            fresh = list(islice(rest, min(READ_AHEAD, budget.words)))
            budget.words -= len(fresh)
            tokens += fresh
        if at == len(tokens):
            return
        word = tokens[at]
        if word.start > shown_to and len(matched) == len(terms):
            return
        candidates = by_first.get(word.text, [])
        if beginnings and word.text.startswith(beginnings):
            candidates = candidates + [term for begin, term in prefixes.items() if word.text.startswith(begin)]
        for term in candidates:
            if word.start > shown_to and term in matched:
                continue
            if len(term.words) > budget.comparisons:
                return
            if _follows(tokens, at, term, budget):
                matched.add(term)
                shown_to = min(shown_to, word.start + MAX_EXCERPT)
                yield (word.start, tokens[at + len(term.words) - 1].end), term


def _follows(tokens: Sequence[tokenizer.Word], at: int, term: Term, budget: ExcerptBudget) -> bool:
    """Return whether the words after this one match the rest of a term."""
    if at + len(term.words) > len(tokens):
        return False
    for n in range(1, len(term.words)):
        budget.comparisons -= 1
        if not term.fits(n, tokens[at + n].text):
            return False
    return True


def _alone(text: str, terms: Sequence[Term]) -> Iterator[tuple[Span, Term]]:
    """Find single characters: each term's first one, and all up to one excerpt's length after the first of all."""
    by_character = {term.words[0]: term for term in terms}
    wanted = {character: by_character.get(tokenizer.fold(character)) for character in set(text)} if terms else {}
    present = {character: term for character, term in wanted.items() if term}
    first = min((text.index(character) for character in present), default=0)
    for character, term in present.items():
        for match in re.compile(re.escape(character)).finditer(text, first, first + MAX_EXCERPT):
            yield match.span(), term
        yield (at := text.index(character), at + 1), term


def _cut(label: str, text: str, spans: Sequence[Span]) -> Excerpt:
    """Cut an excerpt, at spaces if there are any near."""
    first = spans[0][0] if spans else 0
    start = max(0, first - BEFORE)
    if start:
        start = max(text.find(" ", start, first) + 1, start)
    end = min(len(text), start + MAX_EXCERPT)
    if end < len(text) and (space := text.rfind(" ", max(first, end - 40), end)) > 0:
        end = space
    begin, rest = ("… " if start else ""), (" …" if end < len(text) else "")
    shift = len(begin) - start
    inside = [(at + shift, min(to, end) + shift) for at, to in spans if at < end]
    return Excerpt(label, f"{begin}{text[start:end]}{rest}", inside)
