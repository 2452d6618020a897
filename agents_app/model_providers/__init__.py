"""Models of providers, and the check of their streams."""
