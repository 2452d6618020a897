"""`/v1/responses`: Open Responses 2026-04-24, as JSON, as a stream of events and over a websocket; and `/compact`."""
