"""Budgets: how much runs, conversations and agents may spend before approval is required."""
