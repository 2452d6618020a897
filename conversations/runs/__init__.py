"""The life cycle of a run, and people's decisions about it."""
