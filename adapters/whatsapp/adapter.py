"""The bot: what it shows, from any process, and what it hears, in all of them: Meta may call any."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import structlog
from msgspec import Struct

from adapters.whatsapp import codec, files, formatting, messages
from adapters.whatsapp.calls import INVALID, WINDOW_CLOSED, GraphCalls, code_of, in_words, passing
from adapters.whatsapp.endpoint import Endpoint
from adapters.whatsapp.limits import LIMITS, WINDOW, rates
from adapters.whatsapp.platform import WhatsAppSettings
from adapters.whatsapp.subscription import Subscription
from gateway.delivery.markdown.showing import shown_of
from gateway.domain.adapter import SIGNS, Accept, Finding, Notebook, Sign
from gateway.domain.chat import Attachment, ChatAddress, Inbound, Outbound
from gateway.domain.platform import AdapterHost
from gateway.domain.quoting import clipped
from gateway.domain.reading import OddEvents, Pointing, Recent, stored, wordings
from gateway.runtime.errors import AdapterError, ChatGone, DeliveryRefused, StoreUnavailable
from gateway.runtime.structs import replace
from gateway.runtime.tasks import Background, Crew, Renewed, best_effort

log = structlog.get_logger(__name__)

_PATIENCE: Final = 20.0  # seconds for an answer of Meta's
_TYPING_SECONDS: Final = 20.0  # WhatsApp shows it for 25
_LATE: Final = 60.0  # seconds: what is older was missed, and waits for room
_NOTED_EVERY: Final = 3_600.0  # seconds between two notes of when a person wrote last
_MOST_AGAIN: Final = 3  # times that one message is sent again
_OPENS: Final = ("message", "press", "unread")  # kinds of what lets the bot write for a day


class _Sent(Struct, frozen=True):
    """A row that was sent: to whom, what, the message that it answers, and how often it was sent again."""

    to: ChatAddress
    content: Mapping[str, Any]
    asked: str
    again: int = 0


class WhatsAppBot:
    """The bot with its numbers. `patience`: seconds for an answer of Meta's. `paced`: keep to WhatsApp's rates of its
    own accord."""

    name = codec.PLATFORM
    longest_token = messages.LONGEST_TOKEN
    notebook: Notebook | None = None

    def __init__(
        self, settings: WhatsAppSettings, host: AdapterHost, *, patience: float = _PATIENCE, paced: bool = True
    ) -> None:
        assert settings.number is not None, "the configuration sees to it that there is one"
        self.account = settings.number
        self.limits = replace(LIMITS, reach=None if settings.template.name else WINDOW)
        clock = self._clock = host.clock
        self._settings, self._aside, self._paced = settings, host.aside, paced
        self._numbers = frozenset((settings.number, *settings.numbers))
        self._calls = GraphCalls(settings, patience=patience)
        self._endpoint = Endpoint(settings, clock, self._heard)
        self._subscription = Subscription(self._calls, settings, clock, self._endpoint.verify_token)
        self._typing = Renewed(clock, _TYPING_SECONDS)
        self._beside = Background()
        self._accept: Accept | None = None
        self._wrote: dict[str, float] = {}  # when each person wrote last to each number, as noted
        self._knocked: Recent[str, float] = Recent()  # the same of those who may not talk, of whom nothing is noted
        self._last: Recent[ChatAddress, str] = Recent()  # the newest message of a chat
        self._quotes: Recent[str, codec.Quote] = Recent()  # what messages say
        self._signs: Recent[tuple[str, str], str] = Recent()  # a person's sign on a message
        self._wordings: Recent[str, tuple[str, ...]] = Recent()  # the events of a message's wordings, newest first
        self._arrived: Recent[str, str] = Recent()  # the message of a row that a status names
        self._sent: Recent[str, _Sent] = Recent()  # rows that may fail yet
        self._failed: Recent[str, None] = Recent()  # messages
        self._pointing = Pointing()
        self._captions: Recent[str, None] = Recent()  # rows whose words were shown without their sound
        self._odd = OddEvents()
        self._strange: Recent[str, None] = Recent()  # numbers that are not the bot's

    # -- hearing ----------------------------------------------------------------------------

    async def run(self, accept: Accept) -> None:
        """Listen until cancelled. Raises AdapterError if the port is taken."""
        self._accept = accept
        crew = Crew()
        crew.start(self._endpoint.serve())
        crew.start(self._subscription.keep())
        await crew.work()

    async def _heard(self, payload: Mapping[str, Any]) -> None:
        """Store what a call brings. Returns once all of it is stored."""
        assert self._accept is not None, "nobody listens before that"
        batch: dict[str, tuple[codec.Heard, Inbound]] = {}
        for heard, inbound in self._read(payload):
            batch[inbound.event_id] = heard, replace(inbound, can_wait=self._clock.now() - heard.at > _LATE)
            if inbound.place is not None:
                self._last[inbound.source.address] = inbound.place
        said = [inbound for _, inbound in batch.values()]
        for fate in await stored(self._clock, self._accept, said) if said else ():
            heard, _ = batch[fate.event_id]
            if fate.status == "new":
                self._stored(*batch[fate.event_id], fate.told)
            elif fate.status == "refused":
                self._knocked[_note_of(heard.number, heard.person)] = heard.at

    def _read(self, payload: Mapping[str, Any]) -> Iterator[tuple[codec.Heard, Inbound]]:
        for value in _values(payload):
            number = str(_named(value.get("metadata")).get("phone_number_id") or "")
            if number not in self._numbers:
                if number not in self._strange:
                    self._strange[number] = None
                    log.warning("number_unknown", number=number)
                continue
            readers = {"messages": self._of_message, "statuses": self._of_status, "errors": self._of_error}
            for what, each in ((name, each) for name in readers for each in _listed(value.get(name))):
                inbound = None
                with self._odd.contained(str(_named(each).get("type") or what)):
                    contact = _contact_of(each, value.get("contacts") or ())
                    heard = codec.Heard(number=number, first=self.account, message=each, contact=contact)
                    inbound = readers[what](heard)
                if inbound is not None:
                    yield heard, inbound

    def _of_error(self, heard: codec.Heard) -> None:
        log.warning("whatsapp_reports", error=in_words(heard.message)[0])

    def _of_message(self, heard: codec.Heard) -> Inbound | None:
        message, kind = heard.message, str(heard.message.get("type") or "")
        amends: tuple[str, ...] = ()
        before = ""
        if kind in ("edit", "revoke"):
            original = str(message[kind]["original_message_id"])
            amends = self._wordings.get(original, (heard.event(original),))
        if kind == "reaction":
            on = heard.person, str(message[kind]["message_id"])
            before = self._signs.pop(on, "")
            if sign := message[kind].get("emoji"):
                self._signs[on] = str(sign)
        quote = self._quotes.get(str((message.get("context") or {}).get("id")))
        return codec.inbound(heard, quote, amends, before) if heard.person else None

    def _of_status(self, heard: codec.Heard) -> Inbound | None:
        """What became of a message of the bot's. One that failed is sent again, where that may help."""
        status = heard.message
        row, message = str(status.get("biz_opaque_callback_data") or ""), str(status["id"])
        if status.get("status") != "failed":
            if row:
                self._arrived[row] = message
            return None
        if message in self._failed or self._arrived.get(row, message) != message:
            return None  # it was told before, or the row was shown by another message
        self._failed[message] = None
        self._arrived.pop(row, None)
        error: Mapping[str, Any] = next(iter(status.get("errors") or ()), {})
        why, gone = in_words(error)
        person = str(status.get("recipient_id") or status.get("recipient_user_id") or "")
        source = replace(heard, message={"from": person}).source
        self._beside.start(self._after_failure(row, source.address, why, passing(error)), name="failed")
        event = f"left:{heard.number}:{message}"
        return Inbound(event_id=event, source=source, kind="left", text=why) if gone and person else None

    async def _after_failure(self, row: str, to: ChatAddress, why: str, wait: float | None) -> None:
        """Send a row again after so many seconds, each time twice as many, if this process sent it. If it never
        arrives, the message that it answers gets a ⚠️."""
        sent = self._sent.get(row)
        if sent is not None and wait is not None and sent.again < _MOST_AGAIN:
            wait *= 2.0**sent.again
            log.warning("message_failed", outbound=row, chat=to.chat, error=why, again_in=wait)
            await self._clock.sleep(wait)
            sent = self._sent[row] = replace(sent, again=sent.again + 1)
            body = messages.addressed(sent.to.chat, sent.content, row=row, quotes=sent.asked)  # others stand between
            try:
                await self._post(sent.to, body)
                return
            except AdapterError as error:
                why = str(error)
        log.error("message_failed", outbound=row, chat=to.chat, error=why)
        if sent is not None and sent.asked:
            await best_effort(self.react(sent.to, sent.asked, "failed"), what="sign")

    def _stored(self, heard: codec.Heard, inbound: Inbound, told: str) -> None:
        """Remember what is stored, and tell who pressed a button what came of it."""
        here, name = inbound.source.address, _note_of(heard.number, heard.person)
        if told:
            said = messages.text(formatting.plain(told))
            self._later(here, messages.addressed(here.chat, said, quotes=str(heard.message["id"])))
        if (
            inbound.kind in _OPENS
            and heard.at - self._wrote.get(name, 0.0) > _NOTED_EVERY
            and self.notebook is not None
        ):
            self._wrote[name] = heard.at  # for all processes
            self._beside.start(self.notebook.write({name: f"{heard.at:.0f}"}), name=f"note {name}")
        if inbound.place is not None:
            who = heard.source.user_name or "themselves"
            self._quotes[inbound.place] = codec.Quote(who, clipped(codec.quotable(heard.message)))
            self._wordings[inbound.place] = wordings(inbound)
            if inbound.command is not None:  # where a turn begins, the sign that somebody types says so
                self._later(here, _read_receipt(inbound.place))

    def _later(self, to: ChatAddress, body: Mapping[str, Any]) -> None:
        async def sent() -> None:
            await best_effort(self._post(to, body), what="beside")

        self._beside.start(sent(), name="beside")

    def forget_typed(self, goes: Callable[[str], bool]) -> None:
        for message in [each for each, quote in self._quotes.items() if goes(quote.said)]:
            del self._quotes[message]

    async def ping(self) -> None:
        await self._calls("GET", self.account, params={"fields": "id"})

    async def probe(self) -> Sequence[Finding]:
        found: list[Finding] = []
        try:
            found.extend([each async for each in self._subscription.findings()])
        except AdapterError as error:
            found.append(Finding(what="whatsapp", ok=False, detail=str(error)))
        return found

    # -- showing ----------------------------------------------------------------------------

    def rates(self, to: ChatAddress) -> Sequence[Any]:
        return rates(to, self._number(to)) if self._paced else ()

    async def send(self, outbound: Outbound) -> str:
        if known := self._arrived.get(outbound.id):
            return known  # the answer to an earlier attempt was lost, and a status told of it
        words, template = await self._laid_out(outbound), self._settings.template
        if not await self._is_open(outbound):
            if template.name is None:
                raise ChatGone(WINDOW_CLOSED)
            return await self._shown(outbound, messages.template(template.name, template.language, outbound.text))
        try:
            return await self._shown(outbound, messages.with_buttons(words, outbound.buttons))
        except DeliveryRefused as error:
            if code_of(error) not in INVALID or not outbound.buttons:
                raise
            log.warning("shown_plainly", outbound=outbound.id, error=str(error))
            return await self._shown(outbound, messages.spelled_out(words, outbound.buttons))

    async def send_file(self, outbound: Outbound, content: bytes) -> str:
        assert outbound.file is not None, "only a row with a file is sent as one"
        if known := self._arrived.get(outbound.id):
            return known
        if not await self._is_open(outbound):
            raise ChatGone(WINDOW_CLOSED)
        caption = await self._laid_out(outbound) if outbound.text.strip() else ""
        body = await files.shown(self._calls, self._number(outbound.to), outbound.file, content, caption)
        if caption and body["type"] in files.BARE and outbound.id not in self._captions:
            await self._post(outbound.to, messages.addressed(outbound.to.chat, messages.text(caption)))
            self._captions[outbound.id] = None
        return await self._shown(outbound, body)

    async def _shown(self, outbound: Outbound, content: Mapping[str, Any]) -> str:
        asked = codec.message_of(outbound.answers)
        self._sent[outbound.id] = _Sent(outbound.to, content, asked)
        quotes = asked if self._points_back(outbound, asked) else ""
        body = messages.addressed(outbound.to.chat, content, row=outbound.id, quotes=quotes)
        message = str((await self._post(outbound.to, body))["messages"][0]["id"])
        self._quotes[message] = codec.Quote("you", clipped(outbound.text))
        return message

    async def _post(self, to: ChatAddress, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._calls("POST", f"{self._number(to)}/messages", body)

    async def _laid_out(self, outbound: Outbound) -> str:
        return await shown_of(outbound, self._aside, formatting.shown, formatting.plain)

    def _points_back(self, outbound: Outbound, asked: str) -> bool:
        """Whether a message quotes what it answers: the first one of an answer does, if more was said meanwhile."""
        return bool(asked) and self._last.get(outbound.to, asked) != asked and self._pointing.is_first(outbound)

    async def _is_open(self, outbound: Outbound) -> bool:
        """Whether the person wrote within a day, as somebody who just asked did."""
        now, name = self._clock.now(), _note_of(self._number(outbound.to), outbound.to.chat)
        if codec.message_of(outbound.answers) and now - outbound.created_at < WINDOW - _NOTED_EVERY:
            return True
        if now - self._wrote.get(name, 0.0) >= WINDOW and self.notebook is not None:
            try:
                noted = {name: float(at) for name, at in (await self.notebook.read()).items()}
                await self.notebook.write({each: None for each, at in noted.items() if now - at >= WINDOW})
            except StoreUnavailable as error:
                raise AdapterError(f"Legato cannot look up when they last wrote: {error}") from error
            self._wrote |= noted
        return now - max(self._wrote.get(name, 0.0), self._knocked.get(name, 0.0)) < WINDOW

    def _number(self, to: ChatAddress) -> str:
        return to.thread or self.account

    # -- files and signs --------------------------------------------------------------------

    async def fetch(self, file: Attachment) -> bytes:
        return await self._calls.download(file.ref)

    async def typing(self, to: ChatAddress, active: bool) -> None:
        message = self._last.get(to)
        if active and message is not None:
            body = {**_read_receipt(message), "typing_indicator": {"type": "text"}}
            self._typing.begin(to, partial(self._post, to, body))
        else:
            self._typing.end(to)

    async def react(self, to: ChatAddress, message: str, sign: Sign) -> None:
        await self._post(to, messages.addressed(to.chat, messages.reaction(message, SIGNS[sign])))

    async def aclose(self) -> None:
        await self._typing.aclose()
        await self._beside.aclose()
        await self._calls.aclose()


def create(settings: WhatsAppSettings, host: AdapterHost) -> WhatsAppBot:
    """The bot of these settings."""
    return WhatsAppBot(settings, host)


def _values(payload: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for change in (change for each in _listed(payload.get("entry")) for change in _listed(_named(each).get("changes"))):
        if _named(change).get("field") == "messages":
            yield _named(change.get("value"))


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _named(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _contact_of(message: Mapping[str, Any], contacts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What is said about who wrote a message."""
    named = {message.get("from"), message.get("from_user_id")} - {None}
    found = (each for each in contacts if named & {each.get("wa_id"), each.get("user_id")})
    return next(found, contacts[0] if len(contacts) == 1 else {})


def _read_receipt(message: str) -> dict[str, Any]:
    return {"messaging_product": "whatsapp", "status": "read", "message_id": message}


def _note_of(number: str, person: str) -> str:
    return f"{number} {person}"
