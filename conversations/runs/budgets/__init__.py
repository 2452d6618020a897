"""What runs, conversations and agents may spend, and what is asked when they have."""
