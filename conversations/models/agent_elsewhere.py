"""Agents that other programs serve by AG-UI and an admin registered here. Workers take them into the team AG-UI."""

from django.db import models


class AgentElsewhere(models.Model):
    """An agent's address. No fold of events: the audit log tells who registered and removed it."""

    name = models.CharField(max_length=100, unique=True)
    url = models.CharField(max_length=2000)
    token = models.CharField(max_length=2000, default="", help_text="sent there as a bearer; a secret")
    description = models.CharField(max_length=1000, default="")
    made_by = models.CharField(max_length=160)
    made_at = models.BigIntegerField(help_text="µs UTC")
