"""A recorded tool call, made again."""
