"""Replays of recorded tool calls."""
