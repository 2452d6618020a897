"""Recorded conversations: read (`formats.recordings`), imported, played, exported; and a demo of our own."""
