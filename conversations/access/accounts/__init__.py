"""People, their sign-in, their tokens and what they were granted."""
