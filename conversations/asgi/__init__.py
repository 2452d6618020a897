"""Raw ASGI endpoints: publishing, topics, events, imports, telemetry, hooks and approvals of agents elsewhere, `/v1`
(`responses/`), AG-UI (`agui/`), health, metrics, and the WebSocket of pages."""
