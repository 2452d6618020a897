"""The audit log by who and by target, in the order of the list."""

from django.db import migrations, models
from django.db.models import F


class Migration(migrations.Migration):
    """Two indexes; both are cheap to keep, since an entry is written once."""

    dependencies = [("conversations", "0003_call_newest")]

    operations = [
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index("principal", F("seq") + 0, name="audit_by_principal"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index("target", F("seq") + 0, name="audit_by_target"),
        ),
    ]
