"""What filtered lists share: filters in the address, SQL conditions, pages, files. It knows no model."""
