"""The demo model, which answers by rules if no model is configured."""
