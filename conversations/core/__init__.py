"""What every package here may use: errors, ids, database threads, transactions, caches, masking."""
