"""Redis in and out, topics, and what could not be stored."""
