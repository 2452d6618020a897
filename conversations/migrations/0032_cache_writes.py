"""Count the input tokens that were written to a cache, which cost more. Earlier imports did not keep how many they
were."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0031_calls_without_result"),
    ]

    operations = [
        migrations.AddField(
            model_name="turn",
            name="cache_write_tokens",
            field=models.BigIntegerField(default=0, db_default=0, help_text="of the input, written to a cache"),
        ),
        migrations.AddField(
            model_name="modelusage",
            name="cache_write_tokens",
            field=models.BigIntegerField(default=0, db_default=0),
        ),
    ]
