"""Tools of teams: their identity, their description and their checks."""
