"""Ids of our own making: those of the client library, so that all our producers use time-ordered ones."""

from switchboard.ids import new_id

__all__ = ["new_id"]
