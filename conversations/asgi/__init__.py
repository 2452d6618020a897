"""Raw ASGI endpoints: publishing, topics, imports, `/v1/responses`, health, metrics, and the WebSocket."""
