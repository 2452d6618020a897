"""The gate: every call of a team's function tools passes it once, before anything of the tool runs (design 8)."""

from agents_app.restriction import Restriction

__all__ = ["Restriction"]
