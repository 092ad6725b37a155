"""What is signed and encrypted, by the rules of https://spec.matrix.org/v1.15/client-server-api/#end-to-end-encryption.
Pure, but for random numbers.

A file's address carries its key: `mxc://server/id#KEY.IV.HASH`, so that whoever fetches it can read it.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from msgspec import Struct
from vodozemac import Account, Curve25519PublicKey, Ed25519PublicKey, Ed25519Signature

OLM: Final = "m.olm.v1.curve25519-aes-sha2"
MEGOLM: Final = "m.megolm.v1.aes-sha2"

Json = Mapping[str, Any]


class Device(Struct, frozen=True, kw_only=True):
    """Somebody's app. `key`: to write to it; `signs`: with which it signs."""

    user: str
    id: str
    key: str
    signs: str


def canonical(thing: Json) -> bytes:
    """The bytes of an object that are signed."""
    bare = {name: value for name, value in thing.items() if name not in ("signatures", "unsigned")}
    return json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def signed(thing: Json, user: str, key: str, account: Account) -> dict[str, Any]:
    """The object with one more signature. `key`: what comes after "ed25519:"."""
    before = thing.get("signatures") or {}
    name, signature = f"ed25519:{key}", account.sign(canonical(thing)).to_base64()
    return {**thing, "signatures": {**before, user: {**before.get(user, {}), name: signature}}}


def is_signed(thing: Json, user: str, key: str, signs: str) -> bool:
    """Whether the object carries this signature."""
    try:
        signature = Ed25519Signature.from_base64(thing["signatures"][user][f"ed25519:{key}"])
        Ed25519PublicKey.from_base64(signs).verify_signature(canonical(thing), signature)
    except (AttributeError, LookupError, TypeError, ValueError):
        return False
    return True


def devices(told: Json, user: str) -> Iterator[Device]:
    """Somebody's devices, of those that the server names, which have signed their own keys and can be written to."""
    for name, each in ((told.get("device_keys") or {}).get(user) or {}).items():
        keys = each.get("keys") or {}
        key, signs = keys.get(f"curve25519:{name}"), keys.get(f"ed25519:{name}")
        named = (each.get("user_id"), each.get("device_id")) == (user, name)
        if named and key and signs and OLM in (each.get("algorithms") or ()) and is_signed(each, user, name, signs):
            yield Device(user=user, id=name, key=str(key), signs=str(signs))


def device_keys(account: Account, user: str, device: str) -> dict[str, Any]:
    """What the others are told of the bot's device."""
    keys: Mapping[str, Any] = {f"curve25519:{device}": account.curve25519_key, f"ed25519:{device}": account.ed25519_key}
    told = {
        "user_id": user,
        "device_id": device,
        "algorithms": [OLM, MEGOLM],
        "keys": {name: key.to_base64() for name, key in keys.items()},
    }
    return signed(told, user, device, account)


def one_time_keys(
    account: Account, user: str, device: str, keys: Mapping[str, Curve25519PublicKey], **more: Any
) -> dict[str, Any]:
    """Keys of the account, as others may claim them."""
    return {
        f"signed_curve25519:{name}": signed({"key": key.to_base64(), **more}, user, device, account)
        for name, key in keys.items()
    }


def cross_signing_key(account: Account, user: str, usage: str, by: Account | None = None) -> dict[str, Any]:
    """A key of the person that the bot is, signed `by` the first of them."""
    public = account.ed25519_key.to_base64()
    told = {"user_id": user, "usage": [usage], "keys": {f"ed25519:{public}": public}}
    return told if by is None else signed(told, user, by.ed25519_key.to_base64(), by)


# -- files ----------------------------------------------------------------------------------


def sealed_file(content: bytes) -> tuple[bytes, dict[str, Any]]:
    """A file, encrypted, and what a message says about it, except the address."""
    key, start = os.urandom(32), os.urandom(8) + bytes(8)
    shut = Cipher(algorithms.AES(key), modes.CTR(start)).encryptor().update(content)
    return shut, {
        "v": "v2",
        "key": {
            "kty": "oct",
            "alg": "A256CTR",
            "ext": True,
            "key_ops": ["encrypt", "decrypt"],
            "k": urlsafe_b64encode(key).decode().rstrip("="),
        },
        "iv": based(start),
        "hashes": {"sha256": based(sha256(shut).digest())},
    }


def opened_file(content: bytes, secret: str) -> bytes:
    """The file of an address with this behind its #. Raises ValueError if it is another one."""
    key, start, digest = (unbased(each) for each in secret.split("."))
    if sha256(content).digest() != digest:
        raise ValueError("the file is not the one that was sent")
    return Cipher(algorithms.AES(key), modes.CTR(start)).decryptor().update(content)


def based(content: bytes) -> str:
    """In base64, as Matrix writes it."""
    return b64encode(content).decode().rstrip("=")


def unbased(text: str) -> bytes:
    """The inverse, whichever alphabet it is. Raises ValueError."""
    return b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4))
