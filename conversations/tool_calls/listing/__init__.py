"""Tool calls of every agent: filtered, listed newest first, counted, exported. Called by pages and the API."""
