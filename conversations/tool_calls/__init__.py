"""Tool calls as lists and numbers; the tools with their schemas."""
