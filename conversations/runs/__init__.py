"""The life of a run, and what people decide about it."""
