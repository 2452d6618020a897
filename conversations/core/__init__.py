"""What every package may use: errors, ids, database threads, transactions, caches, masking."""
