"""Who sent a delivery to a hook, and which one it is, as GitHub, Stripe, Slack and others sign and name them. Pure."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, Literal
from urllib.parse import parse_qsl

Signature = Literal["bearer", "hmac", "github", "stripe", "slack"]

OLDEST: Final = 300.0  # seconds that a signed time may be away from ours, as Stripe and Slack advise
REPEATS: Final = 600.0  # seconds in which a body without a name of its own is the same delivery
_SLACK_TIME: Final = "X-Slack-Request-Timestamp"
_HEADERS: Final[Mapping[Signature, str]] = {
    "hmac": "X-Signature",
    "github": "X-Hub-Signature-256",
    "stripe": "Stripe-Signature",
    "slack": "X-Slack-Signature",
}
_MOST_SIGNATURES: Final = 8  # in one header; Stripe sends two while a secret is changed
_LONGEST_NAME: Final = 200  # characters

NO_HEADER: Final = "The request needs exactly one header {name}. The sender must sign with the secret of this hook."
NOT_SIGNED: Final = "The signature in the header {name} is wrong. Give the sender and this hook the same secret."
TOO_OLD: Final = (
    "The time in the header {name} is more than 5 minutes off the clock here. Set both clocks and try again."
)
NOT_A_TIME: Final = "The header {name} must be a time in seconds, such as 1767225600."
NOT_BEARER: Final = "The secret is missing or wrong. Send `Authorization: Bearer SECRET`, with the secret of this hook."


class Unsigned(Exception):
    """A delivery does not prove that its sender knows the secret."""


Header = Callable[[str], str | None]
"""The value of a header that is there once."""


def check(kind: Signature, secret: str, header: Header, body: bytes, now: float) -> None:
    """Raises Unsigned unless the delivery is signed as this kind of sender does."""
    if kind == "bearer":
        scheme, _, given = (header("Authorization") or "").partition(" ")
        if scheme.lower() != "bearer" or not _same(given.strip(), secret.encode()):
            raise Unsigned(NOT_BEARER)
        return
    name, time, signed = _HEADERS[kind], "", body
    given = _given(header, name)
    signatures = [given.removeprefix("sha256=").lower()]
    if kind == "stripe":  # t=TIME,v1=HEX,v1=HEX; other versions prove nothing
        parts = [part.strip().partition("=") for part in given.split(",")]
        signatures = [value for key, _, value in parts if key == "v1"][:_MOST_SIGNATURES]
        time = ",".join(value for key, _, value in parts if key == "t")
        signed = time.encode("utf-8", "replace") + b"." + body
    elif kind == "slack":
        signatures, time = [given.removeprefix("v0=")], _given(header, _SLACK_TIME)
        signed = b"v0:" + time.encode("utf-8", "replace") + b":" + body
    right = hmac.new(secret.encode(), signed, sha256).hexdigest().encode()
    if not any(_same(each, right) for each in signatures):
        raise Unsigned(NOT_SIGNED.format(name=name))
    if kind in ("stripe", "slack"):
        _check_time(time, name, now)


def _given(header: Header, name: str) -> str:
    if (value := header(name)) is None:
        raise Unsigned(NO_HEADER.format(name=name))
    return value


def _same(given: str, right: bytes) -> bool:
    """Compare in a time that tells nothing of the right one."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), right)


def _check_time(time: str, name: str, now: float) -> None:
    if not (time.isascii() and time.isdigit() and len(time) <= 12):
        raise Unsigned(NOT_A_TIME.format(name=name))
    if abs(now - int(time)) > OLDEST:
        raise Unsigned(TOO_OLD.format(name=name))


def data_in(body: bytes) -> Any:
    """What a body says: JSON, or JSON in the field `payload` of a form, as GitHub sends it; any other text is under
    `text`. Raises ValueError if it cannot be read."""
    try:
        text = body.decode("utf-8")
        try:
            return json.loads(text)
        except ValueError:
            fields = dict(parse_qsl(text, max_num_fields=20)) if text.startswith("payload=") else {}
            return json.loads(fields["payload"]) if "payload" in fields else {"text": text}
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def names_of(kind: Signature, hook: str, header: Header, body: bytes, data: Any, now: float) -> list[str]:
    """Names of a delivery: the first is its own, and with each other one it would be the same. A name is the sender's
    where the sender signs it, else the body's hash. GitHub repeats a delivery with the same body, and does not sign
    X-GitHub-Delivery: whoever sends a body once more could give it a new one."""
    said: object = None
    if kind in ("stripe", "slack"):
        said = data.get("id" if kind == "stripe" else "event_id") if isinstance(data, dict) else None
    elif kind != "github":
        said = header("Idempotency-Key") or header("X-GitHub-Delivery")
    if isinstance(said, str) and said:
        return [_named(hook, "said", said[:_LONGEST_NAME])]
    hashed = sha256(body).hexdigest()
    if kind == "github":
        return [_named(hook, "body", hashed)]
    time = int(now // REPEATS)
    return [_named(hook, "body", hashed, str(each)) for each in (time, time - 1)]


def _named(*parts: str) -> str:
    return f"hook_{sha256(json.dumps(parts).encode()).hexdigest()[:32]}"
