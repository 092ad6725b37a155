"""The other side of Discord's end-to-end encryption of voice (DAVE): the voice server, and the people in the channel.

The server knows no key. It is the group's external sender, who proposes that the people be added; the bot makes the
group of them, and lets them in. Source: https://daveprotocol.com; messages of MLS: RFC 9420, 6 and 12.1.8.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from davey import DAVE_PROTOCOL_VERSION, DaveSession, MediaType

VERSION: Final = DAVE_PROTOCOL_VERSION
EXTERNAL_SENDER, KEY_PACKAGE, PROPOSALS, COMMIT_WELCOME, ANNOUNCE_COMMIT = 25, 26, 27, 28, 29
_PUBLIC: Final = b"\0\1\0\1"  # version 1, a public message
_EXTERNAL: Final = struct.pack(">BI", 2, 0)  # the first external sender
_NOTHING, _PROPOSAL, _ADD, _APPEND, _BASIC = b"\0", b"\2", b"\0\1", b"\0", b"\0\1"


class People:
    """Those in a voice channel who hear the bot and speak, and the server that lets them in. `hear`: they are in."""

    def __init__(self, people: Iterable[int], channel: int) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        point = self._key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self._sender = _vector(point) + _BASIC + _vector(b"voice server")
        self._sessions = {person: DaveSession(VERSION, person, channel) for person in people}
        for session in self._sessions.values():
            session.set_external_sender(self._sender)
        self._group = channel.to_bytes(8, "big")
        self.hear = False

    def answers(self, op: int, data: bytes) -> list[tuple[int, bytes]]:
        """The server's answers to a binary message of the bot's: opcodes and contents."""
        if op == KEY_PACKAGE:
            proposals = b"".join(map(self._proposal, self._sessions.values()))
            return [(EXTERNAL_SENDER, self._sender), (PROPOSALS, _APPEND + _vector(proposals))]
        if op == COMMIT_WELCOME:
            return [(ANNOUNCE_COMMIT, b"\0\0" + data[: self._let_in(data)])]
        raise ValueError(f"opcode {op}")

    def _proposal(self, session: DaveSession) -> bytes:
        """A message that proposes to add one of them."""
        adding = _PROPOSAL + _ADD + session.get_serialized_key_package()
        content = _vector(self._group) + bytes(8) + _EXTERNAL + _NOTHING + adding
        to_sign = _vector(b"MLS 1.0 FramedContentTBS") + _vector(_PUBLIC + content)
        return _PUBLIC + content + _vector(self._key.sign(to_sign, ec.ECDSA(SHA256())))

    def _let_in(self, data: bytes) -> int:
        """Take the welcome, which stands behind a commit of unknown length; returns that length."""
        first, *others = self._sessions.values()
        for at in range(1, len(data)):
            with suppress(Exception):
                first.process_welcome(data[at:])
                for each in others:
                    each.process_welcome(data[at:])
                self.hear = True
                return at
        raise ValueError("there is no welcome for the people")

    def opened(self, bot: int, packet: bytes) -> bytes:
        """The sound in a packet of the bot's."""
        return next(iter(self._sessions.values())).decrypt(bot, MediaType.audio, packet)

    def sealed(self, person: int, sound: bytes) -> bytes:
        """A packet with the sound of one of them."""
        return self._sessions[person].encrypt_opus(sound)


def _vector(content: bytes) -> bytes:
    """A content behind its length (RFC 9420, 2.1.2)."""
    size = len(content)
    return (bytes([size]) if size < 64 else struct.pack(">H", 0x4000 | size)) + content
