"""The word for a part that works: used for readiness, background threads, Redis, MCP servers and workers."""

OK = "ok"
