"""The record: conversations, their events, and everything that reads or writes them. Knows no agent SDK and no page."""
