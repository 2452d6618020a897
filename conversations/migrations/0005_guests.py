"""Who opened a conversation, and from where on somebody from outside has spoken in it."""

from typing import Any

from django.db import migrations, models
from django.db.models import F


def close(apps: Any, schema_editor: Any) -> None:  # Any: Django's own historical models
    """Let only people let agents into what is stored already, until `rebuild` tells who spoke there."""
    apps.get_model("conversations", "Conversation").objects.update(outside_seq=F("head_seq"))


class Migration(migrations.Migration):
    """Two columns of the fold. Of what is stored already they are unknown until a `rebuild`."""

    dependencies = [("conversations", "0004_audit")]

    operations = [
        migrations.AddField(
            "conversation",
            "opened_by",
            models.CharField(default="", max_length=160, help_text="the principal of its first event"),
        ),
        migrations.AddField(
            "conversation",
            "outside_seq",
            models.BigIntegerField(
                default=0,
                help_text="the first event of somebody who was not let in: only people let agents in since; 0: none",
            ),
        ),
        migrations.RunPython(close, migrations.RunPython.noop),
        migrations.AlterField(
            "participant",
            "is_named",
            models.BooleanField(
                default=False,
                help_text="somebody who may let it in spoke to it: then its own token may view the conversation",
            ),
        ),
    ]
