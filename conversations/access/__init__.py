"""Who may do what, and who did it: permissions, accounts and the audit log."""
