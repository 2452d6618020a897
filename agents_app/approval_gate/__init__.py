"""Approvals inside a run: which tool calls wait, and how a decision is applied."""
