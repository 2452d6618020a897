"""Django's PostgreSQL engine with a pool that outlives a restart of its server; `databases` names it."""
