"""What workers report that they serve: agents with their tools and handoffs, and the schemas of the tools. Pages read
these rows; a web-only node knows no team."""

from django.db import models
from django.db.models import Q


class Agent(models.Model):
    """An agent of a team. Written by a worker when it starts; `served_until` is renewed while a worker serves it."""

    team = models.CharField(max_length=100)
    name = models.CharField(max_length=200)
    description = models.TextField(default="")
    model = models.CharField(max_length=200, default="")
    is_demo_model = models.BooleanField(default=False)
    is_entry = models.BooleanField(default=False, help_text="answers messages addressed to its name")
    tools = models.TextField(
        default="[]",
        help_text="JSON: [{name, schema, effect, needs_approval, origin, and what else is told of it}]",
    )
    handoffs = models.TextField(default="[]", help_text="JSON: [agent name]; cycles are allowed")
    transfers = models.TextField(
        default="[]", help_text="JSON: [{name, schema, to, enabled}], handoffs as a model sees them: as tools"
    )
    output = models.TextField(default="{}", help_text="JSON: {type, is_wrapped, is_strict, schema}; schema null: text")
    problems = models.TextField(default="[]", help_text="JSON: [sentence], of names of MCP servers that collide")
    max_turns = models.IntegerField(default=0, help_text="model turns that a run of its team may take; 0: not told")
    hue = models.IntegerField(default=0, help_text="1 to 10 of the palette, its colour everywhere; 0: by its name")
    served_until = models.BigIntegerField(default=0, help_text="µs UTC, by the database's clock")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="agent_once"),
            models.UniqueConstraint(fields=["name"], name="agent_entry_once", condition=Q(is_entry=True)),
        ]


class ToolSchema(models.Model):
    """A tool as a model saw it, under the hash of its canonical JSON."""

    hash = models.CharField(max_length=64, primary_key=True)
    name = models.CharField(max_length=200)
    body = models.TextField(help_text="JSON: {name, description, params_json_schema, output_json_schema?, strict}")


class ToolVersion(models.Model):
    """From when to when a team offered a tool with a schema. Rows are never deleted: calls link to theirs."""

    team = models.CharField(max_length=100)
    name = models.CharField(max_length=200, help_text="qualified")
    hash = models.CharField(max_length=64)
    first_at = models.BigIntegerField(help_text="µs UTC, by the database's clock")
    last_at = models.BigIntegerField(help_text="µs UTC, when a worker last began or ceased to offer it")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name", "hash"], name="tool_version_once")]
        indexes = [models.Index(fields=["hash"], name="tool_version_by_hash")]


class SessionItem(models.Model):
    """One item of an agent's model memory (the SDK's Session), apart from the record."""

    conversation = models.CharField(max_length=200)
    seq = models.BigIntegerField()
    at = models.BigIntegerField(help_text="µs UTC")
    payload = models.TextField(help_text="JSON, as the SDK gave it")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["conversation", "seq"], name="session_item_seq")]
