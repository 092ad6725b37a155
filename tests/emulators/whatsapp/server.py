"""The Graph API of one app, whose calls are counted, disturbed if so wished, done and answered; and the deeds of
people."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

import aiohttp
from aiohttp import web

from gateway.runtime.clock import Clock, SystemClock
from tests.emulators.faults import Disconnect, Fault, Faults, Flood, LoseAnswer, Refuse, Slow, cut
from tests.emulators.journal import Call, Journal, Violation
from tests.emulators.whatsapp.checks import Refusal, check, visible
from tests.emulators.whatsapp.delivery import Delivery, Webhook
from tests.emulators.whatsapp.world import DAY, Json, Media, Message, Person, Settings, World

VERSION: Final = "/v25.0/"
_URL_SECONDS: Final = 300.0
_PAIR_BURST: Final = 45
_PAIR_SECONDS: Final = 6.0
_NUMBER_RATE: Final = 80
_TYPES: Final = (
    *("audio/aac", "audio/amr", "audio/mp4", "audio/mpeg", "audio/ogg", "video/3gpp", "video/mp4"),
    *("image/jpeg", "image/png", "image/webp", "text/plain", "application/pdf", "application/msword"),
    *("application/vnd.ms-excel", "application/vnd.ms-powerpoint"),
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
)
_MOST: Final = {"image": 5 << 20, "audio": 16 << 20, "video": 16 << 20, "text": 100 << 20, "application": 100 << 20}


class WhatsAppServer:
    """The Graph API on a loopback port, and all of WhatsApp behind it. `faults` disturbs calls, `delivery.faults`
    webhooks. `limited`: keep to the rate limits."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        clock: Clock | None = None,
        limited: bool = True,
        host: str = "127.0.0.1",
        port: int = 0,
        keep: int = 100_000,
    ) -> None:
        self.settings = settings or Settings()
        self.clock = clock or SystemClock()
        self.world = World(self.settings)
        self.journal = Journal(self.clock, keep=keep)
        self.delivery = Delivery(self.world, self.journal, self.clock)
        self.faults: Faults[Fault] = Faults()
        self._host, self._port, self._limited = host, port, limited
        self._runner: web.AppRunner | None = None
        self._closing = asyncio.Event()
        self._pairs: dict[tuple[str, str], tuple[float, float]] = {}  # when, and the messages that are left then
        self._sent: dict[str, list[float]] = defaultdict(list)

    @property
    def url(self) -> str:
        """The root."""
        return f"http://{self._host}:{self._port}"

    @property
    def api_url(self) -> str:
        """The value of `base_url`."""
        return f"{self.url}{VERSION}"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 28)
        app.router.add_route("*", VERSION + "{path:.+}", self._called)
        app.router.add_get("/files/{file}", self._downloaded)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=False, shutdown_timeout=0.2)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port, backlog=1024).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        await self.delivery.aclose()
        if self._runner is not None:
            await self._runner.cleanup()

    # -- what is to be seen ------------------------------------------------------------------------

    @property
    def violations(self) -> Sequence[Violation]:
        """The deeds of a bot that breaks the rules."""
        return self.journal.violations

    def of_bot(self, person: Person, number: str = "") -> list[Message]:
        """The bot's messages that a person got, oldest first."""
        number = number or self.settings.numbers[0]
        found = [each for each in self.world.messages if each.person is person and each.number == number]
        return [each for each in found if each.by_bot and not each.failed]

    def shown(self, person: Person, number: str = "") -> list[str]:
        """What they read in these."""
        return [visible(each.text) for each in self.of_bot(person, number)]

    async def until(self, condition: Callable[[], Any]) -> Any:
        """The value of `condition()` once that is true."""
        return await self.journal.until(condition)

    # -- people ------------------------------------------------------------------------------------

    def person(self, name: str, *, hidden: bool = False) -> Person:
        """Somebody new. `hidden`: they show a name in the place of their number."""
        number = f"4917{len(self.world.people) + 1:08d}"
        person = Person(name=name, number=number, id=f"DE.{self.world.new_id()}", hidden=hidden)
        self.world.people[number] = person
        return person

    def say(self, person: Person, text: str, **how: Any) -> Message:
        """Somebody writes."""
        return self.send(person, {"type": "text", "text": {"body": text}}, **how)

    def send(
        self,
        person: Person,
        body: Json,
        *,
        number: str = "",
        reply: Message | None = None,
        ago: float = 0.0,
        **more: Any,
    ) -> Message:
        """Somebody sends something, or did so many seconds ago. `more`: what its context says, as of one that is
        `forwarded`."""
        number, now = number or self.settings.numbers[0], self.clock.now() - ago
        message = Message(id=self.world.new_message_id(), person=person, number=number, at=now, body=body)
        self.world.messages.append(message)
        person.wrote[number] = now
        context: Json = {**more, **({"from": "15550001111", "id": reply.id} if reply else {})}
        self._tell(message, {**body, **({"context": context} if context else {})})
        return message

    def _tell(self, message: Message, body: Json) -> Webhook:
        person = message.person
        whose = {} if person.hidden else {"from": person.number}
        known = {} if person.hidden else {"wa_id": person.number}
        contact = {"profile": {"name": person.name}, "user_id": person.id, **known}
        said = {**whose, "from_user_id": person.id, "id": message.id, "timestamp": f"{message.at:.0f}", **body}
        return self.delivery.tell("messages", person.number, message.number, contacts=[contact], messages=[said])

    def file(self, content: bytes, mime: str) -> str:
        """The id of a file."""
        media = Media(id=self.world.new_id(), content=content, mime=mime)
        self.world.media[media.id] = media
        return media.id

    def press(self, person: Person, message: Message, label: str) -> Message:
        """Somebody presses a button or chooses a row."""
        kind = "button_reply" if message.body["interactive"]["type"] == "button" else "list_reply"
        chosen = {"id": message.buttons[label], "title": label}
        body = {"type": "interactive", "interactive": {"type": kind, kind: chosen}}
        return self.send(person, body, number=message.number, reply=message)

    def react(self, person: Person, message: Message, emoji: str) -> Message:
        """Somebody puts a sign on a message; "" takes it away."""
        sign = {"message_id": message.id, **({"emoji": emoji} if emoji else {})}
        return self.send(person, {"type": "reaction", "reaction": sign}, number=message.number)

    def edit(self, message: Message, text: str) -> Message:
        """Somebody writes a message anew."""
        anew = {"type": "text", "text": {"body": text}}
        body = {"type": "edit", "edit": {"original_message_id": message.id, "message": anew}}
        return self.send(message.person, body, number=message.number)

    def revoke(self, message: Message) -> Message:
        """Somebody takes a message back."""
        body = {"type": "revoke", "revoke": {"original_message_id": message.id}}
        return self.send(message.person, body, number=message.number)

    # -- one call ----------------------------------------------------------------------------------

    async def _called(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        given, files = await _body(request)
        call = self.journal.open(self._named(path, given), str(given.get("to") or given.get("recipient") or ""), given)
        try:
            return await self._disturbed(request, call, path, files)
        except ConnectionError:
            call.status = 499
            return cut(request)
        finally:
            self.journal.changed()

    def _named(self, path: str, given: Json) -> str:
        last = path.rpartition("/")[2]
        if last == "messages":
            return "messages" if "status" not in given else "receipt"
        return last if not last.isdecimal() else "media id" if last in self.world.media else "number"

    async def _disturbed(
        self, request: web.Request, call: Call, path: str, files: dict[str, bytes]
    ) -> web.StreamResponse:
        fault = self.faults.befalling(call)
        if isinstance(fault, Refuse):
            call.status, call.answered = fault.status, True
            return web.Response(status=fault.status, text=fault.body or "<html>Sorry</html>", content_type="text/html")
        if isinstance(fault, Disconnect) and not fault.done:
            return cut(request)
        if isinstance(fault, Slow):
            await self.clock.sleep(fault.seconds)
        try:
            if isinstance(fault, Flood):
                raise Refusal(131056, "Pair rate limit hit", "Too many messages to this person", wrong=False)
            body = await self._done(request, call, path, files)
        except Refusal as refusal:
            call.status, call.answered, call.description = refusal.status, True, str(refusal)
            if refusal.wrong:
                self.journal.violation(call.method, call.chat_id, str(refusal))
            return web.json_response(refusal.body, status=refusal.status)
        call.done, call.result = True, body
        if isinstance(fault, Disconnect):
            return cut(request)
        if isinstance(fault, LoseAnswer):
            await (self._closing.wait() if fault.seconds is None else self.clock.sleep(fault.seconds))
            return cut(request)
        call.answered, call.status = True, 200
        return web.json_response(body)

    async def _done(self, request: web.Request, call: Call, path: str, files: dict[str, bytes]) -> Json:
        settings, first = self.settings, path.partition("/")[0]
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        own = f"{settings.app}|{settings.secret}"
        if token not in (settings.token, own):
            if token.startswith(f"{settings.app}|"):
                raise Refusal(190, "Error validating application", "Invalid client secret", status=401, wrong=False)
            raise Refusal(190, "Access token has expired", "Session has expired", status=401, wrong=False)
        match path.split("/"):
            case ["app"]:
                return {"id": settings.app, "name": "Legato"}
            case ["debug_token"]:
                return {"data": self._about_token()}
            case [settings.app, "subscriptions"]:
                return await self._subscriptions(request)
            case [settings.business, "subscribed_apps"]:
                if request.method == "POST":
                    settings.subscribed.add(settings.app)
                apps = [{"whatsapp_business_api_data": {"id": each}} for each in settings.subscribed]
                return {"data": apps, "success": True}
            case [settings.business, "message_templates"]:
                names = ("name", "language", "status")
                return {"data": [dict(zip(names, each, strict=True)) for each in settings.templates]}
            case [number, "messages"] if number in settings.numbers:
                return self._message(number, call)
            case [number, "media"] if number in settings.numbers:
                return self._uploaded(call.parameters, files)
            case [number] if number in settings.numbers:
                told = {"display_phone_number": "+1 555-000-1111", "verified_name": "Legato"}
                return {"id": number, "quality_rating": "GREEN", **told}
            case [media] if media in self.world.media:
                return self._media(self.world.media[media])
        raise Refusal(100, "Unsupported request", f"Object with ID '{first}' does not exist", wrong=False)

    def _about_token(self) -> Json:
        settings = self.settings
        granted = [{"scope": each, "target_ids": [settings.business]} for each in settings.scopes]
        facts = {"app_id": settings.app, "is_valid": True, "expires_at": settings.expires_at}
        return {**facts, "scopes": list(settings.scopes), "granular_scopes": granted}

    async def _subscriptions(self, request: web.Request) -> Json:
        settings = self.settings
        if request.method == "POST":
            wanted = request.query
            challenge = self.world.new_id()
            query = {"hub.mode": "subscribe", "hub.challenge": challenge, "hub.verify_token": wanted["verify_token"]}
            try:
                async with (
                    aiohttp.ClientSession() as http,
                    http.get(wanted["callback_url"], params=query) as answer,
                ):
                    said = await answer.text()
            except (aiohttp.ClientError, OSError) as error:
                said = str(error)
            if said != challenge:
                raise Refusal(2200, "Callback verification failed", said[:100], wrong=False)
            settings.callback_url, settings.verify_token = wanted["callback_url"], wanted["verify_token"]
            settings.fields = tuple(wanted["fields"].split(","))
        if not settings.callback_url:
            return {"data": [], "success": True}
        fields = [{"name": each, "version": "v25.0"} for each in settings.fields]
        told = {"object": "whatsapp_business_account", "callback_url": settings.callback_url, "active": True}
        return {"data": [{**told, "fields": fields}], "success": True}

    # -- messages ----------------------------------------------------------------------------------

    def _message(self, number: str, call: Call) -> Json:
        body = call.parameters
        if "status" in body:
            return self._receipt(body)
        check(body)
        address = str(body.get("to") or body.get("recipient") or "")
        person = self.world.known(address)
        if person is None:
            raise Refusal(131030, "Recipient phone number not in allowed list", "Add it to the list", wrong=False)
        self._paced(number, person)
        kind, media = body["type"], str(body[body["type"]].get("id") or "")
        if media and media not in self.world.media:
            raise Refusal(131009, "Parameter value is not valid", f"Media id {media} is not known")
        if kind == "template":
            named = body["template"]["name"], body["template"]["language"]["code"], "APPROVED"
            if named not in self.settings.templates:
                raise Refusal(132001, "Template does not exist", f"{named[0]} in {named[1]}", wrong=False)
        if kind == "reaction":
            return self._signed(body["reaction"], number)
        row = str(body.get("biz_opaque_callback_data") or "")
        now = self.clock.now()
        message = Message(
            id=self.world.new_message_id(), person=person, number=number, at=now, body=dict(body), by_bot=True, row=row
        )
        if person.blocked:
            message.failed = 131026
        elif person.failing:
            message.failed = person.failing.pop(0)
        elif kind != "template" and now - person.wrote.get(number, 0.0) >= DAY:
            message.failed = 131047
            self.journal.violation("messages", address, "it is not free to write to who did not write for a day")
        self.world.messages.append(message)
        if self.settings.statuses:
            self._status(message)
        return self._told(message)

    def _told(self, message: Message) -> Json:
        contact = {"input": message.person.address, "wa_id": message.person.number}
        return {"messaging_product": "whatsapp", "contacts": [contact], "messages": [{"id": message.id}]}

    def _status(self, message: Message) -> None:
        said: Json = {"id": message.id, "timestamp": f"{message.at:.0f}", "recipient_id": message.person.number}
        said |= {"recipient_user_id": message.person.id, "biz_opaque_callback_data": message.row}
        if message.failed:
            titles = {131047: "Re-engagement message", 131026: "Message undeliverable"}
            title = titles.get(message.failed, "Something went wrong")
            said["errors"] = [
                {"code": message.failed, "title": title, "message": title, "error_data": {"details": title}}
            ]
        for state in ("failed",) if message.failed else ("sent", "delivered"):
            statuses = [{**said, "status": state}]
            self.delivery.tell("statuses", message.person.number, message.number, statuses=statuses)

    def _signed(self, reaction: Json, number: str) -> Json:
        message = self.world.message(reaction["message_id"])
        if message is None or message.number != number:
            raise Refusal(131009, "Parameter value is not valid", "message_id is not known")
        message.signs["bot"] = reaction["emoji"]
        return self._told(message)

    def _receipt(self, body: Json) -> Json:
        message = self.world.message(body["message_id"])
        if message is None or message.by_bot or body["status"] != "read":
            raise Refusal(131009, "Parameter value is not valid", "message_id is not one of a person's")
        message.read = True
        return {"success": True}

    def _paced(self, number: str, person: Person) -> None:
        if not self._limited:
            return
        now = self.clock.monotonic()
        at, left = self._pairs.get((number, person.number), (now, float(_PAIR_BURST)))
        left = min(float(_PAIR_BURST), left + (now - at) / _PAIR_SECONDS)
        if left < 1.0:
            raise Refusal(131056, "Pair rate limit hit", "Too many messages to this person")
        self._pairs[number, person.number] = now, left - 1.0
        recent = self._sent[number] = [each for each in self._sent[number] if now - each < 1.0]
        if len(recent) >= _NUMBER_RATE:
            raise Refusal(130429, "Rate limit hit", "Cloud API message throughput has been reached")
        recent.append(now)

    # -- files -------------------------------------------------------------------------------------

    def _uploaded(self, given: Json, files: dict[str, bytes]) -> Json:
        mime, content = str(given.get("type")), files["file"]
        if mime not in _TYPES:
            raise Refusal(100, "Invalid parameter", f"Param file must be one of {', '.join(_TYPES)}; received {mime}")
        if len(content) > _MOST[mime.partition("/")[0]]:
            raise Refusal(131053, "Media upload error", "The file is too large")
        return {"id": self.file(content, mime)}

    def _media(self, media: Media) -> Json:
        media.until = self.clock.now() + _URL_SECONDS
        told = {"url": f"{self.url}/files/{media.id}", "mime_type": media.mime, "file_size": len(media.content)}
        return {**told, "id": media.id, "messaging_product": "whatsapp"}

    async def _downloaded(self, request: web.Request) -> web.StreamResponse:
        call = self.journal.open("(download)", "", {"file": request.match_info["file"]})
        if isinstance(fault := self.faults.befalling(call), Refuse):
            return web.Response(status=fault.status)
        media = self.world.media.get(request.match_info["file"])
        if request.headers.get("Authorization") != f"Bearer {self.settings.token}":
            return web.Response(status=401)
        if media is None or self.clock.now() > media.until:
            return web.Response(status=404)
        return web.Response(body=media.content, content_type=media.mime)


async def _body(request: web.Request) -> tuple[Json, dict[str, bytes]]:
    """The arguments of a call, and its files."""
    if request.content_type == "application/json":
        return json.loads(await request.read()), {}
    given: Json = dict(request.query)
    files: dict[str, bytes] = {}
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            files[name] = value.file.read()
        else:
            given[name] = value
    return given, files
