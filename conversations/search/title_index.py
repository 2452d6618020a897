"""Find conversations by any part of a word in their titles, ids and last lines. Filled by `index_writer`.

Each caption is stored as grams: the runs of three characters in its words, and of one and two in scripts without
spaces. The result are candidates, which the list tests against the words themselves. Conversations not indexed yet are
always candidates, so a word said a moment ago is found too.
"""

import time
from collections.abc import Iterable, Mapping, Sequence

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.events.log.sql import marks
from conversations.events.log.sql_blocks import execute_rows

TABLE = "conversations_caption"  # SQLite's grams
TEXT = "conversations_captiontext"  # what was indexed; on PostgreSQL with its grams
LENGTH = 3  # characters of a gram
DENSE = "\u0e00"  # from here on scripts of which one or two characters are a word
MAX_GRAMS = 6  # of a query; the list holds each row against the words themselves
ENOUGH = 2  # grams that PostgreSQL looks up where one of them is in very many: it reads all the rows of each
COMMON = "etaoinsrhdlucm"  # letters, the most frequent first
MAX_READ = 5_000  # rows of the rarest gram that PostgreSQL reads for a page: it reads all before it returns the first
STATISTICS_FOR = 300.0  # seconds for which the frequencies of grams are taken for true
SIGNS = 0xE000  # ASCII signs are kept as private characters: FTS5's ascii tokenizer cuts at them as they are

_FREQUENT = """SELECT e.gram,e.share*c.reltuples FROM pg_class c JOIN pg_namespace n ON n.oid=c.relnamespace
JOIN pg_stats s ON s.schemaname=n.nspname AND s.tablename=c.relname
CROSS JOIN unnest(CAST(CAST(s.most_common_elems AS text) AS text[]),s.most_common_elem_freqs) AS e(gram,share)
WHERE c.oid=CAST(%s AS regclass) AND s.attname='grams' AND e.gram IS NOT NULL AND e.share*c.reltuples>%s"""
_PENDING = "SELECT id FROM conversations_conversation WHERE indexed_seq<head_seq AND NOT is_staged LIMIT %s"


def indexed_text(key: str, title: str, last_line: str) -> str:
    """Return the text that is indexed for a conversation."""
    return f"{key}\n{title}\n{last_line}"


def find(words: Iterable[str], most: int) -> list[int] | None:
    """Return the row ids of candidates for all words, including conversations not indexed yet.

    None if there are more than `most`, if the words are too short, or, on PostgreSQL, if all their grams are very
    frequent.
    """
    query_grams = _rarest({gram for word in words for gram in _grams_of(word)})
    if not query_grams:
        return None
    with connection.cursor() as cursor:
        cursor.execute(_PENDING, [most + 1])  # first: what is indexed meanwhile is found below
        pending = [id_ for (id_,) in cursor.fetchall()]
        if len(pending) > most:
            return None
        if connection.vendor == "sqlite":
            sql, match_query = (
                f"SELECT rowid FROM {TABLE} WHERE {TABLE} MATCH %s LIMIT %s",
                _joined(query_grams, '"', "AND"),
            )
        else:
            sql, match_query = (
                f"SELECT id FROM {TEXT} WHERE grams @@ %s::tsquery LIMIT %s",
                _joined(query_grams, "'", "&"),
            )
        cursor.execute(sql, [match_query, most + 1])
        ids = {id_ for (id_,) in cursor.fetchall()}
    return None if len(ids) > most else sorted(ids.union(pending))


def store(cursor: CursorWrapper, captions: Mapping[int, str]) -> None:
    """Store the current captions of these conversations inside `write_transaction()`; unchanged ones are skipped."""
    stored = _indexed_titles(cursor, captions)
    changed = {id_: text for id_, text in captions.items() if stored.get(id_) != text}
    remove(cursor, [id_ for id_ in changed if id_ in stored])
    if connection.vendor == "sqlite":
        rows = [value for id_, text in changed.items() for value in (id_, " ".join(sorted(grams(text))))]
        execute_rows(cursor, f"INSERT INTO {TABLE}(rowid,grams) VALUES %s", 2, rows)
        execute_rows(cursor, f"INSERT INTO {TEXT}(id,said) VALUES %s", 2, [v for row in changed.items() for v in row])
    else:
        values = [value for id_, text in changed.items() for value in (id_, text, sorted(grams(text)))]
        execute_rows(
            cursor,
            f"WITH made(id,said,grams) AS (VALUES %s) INSERT INTO {TEXT}(id,said,grams)"
            " SELECT id,said,array_to_tsvector(CAST(grams AS text[])) FROM made ON CONFLICT DO NOTHING",
            3,
            values,
        )


def remove(cursor: CursorWrapper, conversations: Sequence[int]) -> None:
    """Delete conversations from the index, inside `write_transaction()`; missing ones are ignored."""
    if not conversations:
        return
    if connection.vendor == "sqlite":  # without the grams, FTS5 has to be told what they were
        stored = _indexed_titles(cursor, conversations)
        rows = [value for id_, text in stored.items() for value in ("delete", id_, " ".join(sorted(grams(text))))]
        execute_rows(cursor, f"INSERT INTO {TABLE}({TABLE},rowid,grams) VALUES %s", 3, rows)
    cursor.execute(f"DELETE FROM {TEXT} WHERE id IN ({marks(len(conversations))})", list(conversations))


def clear(cursor: CursorWrapper) -> None:
    """Delete the whole index, inside `write_transaction()`."""
    if connection.vendor == "sqlite":
        cursor.execute(f"INSERT INTO {TABLE}({TABLE}) VALUES('delete-all')")
    cursor.execute(f"DELETE FROM {TEXT}")


def grams(text: str) -> set[str]:
    """Return the grams of a text's words."""
    all_grams: set[str] = set()
    for word in set(_folded(text).split()):
        all_grams.update(word[at : at + LENGTH] for at in range(len(word) - LENGTH + 1))
        if any(character >= DENSE for character in word):
            short = [word[at : at + size] for size in (1, 2) for at in range(len(word) - size + 1)]
            all_grams.update(gram for gram in short if _is_dense(gram))
    return {gram.translate(_signs) for gram in all_grams}


def _grams_of(word: str) -> set[str]:
    """Return the grams that every text with this word has; none if it is too short."""
    folded = _folded(word)
    if len(folded) >= LENGTH:
        return {folded[at : at + LENGTH].translate(_signs) for at in range(len(folded) - LENGTH + 1)}
    return {folded} if folded and _is_dense(folded) else set()


def _rarest(query_grams: set[str]) -> list[str]:
    """Return a few grams that are likely to leave the fewest candidates, since each frequent one costs a lookup. None
    if on PostgreSQL each is very frequent; SQLite reads no more rows than needed."""

    def frequency(gram: str) -> int:
        return sum(len(COMMON) - COMMON.index(character) for character in gram if character in COMMON)

    ordered = sorted(query_grams, key=lambda gram: (frequency(gram), gram))
    if connection.vendor == "sqlite":
        return ordered[:MAX_GRAMS]
    frequent = _frequent()
    rare = [gram for gram in ordered if gram not in frequent][:MAX_GRAMS]
    others = sorted((gram for gram in ordered if gram in frequent), key=lambda gram: frequent[gram])
    return [*rare, *others[: max(0, ENOUGH - len(rare))]] if rare else []


def _frequent() -> dict[str, float]:
    """Return the grams of very many conversations, with their share, by the statistics of the last ANALYZE."""
    global _counted
    read_at, frequent = _counted
    if time.monotonic() - read_at > STATISTICS_FOR:
        with connection.cursor() as cursor:
            cursor.execute(_FREQUENT, [TEXT, MAX_READ])
            frequent = dict(cursor.fetchall())
        _counted = time.monotonic(), frequent
    return frequent


def _is_dense(gram: str) -> bool:
    return all(character >= DENSE for character in gram)


def _folded(text: str) -> str:
    """Return a text without case, folding at least what either database folds."""
    return text.upper().casefold()


def _joined(query_grams: Sequence[str], quote: str, operator: str) -> str:
    return f" {operator} ".join(f"{quote}{gram}{quote}" for gram in query_grams)


def _indexed_titles(cursor: CursorWrapper, conversations: Iterable[int]) -> dict[int, str]:
    ids = list(conversations)
    if not ids:
        return {}
    cursor.execute(f"SELECT id,said FROM {TEXT} WHERE id IN ({marks(len(ids))})", ids)
    return dict(cursor.fetchall())


_counted: tuple[float, dict[str, float]] = (-STATISTICS_FOR, {})  # when they were read, and which are frequent
_signs = {code: SIGNS + code for code in range(0x80) if not chr(code).isalnum()}
