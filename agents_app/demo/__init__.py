"""The demo model, which answers by rules where no model is configured."""
