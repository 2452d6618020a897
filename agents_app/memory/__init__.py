"""What a model is given of the conversation so far."""
