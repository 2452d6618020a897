"""What is personal in an audit entry is hashed as a salted digest, so that it can be erased. Older entries keep
their hash, which covers them in the clear."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0019_agents_elsewhere"),
    ]

    operations = [
        migrations.AddField(
            model_name="auditentry",
            name="salt",
            field=models.BinaryField(help_text="16 random bytes; none once the entry is erased", null=True),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="digest",
            field=models.CharField(
                default="",
                help_text="SHA-256 over salt and personal columns; empty in entries of format 1",
                max_length=64,
            ),
        ),
        migrations.AlterField(
            model_name="redaction",
            name="conversation",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                help_text="none: entries of the audit log",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                to="conversations.conversation",
            ),
        ),
    ]
