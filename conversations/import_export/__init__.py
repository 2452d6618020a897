"""Recorded conversations: read (`detect_format`, `formats/`), imported, played, exported; and our own demo."""
