"""Budgets: what a run, a conversation or an agent may spend before a person is asked, and how budgets were raised."""

from django.db import models


class BudgetLimit(models.Model):
    """A limit that operators set. Like a policy it is the operators' setting and not a fold of events."""

    id = models.CharField(max_length=64, primary_key=True)
    scope = models.CharField(max_length=12, help_text="run, conversation or agent (of 24 hours)")
    agent = models.CharField(max_length=200, default="", help_text="an agent's name; empty: every agent")
    measure = models.CharField(max_length=8, help_text="tokens, cost (US dollars), calls or minutes")
    amount = models.DecimalField(max_digits=16, decimal_places=4)
    note = models.CharField(max_length=500, default="")
    made_by = models.CharField(max_length=160)
    made_at = models.BigIntegerField(help_text="µs UTC")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["scope", "agent", "measure"], name="budget_once")]


class BudgetRaise(models.Model):
    """What a person granted beyond a limit: one for each approval, stored with the decision."""

    approval = models.CharField(max_length=64, primary_key=True)
    budget = models.CharField(max_length=64)
    place = models.CharField(max_length=200, help_text="the run, the conversation's key or the agent's name")
    amount = models.DecimalField(max_digits=16, decimal_places=4)
    at = models.BigIntegerField(help_text="µs UTC")

    class Meta:
        indexes = [models.Index(fields=["budget", "place", "at"], name="budget_raised")]
