"""The audit log as a list: filters, pages, export, and verifying its chain piece by piece."""
