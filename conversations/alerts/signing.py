"""Signatures of webhooks, by Standard Webhooks (https://www.standardwebhooks.com, version 1.0.0).

`webhook-signature` is `v1,` and base64 of HMAC-SHA256 over `id.timestamp.body`; the key is what follows `whsec_`, in
base64. The id is the same for every attempt; the timestamp is the attempt's.
"""

import base64
import hashlib
import hmac
import secrets

PREFIX = "whsec_"
KEY_BYTES = 24


def new_secret() -> str:
    """Return a secret of letters and digits only, so that masking of secrets in text covers all of it."""
    while not (key := base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()).isalnum():
        pass
    return PREFIX + key


def headers(secret: str, delivery: str, body: bytes, at_s: int) -> dict[str, str]:
    """Return the three headers of an attempt at `at_s` (Unix time, s)."""
    return {
        "webhook-id": delivery,
        "webhook-timestamp": str(at_s),
        "webhook-signature": f"v1,{signature(secret, delivery, body, at_s)}",
    }


def signature(secret: str, delivery: str, body: bytes, at_s: int) -> str:
    """Return base64 of the HMAC."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = b"%s.%d.%s" % (delivery.encode(), at_s, body)
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
