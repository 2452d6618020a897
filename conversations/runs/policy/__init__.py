"""The operators' policy for tool calls: evaluate, edit, view."""
