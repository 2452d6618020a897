"""Full-text search in all conversations: FTS5 on SQLite, tsvector with GIN on PostgreSQL, one interface.

`read` and `find` for whoever asks; `index` brings it up to date, the `Indexer` in the background; `forget` takes events
out. The index is no part of the record: it can be made again from the events at any time.
"""

from conversations.search.excerpt import Excerpt, of_hits
from conversations.search.hits import Found, Hit, find
from conversations.search.index import Lag, forget, lag
from conversations.search.indexer import Indexer
from conversations.search.query import Query, Term, read

__all__ = ["Excerpt", "Found", "Hit", "Indexer", "Lag", "Query", "Term", "find", "forget", "lag", "of_hits", "read"]
