"""A named filter of the tool calls that everyone sees. Not a fold of events: the audit log has who made it."""

from django.db import models


class SavedView(models.Model):
    """A name for a query of the tool calls page."""

    name = models.CharField(max_length=80, unique=True)
    query = models.CharField(max_length=4000, help_text="as it stands in the address, without the question mark")
    made_by = models.CharField(max_length=160, help_text="a principal")
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
