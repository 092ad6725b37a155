"""End-to-end encryption, by vodozemac: loaded where `adapters.matrix.encryption` is on.

A room key (Megolm) encrypts a room's messages, and goes to each device of its members over a session of two (Olm). The
bot makes a new room key at each start, so that none is used for two messages; it trusts each device that signed its own
keys, as nobody can compare them with it. Its own device is signed by the account's keys where it made those itself.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import structlog
import vodozemac as olm
from msgspec import Struct, field

from adapters.matrix import codec, sealing
from adapters.matrix.codec import Json, Room
from adapters.matrix.homeserver import Homeserver, Refusal
from adapters.matrix.keys import KeyFile
from adapters.matrix.sealing import MEGOLM, OLM, Device
from gateway.domain.reading import Recent
from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError
from gateway.runtime.tasks import comes_within

log = structlog.get_logger(__name__)

_ONE_TIME_KEYS: Final = 50  # on the server, for devices that write to the bot first
_SESSIONS: Final = 5  # with one device that are kept
_MESSAGES: Final = 100  # under one room key, where the room says nothing else
_SECONDS: Final = 7 * 24 * 3600.0
_KEY_SECONDS: Final = 5.0  # a room key may come a little after the message
_ANEW_SECONDS: Final = 3600.0  # between two new sessions with a device whose words cannot be read
_SAID: Final = ("m.room.message", "m.sticker", "m.reaction")  # what people say; the server judges everything else
_NO_ROOMS: Final = json.dumps({"room": {"rooms": list[str]()}, "presence": {"types": list[str]()}})


class _RoomKey(Struct):
    """The key that encrypts what the bot says in a room. `known`: devices that have it."""

    session: olm.GroupSession
    begun: float
    known: set[Device] = field(default_factory=set)


class Encryption:
    """The encryption of one account, in the process that reads it."""

    sealed_file, opened_file = staticmethod(sealing.sealed_file), staticmethod(sealing.opened_file)

    def __init__(self, server: Homeserver, home: Path, clock: Clock) -> None:
        self._server, self._clock, self._me = server, clock, server.user
        self.keys = KeyFile(home, server.user)
        self._device = self._key = self._signs = ""  # the device, and by what others write to it and know its words
        self._devices: dict[str, list[Device]] = {}  # of people, as long as the server says that nothing changed
        self._own: dict[str, _RoomKey] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._awaited: Recent[str, asyncio.Event] = Recent()  # room keys that somebody waited for
        self._seen: Recent[tuple[str, int], str] = Recent()  # the message of each place of a room key
        self._anew: dict[str, float] = {}

    # -- the device -------------------------------------------------------------------------

    async def begin(self) -> None:
        """Make the device known, and take what was sent to it. Raises AdapterError."""
        self._device = str((await self._server.call("GET", "account", "whoami"))["device_id"])
        with self.keys.changing():
            if self.keys.get("device") != self._device:
                self.keys.forget("olm ")
                self.keys.forget("since")
                self.keys.put("device", self._device)
                self._put("account", olm.Account())
            account = self._account()
            self._key, self._signs = account.curve25519_key.to_base64(), account.ed25519_key.to_base64()
        more = True
        while more:  # the notes may be another device's, and the server forgets what is older than they are
            since = self.keys.get("since")
            query = {"filter": _NO_ROOMS, "timeout": "0", **({"since": since} if since else {})}
            told = await self._server.call("GET", "sync", query=query)
            await self.hear(told)
            self.keys.put("since", told["next_batch"])
            more = since is None or bool((told.get("to_device") or {}).get("events"))
        await self._cross_sign()

    async def hear(self, told: Json) -> None:
        """Take what an answer of the server's brings for the device. Raises AdapterError."""
        for event in (told.get("to_device") or {}).get("events") or ():
            try:
                await self._told(event)
            except codec.UNREADABLE as error:
                log.warning("key_unreadable", by=str(event.get("sender")), error=str(error))
        changes = told.get("device_lists") or {}
        for person in (*(changes.get("changed") or ()), *(changes.get("left") or ())):
            self._devices.pop(person, None)
        await self._upload(told)

    async def _upload(self, told: Json) -> None:
        """Give the server the keys of the device, if it has too few to hand out."""
        counts, spare = told.get("device_one_time_keys_count") or {}, told.get("device_unused_fallback_key_types")
        missing = _ONE_TIME_KEYS - counts.get("signed_curve25519", 0)
        if missing <= _ONE_TIME_KEYS // 2 and (spare is None or "signed_curve25519" in spare):
            return
        with self.keys.changing():
            account = self._account()
            if not account.one_time_keys:  # those of an upload without an answer are uploaded again
                account.generate_one_time_keys(max(1, missing))
                account.generate_fallback_key()  # type: ignore[attr-defined]  # the stubs lack it
            self._put("account", account)
        spares = account.fallback_key  # type: ignore[attr-defined]
        owned = (account, self._me, self._device)
        body = {
            "device_keys": sealing.device_keys(*owned),
            "one_time_keys": sealing.one_time_keys(*owned, account.one_time_keys),
            "fallback_keys": sealing.one_time_keys(*owned, spares, fallback=True),
        }
        try:
            await self._server.call("POST", "keys", "upload", body=body)
        except Refusal as error:  # it has others of these names: the file is older than it
            log.warning("keys_not_uploaded", error=str(error))
        with self.keys.changing():
            account = self._account()
            account.mark_keys_as_published()
            self._put("account", account)

    async def _cross_sign(self) -> None:
        """Sign the device as the account's own, because many apps send keys to no others. Only with keys that the bot
        made: those of a person's app stay as they are."""
        told = await self._server.call("POST", "keys", "query", body={"device_keys": {self._me: []}})
        present = ((told.get("master_keys") or {}).get(self._me) or {}).get("keys") or {}
        if not present:
            first, second, third = olm.Account(), olm.Account(), olm.Account()
            body = {
                "master_key": sealing.cross_signing_key(first, self._me, "master"),
                "self_signing_key": sealing.cross_signing_key(second, self._me, "self_signing", first),
                "user_signing_key": sealing.cross_signing_key(third, self._me, "user_signing", first),
            }
            try:
                await self._server.confirmed("keys", "device_signing", "upload", body=body)
            except Refusal as error:
                log.warning("device_not_signed", error=str(error))
                return
            with self.keys.changing():
                self.keys.put("master", first.ed25519_key.to_base64())
                self._put("signs", second)
        elif f"ed25519:{self.keys.get('master')}" not in present:
            log.warning("device_not_signed", error="another program made the account's signing keys")
            return
        pickled = self.keys.get("signs")
        assert pickled is not None, "it was put there with the first one"
        signs = olm.Account.from_pickle(pickled, self.keys.key)
        device = sealing.device_keys(self._account(), self._me, self._device)
        device = sealing.signed(device, self._me, signs.ed25519_key.to_base64(), signs)
        await self._server.call("POST", "keys", "signatures", "upload", body={self._me: {self._device: device}})

    # -- what is told to the device ---------------------------------------------------------

    async def _told(self, event: Json) -> None:
        sender, content = event["sender"], event["content"]
        if event["type"] != "m.room.encrypted" or content.get("algorithm") != OLM:
            return
        shut = content["ciphertext"][self._key]
        message = olm.AnyOlmMessage.from_parts(int(shut["type"]), sealing.unbased(shut["body"]))
        try:
            with self.keys.changing():
                plain = json.loads(self._opened_by_two(content["sender_key"], message))
        except ValueError:
            await self._begin_anew(sender, content["sender_key"])
            raise
        whose = (plain["sender"], plain["recipient"], plain["recipient_keys"]["ed25519"])
        if whose != (sender, self._me, self._signs):
            raise ValueError("it was written by or for someone else")
        told = plain["content"]
        if told.get("algorithm") == MEGOLM and plain["type"] == "m.room_key":
            self._keep_room_key(told, sender, olm.InboundGroupSession(olm.SessionKey(told["session_key"])))

    def _opened_by_two(self, key: str, message: olm.AnyOlmMessage) -> bytes:
        """What a device wrote, whose sessions move on by that. Raises ValueError."""
        first, sessions = message.to_pre_key(), self._sessions(key)
        for session in sessions:
            with suppress(ValueError):
                plain = session.decrypt(message)
                self._keep_sessions(key, [session, *(each for each in sessions if each is not session)])
                return plain
        if first is None:
            raise ValueError("its session is not known")
        account = self._account()
        begun, plain = account.create_inbound_session(olm.Curve25519PublicKey.from_base64(key), first)
        self._put("account", account)  # the one-time key is used up
        self._keep_sessions(key, [begun, *sessions])
        return plain

    def _keep_room_key(self, told: Json, sender: str, session: olm.InboundGroupSession) -> None:
        name = _name(told["room_id"], told["session_id"])
        if session.session_id != told["session_id"]:
            raise ValueError("the key is of another session")
        with self.keys.changing():
            kept = self._room_key(name)
            if kept is None or (kept[0] == sender and session.first_known_index < kept[1].first_known_index):
                self.keys.put(name, f"{sender} {session.pickle(self.keys.key)}")
        if (awaited := self._awaited.get(name)) is not None:
            awaited.set()

    async def _begin_anew(self, person: str, key: str) -> None:
        """Write to a device whose words cannot be read, so that it uses another session from now on."""
        if self._clock.monotonic() - self._anew.get(key, -_ANEW_SECONDS) < _ANEW_SECONDS:
            return
        self._anew[key] = self._clock.monotonic()
        with suppress(AdapterError):
            named = [each for each in await self._devices_of([person]) if each.key == key]
            await self._tell(named, "m.dummy", {}, anew=True)

    # -- reading ----------------------------------------------------------------------------

    async def opened(self, room: str, event: Json, *, waits: bool) -> Json | None:
        """An encrypted event in clear; unchanged if it cannot be read; None if that was said before, or it is not a
        message. `waits`: for its key, which somebody may still send."""
        content = event["content"]
        try:
            name = _name(room, content["session_id"])
            if (kept := self._room_key(name)) is None and waits and event["sender"] != self._me:
                if name in self._awaited:
                    return None
                came = self._awaited[name] = asyncio.Event()
                if not await comes_within(came, _KEY_SECONDS, self._clock):
                    log.warning("room_key_missing", room=room, sender=event["sender"])
                kept = self._room_key(name)
            if kept is None:
                return event
            plain = kept[1].decrypt(olm.MegolmMessage.from_base64(content["ciphertext"]))
            told = json.loads(plain.plaintext)
            place = self._seen.get((name, plain.message_index)) or str(event["event_id"])
            if (kept[0], told["room_id"], place) != (event["sender"], room, event["event_id"]):
                raise ValueError("someone else wrote it, or it was sent twice")
            if told["type"] not in _SAID or not isinstance(told["content"], dict):
                return None
        except codec.UNREADABLE as error:
            log.warning("message_unreadable", room=room, message=event.get("event_id"), error=str(error))
            return event
        self._seen[name, plain.message_index] = place
        relation = content.get("m.relates_to")
        said = {**told["content"], **({"m.relates_to": relation} if relation else {})}
        return {**event, "type": told["type"], "content": said}

    # -- writing ----------------------------------------------------------------------------

    async def sealed(self, room: Room, kind: str, content: Json) -> Json | None:
        """What is sent in place of an event; None if the room is not encrypted. Raises AdapterError."""
        if (rules := self._rules(room)) is None:
            return None
        async with self._locks.setdefault(room.id, asyncio.Lock()):
            devices = await self._devices_of(room.people)
            key = self._own.get(room.id)
            if key is None or self._is_old(key, rules) or not key.known <= devices:
                key = self._own[room.id] = self._new_room_key(room.id)
            if missing := devices - key.known:
                shared = {"session_id": key.session.session_id, "session_key": key.session.session_key.to_base64()}
                await self._tell(missing, "m.room_key", {"algorithm": MEGOLM, "room_id": room.id, **shared})
                key.known |= missing
            plain = json.dumps({"type": kind, "content": content, "room_id": room.id}, ensure_ascii=False)
            shut = key.session.encrypt(plain.encode(errors="replace"))
        relation = content.get("m.relates_to")
        return {
            "algorithm": MEGOLM,
            "sender_key": self._key,
            "device_id": self._device,
            "session_id": key.session.session_id,
            "ciphertext": shut.to_base64(),
            **({"m.relates_to": relation} if relation else {}),
        }

    def is_sealed(self, room: Room) -> bool:
        """Whether a room is encrypted."""
        return self._rules(room) is not None

    def _rules(self, room: Room) -> Json | None:
        """How often a room's key must be changed. Once encrypted, a room stays so, whatever the server says."""
        noted = self.keys.get(f"room {room.id}")
        if noted is None and room.sealing is not None:
            noted = json.dumps(room.sealing)
            self.keys.put(f"room {room.id}", noted)
        return None if noted is None else json.loads(noted)

    def _is_old(self, key: _RoomKey, rules: Json) -> bool:
        most, longest = rules.get("rotation_period_msgs"), rules.get("rotation_period_ms")
        messages = most if isinstance(most, int) else _MESSAGES
        seconds = longest / 1000.0 if isinstance(longest, int) else _SECONDS
        return key.session.message_index >= messages or self._clock.monotonic() - key.begun >= seconds

    def _new_room_key(self, room: str) -> _RoomKey:
        session = olm.GroupSession()  # the bot reads its own words, too: they hold the tokens of buttons
        told = {"room_id": room, "session_id": session.session_id}
        self._keep_room_key(told, self._me, olm.InboundGroupSession(session.session_key))
        return _RoomKey(session, self._clock.monotonic())

    async def _devices_of(self, people: Iterable[str]) -> set[Device]:
        """The devices of these people, without the bot's own. Raises AdapterError."""
        people = [*people]
        if asked := [each for each in people if each not in self._devices]:
            body = {"device_keys": {each: list[str]() for each in asked}}
            told = await self._server.call("POST", "keys", "query", body=body)
            self._devices |= {each: [*sealing.devices(told, each)] for each in asked}
        found = {each for person in people for each in self._devices.get(person, ())}
        return {each for each in found if (each.user, each.id) != (self._me, self._device)}

    async def _tell(self, devices: Collection[Device], kind: str, content: Json, *, anew: bool = False) -> None:
        """Tell devices something, each over its session, which is begun if there is none. Raises AdapterError."""
        strangers = [each for each in devices if anew or not self._sessions(each.key)]
        claimed = await self._claimed(strangers) if strangers else {}
        messages: dict[str, dict[str, Any]] = {}
        with self.keys.changing():
            account = self._account()
            for each in devices:
                sessions = self._sessions(each.key)
                if (one_time := claimed.get(each)) is not None:
                    begun = account.create_outbound_session(olm.Curve25519PublicKey.from_base64(each.key), one_time)
                    sessions.insert(0, begun)
                if not sessions:
                    continue  # it has no keys to hand out, and cannot be told anything
                plain = {
                    "type": kind,
                    "content": content,
                    "sender": self._me,
                    "sender_device": self._device,
                    "keys": {"ed25519": self._signs},
                    "recipient": each.user,
                    "recipient_keys": {"ed25519": each.signs},
                }
                number, shut = sessions[0].encrypt(json.dumps(plain, ensure_ascii=False).encode()).to_parts()
                self._keep_sessions(each.key, sessions)
                body = {"type": number, "body": sealing.based(shut)}
                sent = {"algorithm": OLM, "sender_key": self._key, "ciphertext": {each.key: body}}
                messages.setdefault(each.user, {})[each.id] = sent
        if messages:
            path = ("sendToDevice", "m.room.encrypted", os.urandom(8).hex())
            await self._server.call("PUT", *path, body={"messages": messages})

    async def _claimed(self, devices: Sequence[Device]) -> dict[Device, olm.Curve25519PublicKey]:
        """A one-time key of each of these devices that has one. Raises AdapterError."""
        asked: dict[str, dict[str, str]] = {}
        for each in devices:
            asked.setdefault(each.user, {})[each.id] = "signed_curve25519"
        told = (await self._server.call("POST", "keys", "claim", body={"one_time_keys": asked})).get("one_time_keys")
        found = {}
        for each in devices:
            for key in (((told or {}).get(each.user) or {}).get(each.id) or {}).values():
                if sealing.is_signed(key, each.user, each.id, each.signs):
                    found[each] = olm.Curve25519PublicKey.from_base64(key["key"])
        return found

    # -- what is kept -----------------------------------------------------------------------

    def _put(self, name: str, kept: olm.Account) -> None:
        self.keys.put(name, kept.pickle(self.keys.key))

    def _account(self) -> olm.Account:
        pickled = self.keys.get("account")
        assert pickled is not None, "it is made before anything is done with it"
        return olm.Account.from_pickle(pickled, self.keys.key)

    def _sessions(self, key: str) -> list[olm.Session]:
        """The sessions with a device, the one that it used last first."""
        pickles = (self.keys.get(f"olm {key}") or "").split()
        return [olm.Session.from_pickle(each, self.keys.key) for each in pickles]

    def _keep_sessions(self, key: str, sessions: Sequence[olm.Session]) -> None:
        self.keys.put(f"olm {key}", " ".join(each.pickle(self.keys.key) for each in sessions[:_SESSIONS]))

    def _room_key(self, name: str) -> tuple[str, olm.InboundGroupSession] | None:
        """Who made a room key, and the key."""
        kept = self.keys.get(name)
        if kept is None:
            return None
        sender, _, pickled = kept.partition(" ")
        return sender, olm.InboundGroupSession.from_pickle(pickled, self.keys.key)


def _name(room: str, session: str) -> str:
    return f"key {room} {session}"
