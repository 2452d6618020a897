"""Give imported calls without a result their own status: they were left as if they were running. Those that were stored
within five minutes of when they happened are of a session that was followed, and stay as they are.
"""

import json
from typing import Any

from django.db import migrations

from conversations.core.micros import read_micros

FOLLOWED_WITHIN_US = 300_000_000
OPEN = """SELECT c.id, e.at, e.body FROM conversations_toolcall c JOIN conversations_event e
ON e.conversation_id=c.conversation_id AND e.seq=c.called_seq
WHERE c.run IS NULL AND c.finished_seq IS NULL AND c.status IN ('called','executing')
AND substr(e.principal,1,7)='import:'"""


def mark(apps: Any, schema_editor: Any) -> None:
    """Change their status."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(OPEN)
        over = [id_ for id_, at, body in cursor.fetchall() if not _happened_now(at, body)]
        cursor.executemany("UPDATE conversations_toolcall SET status='no_result' WHERE id=%s", [(id_,) for id_ in over])


def _happened_now(at: int, body: str) -> bool:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return False
    if not isinstance(fields, dict):
        return False
    imported = fields.get("imported")
    first = read_micros(imported.get("at")) if isinstance(imported, dict) else None
    first = first if first is not None else read_micros(fields.get("created_at"))
    return first is not None and at - first <= FOLLOWED_WITHIN_US


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0030_asked_by_conversation"),
    ]

    operations = [migrations.RunPython(mark, migrations.RunPython.noop)]
