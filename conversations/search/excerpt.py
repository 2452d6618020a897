"""Short excerpts of an event around the words that were searched for, which are marked. Text is escaped piece by
piece."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from conversations.core import hidden_characters
from conversations.core.plain_text import without_markers
from conversations.search import searchable_text, tokenizer
from conversations.search.finder import SearchHit
from conversations.search.query import Query, Term

BEFORE, MAX_EXCERPT = 60, 280  # characters before the first mark, and of a whole excerpt
MAX_PARTS = 2  # of one event
MAX_OF_ALL = 1_000_000  # characters of all events of one page: half a second
MAX_READ = 100_000  # characters of one event that are looked through; past them it is found, not marked
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


def of_hits(hits: Sequence[SearchHit], query: Query) -> Iterator[list[Excerpt]]:
    """Yield the excerpts of each hit of a page, in order; at most `MAX_READ` characters are read per hit, `MAX_OF_ALL`
    in all."""
    left = MAX_OF_ALL
    for at, hit in enumerate(hits):
        most = min(MAX_READ, max(left // (len(hits) - at), MAX_EXCERPT))
        excerpts, looked_at = _of_hit(hit, query, most)
        left -= looked_at
        yield excerpts


def _of_hit(hit: SearchHit, query: Query, most: int) -> tuple[list[Excerpt], int]:
    """Return the first match in each of the two fields with the most matching words, else the beginning of the event;
    with how many characters were read."""
    left, candidates = most, []
    parts = searchable_text.parts_of(hit.event.kind, searchable_text.read(hit.event.body))
    for part in parts if query.terms else ():
        text = tokenizer.composed(" ".join(part.text[:left].split()))
        left -= len(text)
        text, spans = _marked(part.label, text, query.terms)
        if spans:
            candidates.append(
                (len({text[start:end].casefold() for start, end in spans}), _cut(part.label, text, spans))
            )
        if left <= 0:
            break
    if candidates:
        best = sorted(candidates, key=lambda candidate: -candidate[0])[:MAX_PARTS]
        return [excerpt for _, excerpt in candidates if any(excerpt is candidate for _, candidate in best)], most - left
    lines = [(part.label, tokenizer.composed(" ".join(part.text[: 2 * MAX_EXCERPT].split()))) for part in parts[:1]]
    begins = [_cut(label, line if label else without_markers(line), ()) for label, line in lines]
    return begins, most - left


def _marked(label: str, text: str, terms: Sequence[Term]) -> tuple[str, list[Span]]:
    """Find terms in spoken text without its Markdown, in a field, or, if only an address contains them, in the raw
    text."""
    plain = text if label else without_markers(text)
    spans = places(plain, terms)
    return (plain, spans) if spans else (text, places(text, terms))


def places(text: str, terms: Sequence[Term]) -> list[Span]:
    """Return the spans in a composed text that match these terms, in order, overlapping ones joined."""
    tokens = list(tokenizer.read(text))
    spans = list(_together(tokens, [term for term in terms if not term.is_character]))
    spans += [span for term in terms if term.is_character for span in _alone(text, term)]
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _together(tokens: Sequence[tokenizer.Word], terms: Sequence[Term]) -> Iterator[Span]:
    """Find terms in one pass: by their first words, and by prefixes."""
    exact: dict[str, list[Term]] = {}
    for term in terms:
        if len(term.words) > 1 or not term.is_prefix:
            exact.setdefault(term.words[0], []).append(term)
    begins = [term for term in terms if len(term.words) == 1 and term.is_prefix]
    beginnings = tuple(term.words[0] for term in begins)
    for at, word in enumerate(tokens):
        if beginnings and word.text.startswith(beginnings):
            yield word.start, word.end
        for term in exact.get(word.text, ()):
            last = at + len(term.words) - 1
            if last < len(tokens) and all(term.fits(n, tokens[at + n].text) for n in range(1, len(term.words))):
                yield word.start, tokens[last].end


def _alone(text: str, term: Term) -> list[Span]:
    return [(at, at + 1) for at, character in enumerate(text) if tokenizer.fold(character) == term.words[0]]


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
