"""The search index: tables that no model describes. On SQLite FTS5 without the text, on PostgreSQL tsvectors."""

from typing import Any

from django.db import migrations

MAKE = {
    "sqlite": (
        "CREATE VIRTUAL TABLE conversations_search USING fts5(words,characters,marks,content='',columnsize=0,"
        "tokenize='ascii')",
        "CREATE TABLE conversations_searchword(word TEXT NOT NULL,block INTEGER NOT NULL,PRIMARY KEY(word,block))"
        " WITHOUT ROWID",
    ),
    "postgresql": (
        "CREATE TABLE conversations_search(id BIGINT PRIMARY KEY,words TSVECTOR NOT NULL)",
        # Without a list of what is pending, which each search would have to walk through.
        "CREATE INDEX conversations_search_words ON conversations_search USING gin(words) WITH (fastupdate=off)",
        'CREATE TABLE conversations_searchword(word TEXT COLLATE "C" NOT NULL,block BIGINT NOT NULL,'
        "PRIMARY KEY(word,block))",
    ),
}
DROP = ("DROP TABLE conversations_search", "DROP TABLE conversations_searchword")


def make(apps: Any, schema_editor: Any) -> None:
    """Make them as this database does."""
    for statement in MAKE[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def drop(apps: Any, schema_editor: Any) -> None:
    """Drop them; nothing is lost that the events do not tell."""
    for statement in DROP:
        schema_editor.execute(statement)
    apps.get_model("conversations", "Conversation").objects.update(indexed_seq=0)


class Migration(migrations.Migration):
    dependencies = [("conversations", "0001_initial")]

    operations = [migrations.RunPython(make, drop)]
