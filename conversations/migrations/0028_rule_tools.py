"""Auto-approval rules also hold for one origin, MCP server and team; existing ones for any."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("conversations", "0027_telemetry_traces"),
    ]

    operations = [
        migrations.AddField(
            model_name="autoapprovalrule",
            name="origin",
            field=models.CharField(
                db_default="",
                default="",
                help_text="where the tool comes from: function, mcp …; empty: anywhere",
                max_length=40,
            ),
        ),
        migrations.AddField(
            model_name="autoapprovalrule",
            name="mcp_server",
            field=models.CharField(db_default="", default="", help_text="its MCP server; empty: any", max_length=200),
        ),
        migrations.AddField(
            model_name="autoapprovalrule",
            name="team",
            field=models.CharField(
                db_default="", default="", help_text="whose agent calls it; empty: any team's", max_length=100
            ),
        ),
    ]
