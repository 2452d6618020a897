"""Since when an agent's message to a person is unanswered. `switchboard rebuild` reads it from the events of before."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0023_escalated_requests"),
    ]

    operations = [
        migrations.AddField(
            model_name="participant",
            name="asked_at",
            field=models.BigIntegerField(
                db_default=0,
                default=0,
                help_text="µs UTC of the first message of an agent that this person has not answered; 0: none",
            ),
        ),
        migrations.AddIndex(
            model_name="participant",
            index=models.Index(
                condition=models.Q(("asked_at__gt", 0)), fields=["name", "asked_at"], name="participant_asked"
            ),
        ),
    ]
