"""Every tool call of every agent: filtered, listed newest first, counted, exported. Called by pages and API."""
