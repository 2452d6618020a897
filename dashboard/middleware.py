"""Headers on every answer."""
