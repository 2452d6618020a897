"""A run that has begun, or replays a call, names its team: only that team's workers claim it."""

import json
from typing import Any

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def fill(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    """Set the team of each run that is still to continue: from its saved state, or from the request of a replay."""
    run_model, event_model = apps.get_model("conversations", "Run"), apps.get_model("conversations", "Event")
    for run in run_model.objects.filter(status__in=("queued", "waiting")).iterator(100):
        saved = run.state
        if run.kind == "replay":
            asked = event_model.objects.filter(conversation=run.conversation_id, seq=run.input_seq)
            saved = asked.values_list("body", flat=True).first()
        if team := _team_in(saved):
            run_model.objects.filter(id=run.id).update(team=team)


def _team_in(saved: str | None) -> str:
    try:
        fields: Any = json.loads(saved or "{}")
    except ValueError:
        return ""
    team = fields.get("team") if isinstance(fields, dict) else None
    return team if isinstance(team, str) and len(team) <= 100 else ""


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0021_key_digest"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="team",
            field=models.CharField(
                db_default="",
                default="",
                help_text="whose worker continues it; empty: it has not begun, and any team with the agent may",
                max_length=100,
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
