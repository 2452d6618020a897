"""What one run may call, besides what its team and the operators say. Filled by `/v1/responses` (`tool_choice`,
`allowed_tools`); read by the gate through the run's scope."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Restriction:
    """The calls that a run's own agents may make. What happens inside a call that was let through is part of it."""

    allowed: frozenset[str] | None = None
    """qualified names of the tools that may be called; None, and an empty set, restrict nothing"""
    none: bool = False
    """no tool at all may be called (`tool_choice: "none"`)"""


UNRESTRICTED = Restriction()
