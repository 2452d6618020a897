"""What filtered lists of the record have in common: filters in an address, conditions, pages, files. No model."""
