"""Remote agents that speak AG-UI, as an admin registered them here. Workers serve them as the team AG-UI."""

from django.db import models


class AgentElsewhere(models.Model):
    """A remote agent's address. Not a fold of events: the audit log has who registered and removed it."""

    name = models.CharField(max_length=100, unique=True)
    url = models.CharField(max_length=2000)
    token = models.CharField(max_length=2000, default="", help_text="sent there as a bearer; a secret")
    description = models.CharField(max_length=1000, default="")
    made_by = models.CharField(max_length=160)
    made_at = models.BigIntegerField(help_text="µs UTC")
