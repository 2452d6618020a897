"""Give imported calls without a result their own status: they were left as if they were running."""

from django.db import migrations

UPDATE = """UPDATE conversations_toolcall SET status='no_result' WHERE run IS NULL AND finished_seq IS NULL
AND status IN ('called','executing') AND EXISTS (SELECT 1 FROM conversations_event e
WHERE e.conversation_id=conversations_toolcall.conversation_id AND e.seq=conversations_toolcall.called_seq
AND substr(e.principal,1,7)='import:')"""


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0030_asked_by_conversation"),
    ]

    operations = [migrations.RunSQL(UPDATE, migrations.RunSQL.noop)]
