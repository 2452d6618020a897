"""Sessions of coding agents as events: the mapping that hooks, session files and their followers share. No Django."""
