"""Agents elsewhere that speak AG-UI, as agents here."""
