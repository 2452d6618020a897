"""The composition root and what an operator sees."""
