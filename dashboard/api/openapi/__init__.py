"""The OpenAPI document of `/api/v1`."""
