"""The HTTP server: uvicorn, its protocols and the adapter to Django."""
