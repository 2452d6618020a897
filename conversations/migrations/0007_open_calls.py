"""Indexes by which the fold finds the oldest open call of a kind, and the last use of a call id, at one entry each."""

from django.db import migrations, models
from django.db.models import Q, Value
from django.db.models.functions import Coalesce

RUN = Coalesce("run", Value(""))


class Migration(migrations.Migration):
    """Two in place of the one of all open calls; the one by call id goes on to the run and the use."""

    dependencies = [("conversations", "0006_lists")]

    operations = [
        migrations.RemoveIndex(model_name="toolcall", name="call_open"),
        migrations.RemoveIndex(model_name="toolcall", name="call_by_call_id"),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                "conversation", "call_id", RUN, "called_seq",
                name="call_open_by_id", condition=Q(finished_seq__isnull=True, call_id__isnull=False),
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                "conversation", "name", RUN, "called_seq",
                name="call_open_by_name", condition=Q(finished_seq__isnull=True, call_id__isnull=True),
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(
                "call_id", "conversation", RUN, "nth", name="call_by_call_id", condition=Q(call_id__isnull=False)
            ),
        ),
    ]  # fmt: skip
