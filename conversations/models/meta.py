"""Facts about the database itself."""

from django.db import models


class Meta(models.Model):
    """A name and its value; `epoch` changes if history may have gone back (a restore, a truncation)."""

    name = models.CharField(max_length=40, primary_key=True)
    value = models.TextField()
