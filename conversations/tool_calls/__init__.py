"""Tool calls as lists and statistics; tools with their schemas."""
