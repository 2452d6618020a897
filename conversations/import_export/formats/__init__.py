"""One module per file format; a new one is listed in `detect`."""
