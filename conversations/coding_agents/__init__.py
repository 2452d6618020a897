"""Sessions of coding agents as events: the mapping shared by hooks, session files and their followers. No Django."""
