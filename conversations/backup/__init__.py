"""Copies of the whole record in one portable file, and the way back (`switchboard backup`, `restore`)."""
