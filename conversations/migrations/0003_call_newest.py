"""The index of all calls in the order of the list: on an expression, so that no filter is looked for along it."""

from django.db import migrations, models
from django.db.models import F


class Migration(migrations.Migration):
    """Make it anew."""

    dependencies = [("conversations", "0002_search")]

    operations = [
        migrations.RemoveIndex(model_name="toolcall", name="call_newest"),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(F("started_at") + 0, F("conversation"), F("called_seq"), name="call_newest"),
        ),
    ]
