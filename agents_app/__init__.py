"""Who thinks and acts: teams, tools, runner and worker. Empty until agents run here; nothing in it pretends to."""
