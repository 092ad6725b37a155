"""Deliveries to hooks, signed as their senders sign them."""

from __future__ import annotations

import hmac
import json
from hashlib import sha256
from typing import Any

SECRET = "a-secret-of-some-length"


def body_of(data: Any) -> bytes:
    """Data as a sender writes it."""
    return json.dumps(data).encode()


def signed(signature: str, body: bytes, *, at: float = 0.0, secret: str = SECRET) -> dict[str, str]:
    """The headers with which this kind of sender signs a body at a time (seconds since the epoch)."""

    def digest(text: bytes) -> str:
        return hmac.new(secret.encode(), text, sha256).hexdigest()

    time = f"{at:.0f}"
    if signature == "github":
        return {"X-Hub-Signature-256": f"sha256={digest(body)}", "X-GitHub-Event": "push"}
    if signature == "stripe":
        return {"Stripe-Signature": f"t={time},v1={digest(time.encode() + b'.' + body)},v0=00"}
    if signature == "slack":
        signature = f"v0={digest(b'v0:' + time.encode() + b':' + body)}"
        return {"X-Slack-Signature": signature, "X-Slack-Request-Timestamp": time}
    return {"X-Signature": digest(body)} if signature == "hmac" else {"Authorization": f"Bearer {secret}"}
