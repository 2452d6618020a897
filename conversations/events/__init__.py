"""What an event is and how it is stored: types, payloads, the log and its projections."""
