"""What one run may call, besides what its team and the operators say. Filled by `/v1/responses` (`tool_choice`,
`allowed_tools`); read by the gate through the run's scope."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Restriction:
    """The calls a run may make. The default restricts nothing."""

    allowed: frozenset[str] | None = None
    """qualified names of tools that may be called, or their bare names; None, and an empty set, restrict nothing"""
    none: bool = False
    """no tool at all may be called (`tool_choice: "none"`)"""


UNRESTRICTED = Restriction()
