"""The word for a part of a server that works: used for readiness, MCP servers and workers."""

OK = "ok"
