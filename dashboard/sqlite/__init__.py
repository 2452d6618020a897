"""Django's SQLite engine for several processes that write to one file; `databases` names it."""
