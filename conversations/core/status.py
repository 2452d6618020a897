"""The word of every part of a server that works: readiness, MCP servers and workers tell their state with it."""

OK = "ok"
