"""Who thinks and acts: teams and their tools, the worker that executes their runs, and the gate that calls pass."""
