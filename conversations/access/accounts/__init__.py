"""People, their sign-ins, their tokens and their grants."""
