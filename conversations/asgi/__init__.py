"""Raw ASGI endpoints: publishing, topics, events, imports, telemetry, hooks and approvals of external agents, `/v1`
(`responses/`), AG-UI (`agui/`), health, metrics, and the WebSocket of pages."""
