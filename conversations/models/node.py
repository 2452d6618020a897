"""The processes of a deployment, as each reports itself."""

from django.db import models


class Node(models.Model):
    """One process: a web node, a recorder (active or standby) or a worker. It renews its row every few seconds; a row
    that is not renewed belongs to a process that is gone."""

    name = models.CharField(max_length=100, primary_key=True, help_text="host:pid:start")
    kind = models.CharField(max_length=10, choices=[(k, k) for k in ("web", "recorder", "worker")])
    version = models.CharField(max_length=40)
    started_at = models.BigIntegerField(help_text="µs UTC")
    seen_at = models.BigIntegerField(help_text="µs UTC, by the database's clock")
    facts = models.TextField(default="{}", help_text="a JSON object: lag, queue depth, sockets, warnings …")
