"""Recorded conversations: read (`formats.recordings`), imported, played, exported; and our own demo."""
