"""When a person was last here, and what they dismissed. Not a fold of events."""

from django.db import models

from conversations.models.people import User


class Visit(models.Model):
    """One person's visits: "Since you left" begins at `left_at`, until it is dismissed."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True)
    last_at = models.BigIntegerField(help_text="µs UTC, of the newest page they were sent, by the minute")
    left_at = models.BigIntegerField(default=0, help_text="µs UTC, when they left before they came back; 0: dismissed")
    has_dismissed_steps = models.BooleanField(default=False)
