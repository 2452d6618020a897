"""The audit log as a list: its filters, its pages, its export, and checking its chain piece by piece."""
