"""Recorded conversations: read (`formats/detect.py`), imported, played, exported; and our own demo."""
