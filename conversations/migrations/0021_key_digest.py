"""The chain of a new conversation has a salted digest of its id in place of the id, so that the id can be erased. Those
that are there keep their chains, which have the id itself."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0020_audit_digests"),
    ]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="key_salt",
            field=models.BinaryField(help_text="16 random bytes; none once the id is erased", null=True),
        ),
        migrations.AddField(
            model_name="conversation",
            name="key_digest",
            field=models.CharField(
                db_default="",
                default="",
                help_text="SHA-256 over salt and id; empty for those of before format 3",
                max_length=64,
            ),
        ),
    ]
