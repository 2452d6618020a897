"""Requests of the Responses API as runs."""
