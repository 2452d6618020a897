"""Lists without a scan: the search index by time, captions by parts of words, who was named, the audit log by time.

The tables of no model are filled with the search index, which begins anew.
"""

from typing import Any

from django.db import migrations, models
from django.db.models import F, Q

TIMES = "CREATE TABLE conversations_searchtime(span BIGINT PRIMARY KEY,earliest BIGINT NOT NULL,latest BIGINT NOT NULL)"
MAKE = {
    "sqlite": (
        TIMES,
        "CREATE VIRTUAL TABLE conversations_caption USING fts5(grams,content='',columnsize=0,detail=none,"
        "tokenize='ascii')",
        "CREATE TABLE conversations_captiontext(id INTEGER PRIMARY KEY,said TEXT NOT NULL)",
    ),
    "postgresql": (
        TIMES,
        "CREATE TABLE conversations_captiontext(id BIGINT PRIMARY KEY,said TEXT NOT NULL,grams TSVECTOR NOT NULL)",
        "CREATE INDEX conversations_captiontext_grams ON conversations_captiontext USING gin(grams)"
        " WITH (fastupdate=off)",
    ),
}
DROP = {
    "sqlite": ("conversations_searchtime", "conversations_caption", "conversations_captiontext"),
    "postgresql": ("conversations_searchtime", "conversations_captiontext"),
}


def make(apps: Any, schema_editor: Any) -> None:
    """Make them as this database does."""
    for statement in MAKE[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def drop(apps: Any, schema_editor: Any) -> None:
    """Drop them; nothing is lost that the record does not tell."""
    for table in DROP[schema_editor.connection.vendor]:
        schema_editor.execute(f"DROP TABLE {table}")


def fill(apps: Any, schema_editor: Any) -> None:
    """Note the moments of the audit entries there are."""
    schema_editor.execute(
        "INSERT INTO conversations_auditspan(span,earliest,latest)"
        " SELECT seq/1024,MIN(at),MAX(at) FROM conversations_auditentry GROUP BY 1"
    )


class Migration(migrations.Migration):
    """Make them."""

    dependencies = [("conversations", "0005_guests")]

    operations = [
        migrations.RunPython(make, drop),
        migrations.CreateModel(
            name="AuditSpan",
            fields=[
                ("span", models.BigIntegerField(primary_key=True, serialize=False)),
                ("earliest", models.BigIntegerField(help_text="µs UTC")),
                ("latest", models.BigIntegerField(help_text="µs UTC")),
            ],
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RemoveIndex(model_name="conversation", name="conversation_unindexed"),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                fields=["id"],
                name="conversation_unindexed",
                condition=Q(indexed_seq__lt=F("head_seq"), is_staged=False),
            ),
        ),
        migrations.AddIndex(
            model_name="participant",
            index=models.Index(fields=["name", "conversation"], name="participant_named", condition=Q(is_named=True)),
        ),
    ]
