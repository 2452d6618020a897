"""Full-text search in all conversations: FTS5 on SQLite, tsvector with GIN on PostgreSQL, one interface.

`read` and `find` answer queries; `index_writer` brings the index up to date, the `Indexer` does so in the background;
`forget` removes events. The index is not part of the record: it can be rebuilt from the events at any time.
"""

from conversations.search.excerpt import Excerpt, of_hits
from conversations.search.finder import SearchHit, SearchPage, find
from conversations.search.index_writer import Lag, forget, lag
from conversations.search.indexer import Indexer
from conversations.search.query import Query, Term, read

__all__ = [
    "Excerpt",
    "Indexer",
    "Lag",
    "Query",
    "SearchHit",
    "SearchPage",
    "Term",
    "find",
    "forget",
    "lag",
    "of_hits",
    "read",
]
