"""A turn of ours whose tokens are unknown has a row, too, so that it is counted."""

import json
from typing import Any

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

ROWS = 500  # of one statement


def fill(apps: Apps, _: BaseDatabaseSchemaEditor) -> None:
    """Add the rows of such turns, in those conversations whose sums say that there are any; a fork's copies were
    counted where they were said."""
    usage_model, event_model = apps.get_model("conversations", "ModelUsage"), apps.get_model("conversations", "Event")
    turn_model = apps.get_model("conversations", "Turn")
    with_unknown = usage_model.objects.filter(unknown_turns__gt=0)
    for conversation, copied in list(
        with_unknown.values_list("conversation_id", "conversation__copied_seq").distinct()
    ):
        known = set(turn_model.objects.filter(conversation_id=conversation).values_list("seq", flat=True))
        events = event_model.objects.filter(
            conversation_id=conversation, seq__gt=copied, kind="model.turn", run__isnull=False
        )
        rows = [
            turn_model(conversation_id=conversation, seq=seq, at=at, run=run, **_fields(body))
            for seq, at, run, body in events.values_list("seq", "at", "run", "body").iterator(ROWS)
            if seq not in known
        ]
        turn_model.objects.bulk_create(rows, batch_size=ROWS)


def _fields(body: str) -> dict[str, Any]:
    fields: Any = json.loads(body)
    agent, model = str(fields.get("agent") or ""), str(fields.get("model") or "")
    facts = {"agent": agent.removeprefix("agent:")[:200], "model": model[:200], "is_demo": fields.get("demo") is True}
    return facts | {"input_tokens": 0, "output_tokens": 0}


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0025_delivery_reached"),
    ]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
