from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0029_copied_turns"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="participant",
            index=models.Index(
                condition=models.Q(("asked_at__gt", 0)), fields=["conversation", "asked_at"], name="participant_waits"
            ),
        ),
    ]
