"""An index of the requests that are escalated and wait: few of the pending ones, and looked for once a second."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0022_run_team"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(
                condition=models.Q(("escalated_seq__isnull", False), ("status", "pending")),
                fields=["escalated_seq"],
                name="approval_escalated",
            ),
        ),
    ]
