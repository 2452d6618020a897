"""Delete the rows of copied turns that 0026 gave to forks at first: without tokens, whatever the turn spent."""

from django.db import migrations

DELETE = """DELETE FROM conversations_turn WHERE run IS NOT NULL AND input_tokens=0 AND output_tokens=0 AND seq<=(
SELECT c.copied_seq FROM conversations_conversation c WHERE c.id=conversations_turn.conversation_id)"""


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0028_rule_tools"),
    ]

    operations = [migrations.RunSQL(DELETE, migrations.RunSQL.noop)]
