"""Signatures of Standard Webhooks (standardwebhooks.com, version 1): who sent this body, and when.

`webhook-id` is the idempotency key, `webhook-timestamp` the second of this sending, and the signature is an HMAC-SHA256 over
both and the body. While a secret is exchanged there may be two, and then there are two signatures; a receiver needs one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from duly.outbox.destinations.settings import SecretMissing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from duly.outbox.destinations import Message
    from duly.outbox.destinations.settings import Secret

PREFIX = "whsec_"


def signed(message: Message, secret: Secret, *, at: int) -> dict[str, str]:
    """The three headers of a message that is sent at a second since 1970. Raises `SecretMissing`."""
    content = f"{message.key}.{at}.".encode() + message.body
    signatures = [
        "v1," + base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode() for key in _keys_of(secret)
    ]
    return {"webhook-id": message.key, "webhook-timestamp": str(at), "webhook-signature": " ".join(signatures)}


def _keys_of(secret: Secret) -> list[bytes]:
    """The keys of a secret: one or more, separated by white space, each `whsec_` and base64."""
    keys = []
    for each in secret.read().split():
        try:
            key = base64.b64decode(each.removeprefix(PREFIX), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if not each.startswith(PREFIX) or len(key) < 16:
            raise SecretMissing(f"{secret.where} holds no secret like {PREFIX}… (base64 of 16 bytes or more)")
        keys.append(key)
    return keys
