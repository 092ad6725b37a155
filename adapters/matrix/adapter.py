"""The bot: what it shows, from any process; and the one that reads while its process holds the account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2s
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import structlog

from adapters.matrix import codec, formatting
from adapters.matrix.homeserver import Homeserver, SignedOut
from adapters.matrix.limits import LARGEST_FETCHED, LIMITS, LONGEST_TOKEN
from adapters.matrix.platform import MatrixSettings
from adapters.matrix.receiving import POLL_SECONDS, Receiver
from adapters.matrix.rooms import Rooms
from gateway.delivery.markdown.tables import without_columns
from gateway.domain.adapter import SIGNS, Accept, Admits, Finding, Notebook, Rate, Sign
from gateway.domain.chat import Attachment, ChatAddress, Outbound
from gateway.domain.command import as_typed
from gateway.domain.platform import AdapterHost
from gateway.domain.reading import Doubts, Pointing, reached
from gateway.runtime.connections import too_large
from gateway.runtime.errors import AdapterError, DeliveryRefused, FileRefused, MessageGone, TookTooLong, repeatable
from gateway.runtime.tasks import Background, Renewed

if TYPE_CHECKING:
    from adapters.matrix.encryption import Encryption

log = structlog.get_logger(__name__)

_PATIENCE: Final = 20.0  # seconds for an answer of the server's
_TYPING_SECONDS: Final = 9.0
_SHOWN_MILLISECONDS: Final = 12_000  # for which a server shows it


class MatrixAdapter:
    """One bot. `patience`: seconds for an answer of the server's."""

    name = codec.PLATFORM
    limits = LIMITS
    longest_token = LONGEST_TOKEN
    waits_for_account = True
    longest_silence = 3 * POLL_SECONDS
    admits: Admits | None = None

    def __init__(self, settings: MatrixSettings, host: AdapterHost, *, patience: float = _PATIENCE) -> None:
        clock = self._clock = host.clock
        self._settings, self._aside = settings, host.aside
        self._server = Homeserver(settings, patience=patience)
        self.account = self._server.user
        self._rooms = Rooms(self._server, settings, clock)
        self._notebook: Notebook | None = None
        self.reader_sends = settings.encryption  # one process has the keys in use
        self._encryption: Encryption | None = None
        if settings.encryption:
            self._encryption = import_module("adapters.matrix.encryption").Encryption(self._server, host.home, clock)
            self._rooms.encryption = self._encryption
        self._commands = frozenset(name for each in host.menu for name in (each.name, *each.aliases))
        self._receiver = Receiver(self._server, self._rooms, settings, clock, host.listens, self._commands)
        self._typing = Renewed(clock, _TYPING_SECONDS)
        self._background = Background()
        self._doubts = Doubts(clock)
        self._pointing = Pointing()
        self._taken: dict[str, str] = {}  # message → the sign that says so
        self._anew: set[str] = set()  # rows whose message somebody took away

    @property
    def notebook(self) -> Notebook | None:
        """The notes of the account, with its login; a device that encrypts keeps that with its keys."""
        return self._notebook

    @notebook.setter
    def notebook(self, notebook: Notebook | None) -> None:
        self._notebook = notebook
        self._server.notebook = notebook if self._encryption is None else self._encryption.keys

    @property
    def alive_at(self) -> float | None:
        return self._receiver.alive_at

    @property
    def unreached_since(self) -> float | None:
        return self._receiver.unreached_since

    # -- reading ----------------------------------------------------------------------------

    async def run(self, accept: Accept) -> None:
        """Read until cancelled. Raises AdapterError if the server does not let the bot in."""
        assert self.notebook is not None, "the program gives one before it lets anybody read"
        self._receiver.admits = self.admits
        self._receiver.name = await self._introduced()
        await self._receiver.run(accept, self.notebook)

    async def _introduced(self) -> str:
        """What people call the bot, as soon as the server can be reached."""
        told, final = {}, (SignedOut, DeliveryRefused)
        asked = partial(self._server.call, "GET", "profile", self.account, "displayname")
        with suppress(DeliveryRefused):  # it has no name
            told = await reached(self._clock, "matrix", asked, lambda error: isinstance(error, final))
        return str(told.get("displayname") or self.account[1:].partition(":")[0])

    async def ping(self) -> None:
        await self._server.call("GET", "account", "whoami")

    async def probe(self) -> Sequence[Finding]:
        server = Homeserver(self._settings, patience=_PATIENCE)  # a login of its own: the store may be closed
        try:
            told = await server.call("GET", "account", "whoami")
            rooms = (await server.call("GET", "joined_rooms"))["joined_rooms"]
            await server.leave()
        except AdapterError as error:
            return [Finding(what="matrix", ok=False, detail=str(error))]
        finally:
            await server.aclose()
        if told["user_id"] != self.account:
            detail = (
                f"the token belongs to {told['user_id']}, not to {self.account}; correct user or token in "
                "adapters.matrix"
            )
            return [Finding(what="matrix", ok=False, detail=detail)]
        where = f"in {len(rooms)}" if rooms else "the bot is not in a room yet; invite it into a room"
        found = [Finding(what="matrix", ok=True, detail=self.account)]
        return [*found, Finding(what="matrix rooms", ok=bool(rooms) or None, detail=where)]

    # -- showing ----------------------------------------------------------------------------

    async def send(self, outbound: Outbound) -> str:
        return await self._shown(outbound, {})

    async def send_file(self, outbound: Outbound, content: bytes) -> str:
        file = outbound.file
        assert file is not None, "only a row with a file is sent as one"
        crypt, room = self._encryption, await self._rooms.of(await self._room_of(outbound.to))
        if crypt is None or not crypt.is_sealed(room):
            address = await self._server.upload(file.name or "file", file.mime, content)
            return await self._shown(outbound, {"url": address})
        shut, told = crypt.sealed_file(content)
        return await self._shown(outbound, {"file": {**told, "url": await self._server.upload("file", "", shut)}})

    async def _shown(self, outbound: Outbound, file: Mapping[str, Any]) -> str:
        room = await self._room_of(outbound.to)
        content = await self._content(outbound, file)
        row = f"{outbound.id}+" if outbound.id in self._anew else outbound.id
        try:
            message = await self._put_up(room, _transaction(row), content)
        except AdapterError:  # whatever it says: the library sends again by itself what was lost
            self._doubts.note(outbound.id)
            raise
        doubtful = not file and self._doubts.concern(outbound, outbound.created_at)  # the server gives back what it has
        if doubtful and not await self._reads(room, message, content):
            await self.edit(outbound, message)
        else:
            await self._offer(room, message, outbound)
        return message

    async def _reads(self, room: str, message: str, content: Mapping[str, Any]) -> bool:
        shown = await self._rooms.event(room, message)
        return shown is not None and shown["content"].get("body") == content["body"]

    async def _put_up(self, room: str, row: str, content: Mapping[str, Any]) -> str:
        """Send a message, encrypted where the room is."""
        if self._encryption is not None:
            shut = await self._encryption.sealed(await self._rooms.of(room), "m.room.message", content)
            if shut is not None:
                return await self._server.show(room, "m.room.encrypted", row, shut)
        return await self._server.show(room, "m.room.message", row, content)

    async def _offer(self, room: str, message: str, outbound: Outbound) -> None:
        """Let people press the buttons by one touch; they may as well react by themselves."""
        for number, key in enumerate(codec.buttons(outbound.buttons)):
            row = _transaction(f"{outbound.id}.{number}")
            try:
                await self._server.show(room, "m.reaction", row, codec.reaction(message, key))
            except AdapterError as error:
                log.info("button_not_offered", room=room, error=str(error))

    async def react(self, to: ChatAddress, message: str, sign: Sign) -> None:
        room, before = await self._room_of(to), self._taken.pop(message, None)
        row = _transaction(f"{message}{sign}")
        shown = await self._server.show(room, "m.reaction", row, codec.reaction(message, SIGNS[sign]))
        if sign == "taken":
            self._taken[message] = shown
        if before is not None:
            await self._server.call("PUT", "rooms", room, "redact", before, row, body={})

    async def _room_of(self, to: ChatAddress) -> str:
        if to.chat.startswith("@"):
            return await self._rooms.alone_with(to.chat)
        return self._rooms.present(to.chat)

    async def _content(self, outbound: Outbound, file: Mapping[str, Any]) -> dict[str, Any]:
        text = await self._text(outbound)
        asked = codec.asked_by(outbound.answers)
        points = asked is not None and self._pointing.is_first(outbound)
        is_direct = outbound.key.user is None and outbound.to.thread is None
        relation = codec.relation(outbound.to.thread, asked[0] if asked and points and not is_direct else None)
        content: dict[str, Any] = {"msgtype": "m.notice" if outbound.kind == "notice" else "m.text", **text}
        if outbound.file is not None:
            content = codec.file_content(outbound.file, file, text)
        content["m.mentions"] = {"user_ids": [asked[1]]} if asked and points and not is_direct else {}
        if relation:
            content["m.relates_to"] = relation
        if outbound.buttons:
            shown = codec.buttons(outbound.buttons)
            content[codec.BUTTONS] = {key: button.token for key, button in shown.items()}
        return content

    async def _text(self, outbound: Outbound) -> dict[str, Any]:
        if outbound.file is not None and not outbound.text.strip():
            return {}
        text = outbound.text
        if outbound.buttons:
            choices = "\n".join(f"{key} {each.label}" for key, each in codec.buttons(outbound.buttons).items())
            text = f"{text.rstrip()}\n\n{choices}"
        if outbound.kind not in ("reply", "remark") and outbound.file is None:
            text = without_columns(text) if outbound.kind == "command" else text
            return formatting.plain(as_typed(text, self._commands, "!"))
        try:
            return await self._aside(formatting.content, text)
        except TookTooLong:
            log.warning("shown_plainly", outbound=outbound.id, size=len(text))
            return formatting.plain(text)

    # -- editing ----------------------------------------------------------------------------

    def draft_rates(self, to: ChatAddress) -> Sequence[Rate] | None:
        """A message in five seconds is all that many servers take of one account, all rooms together."""
        if not self._settings.streaming:
            return None
        return [Rate(bucket="drafts", most=1, seconds=float(max(1, self._settings.edit_seconds)))]

    async def edit(self, outbound: Outbound, platform_message_id: str) -> None:
        if platform_message_id in self._receiver.redacted:
            self._anew.add(outbound.id)
            raise MessageGone("someone deleted the message")
        content = codec.reworded(await self._content(outbound, {}), platform_message_id)
        room = await self._room_of(outbound.to)
        wording = blake2s(outbound.text.encode(errors="replace"), digest_size=8).hexdigest()
        try:
            await self._put_up(room, _transaction(f"{outbound.id}~{wording}"), content)
        except AdapterError as error:
            raise repeatable(error) from error
        await self._offer(room, platform_message_id, outbound)

    # -- files ------------------------------------------------------------------------------

    async def fetch(self, file: Attachment) -> bytes:
        if file.size is not None and file.size > LARGEST_FETCHED:
            raise too_large(LARGEST_FETCHED)
        address, _, secret = file.ref.partition("#")
        content = await self._server.download(address)
        if not secret:
            return content
        if self._encryption is None:
            raise FileRefused("it is encrypted, and I cannot read encrypted files here")
        try:
            return self._encryption.opened_file(content, secret)
        except ValueError as error:
            raise FileRefused(str(error)) from error

    # -- typing -----------------------------------------------------------------------------

    async def typing(self, to: ChatAddress, active: bool) -> None:
        if active:
            self._typing.begin(to, partial(self._type, to))
        else:
            self._typing.end(to)
            self._background.start(self._end_typing(to), name="typing")  # a message does not end it

    async def _end_typing(self, to: ChatAddress) -> None:
        with suppress(AdapterError):
            await self._type(to, active=False)

    async def _type(self, to: ChatAddress, *, active: bool = True) -> None:
        body = {"typing": active, **({"timeout": _SHOWN_MILLISECONDS} if active else {})}
        await self._server.call("PUT", "rooms", await self._room_of(to), "typing", self.account, body=body)

    async def aclose(self) -> None:
        await self._typing.aclose()
        await self._background.aclose()
        await self._server.aclose()
        if self._encryption is not None:
            self._encryption.keys.close()


def create(settings: MatrixSettings, host: AdapterHost) -> MatrixAdapter:
    """The bot that the settings describe."""
    return MatrixAdapter(settings, host)


def _transaction(row: str) -> str:
    """A row's own transaction id, the same at every attempt."""
    return row if len(row) <= 60 else blake2s(row.encode(), digest_size=16).hexdigest()
