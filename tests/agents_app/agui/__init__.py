"""Remote agents that speak AG-UI, as agents here."""
