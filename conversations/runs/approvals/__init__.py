"""Approval requests: inbox, decision, expiry and auto-approval rules."""
