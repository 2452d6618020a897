"""Which recipients of an e-mail have it while others refuse it: the next attempt is for the others."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0024_asked_persons"),
    ]

    operations = [
        migrations.AddField(
            model_name="alertdelivery",
            name="reached",
            field=models.TextField(
                db_default="",
                default="",
                help_text="recipients who have the e-mail while others refuse it, comma-separated",
            ),
        ),
    ]
