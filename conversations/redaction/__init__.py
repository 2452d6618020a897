"""Taking words out of the record, and legal holds, which keep them in."""
