"""The worker: claims runs and executes them on the Agents SDK."""
