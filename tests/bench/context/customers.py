"""A long conversation of a help desk, written from a seed: customers come, and come back.

A visit is a short talk with tools: a trip is booked, an order is looked at, a program makes trouble. What it leaves
behind (a booking code, a date, a price, a short code under a JSON key) is needed again when the same customer comes
back: a part within half a compaction's worth of tokens, others after 3, 10 or 30 compactions. The customer then names
the matter and not the value; the model needs the value for its answer or for a tool's argument. In between stand
other customers' values of the same forms, lists of things alike, and talk.

Values are unique in a conversation, so one that stands in a request can only have come from where it was said.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Literal

from gateway.context import identifiers
from gateway.domain.message import Message, ToolCall, assistant, noted, tool_result, user
from gateway.runtime.tokens import TokenCounter
from tests.bench.context import bulk, phrases
from tests.bench.context.facts import Fact, Kind, Speaker
from tests.bench.context.wording import MODEL, PERSON

Way = Literal["single-hop", "temporal", "other words", "by a code", "multi-hop", "argument", "rule"]

LENGTH: Final = 34  # compactions
_RETURNS: Final = ((0.5, 68), (3.0, 18), (10.0, 10), (30.0, 4))  # compactions until a return, and how many of 100
_EARLY_RETURNS: Final = ((0.5, 30), (3.0, 15), (10.0, 15), (30.0, 40))  # of those who can come back so late
_EARLY: Final = 3.0  # compactions
_COMES_BACK: Final = 0.55  # of the customers, after each visit
_IDLE: Final = 0.6  # of the time that nobody comes back, the desk talks of other things
_MATTERS: Final = (("trip", 32), ("order", 28), ("ticket", 22), ("talk", 18))
_START: Final = 1_780_000_000.0
_TURN: Final = 240.0  # seconds
_LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A turn needs `facts` (of a rule or an argument: one). `words`: who speaks and what the person said, for a
    search."""

    way: Way
    facts: tuple[Fact, ...]
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A person's message and what follows. `started`: tokens said before it."""

    number: int
    started: int
    messages: tuple[Message, ...]
    plants: tuple[Fact, ...]
    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A conversation. `needed`: the last turn that needs a fact, by the fact's number."""

    seed: int
    turns: tuple[Turn, ...]
    needed: Mapping[int, int]

    @property
    def messages(self) -> list[Message]:
        """All messages, in order."""
        return [message for turn in self.turns for message in turn.messages]


@dataclass(slots=True)
class _Matter:
    """The matter between a customer and the desk: `about` a city, a thing, a program, a relative."""

    kind: str
    about: str
    facts: dict[str, Fact] = field(default_factory=dict)


@dataclass(slots=True)
class _Customer:
    name: str
    language: str
    uid: Fact | None = None
    matters: list[_Matter] = field(default_factory=list)
    rules: list[tuple[Fact, str]] = field(default_factory=list)  # with their topics


@dataclass(slots=True)
class _Draft:
    """A turn that is being written."""

    said: list[str] = field(default_factory=list)
    steps: list[list[tuple[str, dict[str, Any], str]]] = field(default_factory=list)  # tool, arguments, result
    reply: list[str] = field(default_factory=list)
    plants: list[Fact] = field(default_factory=list)
    needs: list[tuple[Way, tuple[Fact, ...]]] = field(default_factory=list)
    name: str = ""  # who speaks, where something is needed


def write(seed: int, span: int, counter: TokenCounter, *, length: float = LENGTH, rows: int = 6) -> Life:
    """The conversation of a seed. `span`: tokens between two compactions; `length`: how many of these it lasts;
    `rows`: how long lists are."""
    return _Desk(seed, span, counter, rows).life(length)


class _Desk:
    def __init__(self, seed: int, span: int, counter: TokenCounter, rows: int) -> None:
        self._rng = Random(seed)
        self._seed = seed
        self._span = span
        self._counter = counter
        self._rows = rows
        self._values = _Values(self._rng)
        self._names = self._shuffled([f"{a} {b}" for a in phrases.FIRST for b in phrases.LAST])
        self._topics = {language: self._shuffled(phrases.TOPICS[language]) for language in phrases.TOPICS}
        self._made = 0
        self._calls = 0
        self._tokens = 0
        self._turns: list[Turn] = []
        self._due: list[tuple[float, int, _Customer]] = []
        self._visits = 0

    def life(self, length: float) -> Life:
        end = length * self._span
        while self._tokens < end:
            if self._due and self._due[0][0] <= self._tokens:
                customer = heapq.heappop(self._due)[2]
                self._returning(customer)
            elif self._rng.random() < _IDLE:
                self._small_talk()
                continue
            else:
                customer = _Customer(next(self._names), self._rng.choice(phrases.LANGUAGES))
                self._new(customer)
            self._visits += 1
            if self._rng.random() > _COMES_BACK:
                continue
            shares = [share for _, share in (_RETURNS if self._tokens > _EARLY * self._span else _EARLY_RETURNS)]
            gap = self._rng.choices([compactions for compactions, _ in _RETURNS], shares)[0]
            due = self._tokens + gap * self._rng.uniform(0.7, 1.3) * self._span
            heapq.heappush(self._due, (due, self._visits, customer))
        needed = {fact.number: turn.number for turn in self._turns for need in turn.needs for fact in need.facts}
        return Life(seed=self._seed, turns=tuple(self._turns), needed=needed)

    # -- visits -----------------------------------------------------------------------------------

    def _new(self, customer: _Customer) -> None:
        rng, language = self._rng, customer.language
        draft = _Draft(said=[rng.choice(phrases.HELLO[language]).format(name=customer.name)])
        customer.uid = self._fact("person", language, customer.name, self._values.person(customer.name), "user")
        draft.said.append(phrases.KNOWN_AS[language].format(value=customer.uid.value))
        draft.plants.append(customer.uid)
        card = f"gift_card_{self._values.number(1_000_000)}"
        paid = self._fact("id", language, f"{customer.name}, gift card", card, "dump")
        customer.matters.append(_Matter("account", "gift card", {"card": paid}))
        draft.plants.append(paid)
        draft.steps.append([("get_user_details", {"user_id": customer.uid.value}, self._account(customer, paid))])
        draft.reply.append(phrases.REPLIES[language][1])
        self._end_turn(draft)
        for _ in range(rng.choice((1, 1, 2))):
            self._begin(customer)
        if rng.random() < 0.35:
            self._rule(customer)
        self._goodbye(customer)

    def _returning(self, customer: _Customer) -> None:
        rng = self._rng
        hello = rng.choice(phrases.AGAIN[customer.language]).format(name=customer.name)
        chances = [(matter, name) for matter in customer.matters for name in matter.facts]
        for matter, name in rng.sample(chances, k=min(len(chances), rng.choice((1, 2, 2, 3)))):
            self._need(customer, matter, name, hello)
            hello = ""
        if rng.random() < 0.3:
            self._together(customer)
        for rule, topic in rng.sample(customer.rules, k=min(1, len(customer.rules))):
            asked = phrases.ABOUT_RULE[customer.language].format(topic=topic)
            self._end_turn(
                _Draft(
                    said=[hello, asked],
                    reply=[self._chat(customer.language)],
                    needs=[("rule", (rule,))],
                    name=customer.name,
                )
            )
            hello = ""
        if rng.random() < 0.4:
            self._change(customer)
        if rng.random() < 0.3:
            self._begin(customer)
        if rng.random() < 0.2:
            self._rule(customer)
        self._goodbye(customer)

    def _begin(self, customer: _Customer) -> None:
        """A new matter: what is said and done at its beginning."""
        rng, language = self._rng, customer.language
        kind = rng.choices([one for one, _ in _MATTERS], [share for _, share in _MATTERS])[0]
        known = {matter.about for matter in customer.matters}
        abouts = {
            "trip": phrases.CITIES,
            "order": phrases.THINGS[language],
            "ticket": phrases.PROGRAMS,
            "talk": phrases.KIN[language],
        }
        free = [about for about in abouts[kind] if about not in known]
        if free:
            matter = _Matter(kind, rng.choice(free))
            customer.matters.append(matter)
            {"trip": self._trip, "order": self._order, "ticket": self._ticket, "talk": self._talk}[kind](
                customer, matter
            )

    def _trip(self, customer: _Customer, matter: _Matter) -> None:
        rng, language = self._rng, customer.language
        day = self._told(matter, "day", self._values.day(language), "user", customer)
        asking = _Draft(said=[day.statement], plants=[day])
        flights = [self._flight() for _ in range(rng.randrange(4, 4 + self._rows))]
        asking.steps.append([("search_flights", {"to": matter.about}, _json(flights))])
        asking.reply.append(self._offer(flights))
        self._end_turn(asking)
        booking = _Draft(said=[f"{flights[rng.randrange(len(flights))]['flight_number']}."])
        code = self._told(matter, "code", self._values.booking(), rng.choice(("assistant", "result")), customer)
        gate = self._fact("short", language, f"{customer.name}, {matter.about}", self._values.short(), "result")
        price = self._told(matter, "price", self._values.price(language), "assistant", customer)
        matter.facts |= {"gate": gate}
        result = {
            "status": "booked",
            "reservation_id": code.value,
            "payment_id": gate.value,
            "passengers": [{"name": customer.name, "fare_class": "economy"}],
            "created_by": "desk",
        }
        arguments = {"user_id": customer.uid.value if customer.uid else "", "to": matter.about}
        booking.steps.append([("book_reservation", arguments, _json(result))])
        booking.plants += [code, gate, price]
        booking.reply += [fact.statement for fact in (code, price) if fact.speaker == "assistant"]
        self._end_turn(booking)

    def _order(self, customer: _Customer, matter: _Matter) -> None:
        rng, language = self._rng, customer.language
        order = self._fact("order", language, f"{customer.name}, {matter.about}", self._values.order(), "result")
        item = self._fact("item", language, f"{customer.name}, {matter.about}", self._values.item(), "result")
        price = self._told(matter, "price", self._values.price(language), "assistant", customer)
        before = self._fact("order", language, f"{customer.name}, before {matter.about}", self._values.order(), "dump")
        matter.facts |= {"order": order, "item": item, "before": before}
        orders = [self._values.order() for _ in range(rng.randrange(3, 3 + self._rows))]
        place = rng.randrange(len(orders))
        orders[place:place] = [before.value, order.value]
        items = [{"name": self._thing(language), "item_id": self._values.item()} for _ in range(rng.randrange(2, 7))]
        items.insert(rng.randrange(len(items)), {"name": matter.about, "item_id": item.value})
        uid = customer.uid.value if customer.uid else ""
        draft = _Draft(said=[phrases.TO_DO["order", "order"][language].format(about=matter.about)])
        draft.steps.append([("list_orders", {"user_id": uid}, _json({"user_id": uid, "orders": orders}))])
        details = {"order_id": order.value, "status": "delivered", "items": items}
        draft.steps.append([("get_order_details", {"order_id": order.value}, _json(details))])
        draft.plants += [order, before, item, price]
        draft.reply += [phrases.REPLIES[language][0].format(about=matter.about), price.statement]
        self._end_turn(draft)

    def _ticket(self, customer: _Customer, matter: _Matter) -> None:
        rng, language = self._rng, customer.language
        version = self._told(matter, "version", self._values.version(), "user", customer)
        path = self._told(matter, "path", self._values.path(matter.about), "user", customer)
        case = self._fact("short", language, f"{customer.name}, {matter.about}", self._values.short(), "result")
        matter.facts |= {"case": case}
        draft = _Draft(said=[version.statement, path.statement], plants=[version, path, case])
        shape = rng.choice((bulk.log, bulk.code, bulk.listing, bulk.rows))
        draft.steps.append([("inspect", {"host": matter.about.lower()}, shape(rng, 5 * self._rows))])
        opened = {"case_id": case.value, "state": "open", "program": matter.about}
        draft.steps.append([("open_case", {"program": matter.about}, _json(opened))])
        draft.reply += [phrases.REPLIES[language][0].format(about=matter.about), self._chat(language)]
        self._end_turn(draft)

    def _talk(self, customer: _Customer, matter: _Matter) -> None:
        language = customer.language
        day = self._told(matter, "day", self._values.day(language), "user", customer)
        said = [self._person(language), day.statement, self._person(language)]
        self._end_turn(_Draft(said=said, plants=[day], reply=[self._chat(language), self._chat(language)]))

    # -- what is needed again ---------------------------------------------------------------------

    def _need(self, customer: _Customer, matter: _Matter, name: str, hello: str) -> None:
        rng, language, fact = self._rng, customer.language, matter.facts[name]
        asked = phrases.ASKED.get((matter.kind, name))
        to_do = phrases.TO_DO.get((matter.kind, name))
        draft = _Draft(said=[hello], name=customer.name)
        if asked is None or (to_do is not None and rng.random() < 0.5):
            assert to_do is not None, (matter.kind, name)
            draft.said.append(to_do[language].format(about=matter.about))
            arguments = {"user": customer.name, f"{name}_id": fact.value}
            draft.steps.append([(f"use_{name}", arguments, _json({"status": "ok", "note": rng.choice(PERSON["en"])}))])
            draft.reply.append(phrases.REPLIES[language][0].format(about=matter.about))
            draft.needs.append(("argument", (fact,)))
        else:
            code = matter.facts.get("code") or matter.facts.get("order")
            plain, other, coded = asked[language]
            ways: list[tuple[Way, str]] = [
                ("temporal" if name == "day" else "single-hop", plain),
                ("other words", other),
            ]
            ways += [("by a code", coded)] if code and coded else []
            way, words = rng.choice(ways)
            draft.said.append(words.format(about=matter.about, code=code.value if code else ""))
            draft.reply.append(f"{matter.about}: {fact.value}.")
            draft.needs.append((way, (fact,)))
        self._end_turn(draft)

    def _together(self, customer: _Customer) -> None:
        priced = [matter for matter in customer.matters if "price" in matter.facts]
        if len(priced) > 1:
            one, other = self._rng.sample(priced, k=2)
            words = phrases.TOGETHER[customer.language].format(one=one.about, other=other.about)
            facts = (one.facts["price"], other.facts["price"])
            reply = f"{facts[0].value} + {facts[1].value}."
            self._end_turn(_Draft(said=[words], reply=[reply], needs=[("multi-hop", facts)], name=customer.name))

    def _change(self, customer: _Customer) -> None:
        """A value takes the place of another."""
        rng, language = self._rng, customer.language
        chances = [(matter, name) for matter in customer.matters for name in matter.facts if name in phrases.CHANGED]
        if chances:
            matter, name = rng.choice(chances)
            old = matter.facts[name]
            value = {
                "day": lambda: self._values.day(language),
                "price": lambda: self._values.price(language),
                "version": self._values.version,
            }[name]()
            said = phrases.CHANGED[name][language].format(about=matter.about, value=value, former=old.value)
            new = self._fact(old.kind, language, old.subject, value, "user", statement=said, former=old.value)
            matter.facts[name] = new
            self._end_turn(
                _Draft(said=[said], plants=[new], reply=[phrases.REPLIES[language][0].format(about=matter.about)])
            )

    def _rule(self, customer: _Customer) -> None:
        language = customer.language
        topic = next(self._topics[language], None)
        if topic is not None:
            around, clause = self._rng.choice(phrases.RULES[language])
            clause = clause.format(topic=topic)
            rule = self._fact("rule", language, topic, clause, "user", statement=around.format(clause))
            customer.rules.append((rule, topic))
            said = [self._person(language), rule.statement]
            self._end_turn(_Draft(said=said, plants=[rule], reply=[self._chat(language)]))

    # -- what fills the time ----------------------------------------------------------------------

    def _goodbye(self, customer: _Customer) -> None:
        language = customer.language
        thanks, welcome = self._rng.choice(phrases.THANKS[language]), self._rng.choice(phrases.WELCOME[language])
        self._end_turn(_Draft(said=[thanks], reply=[welcome]))

    def _small_talk(self) -> None:
        language = self._rng.choice(("en", "zh", "ru"))
        for _ in range(self._rng.randrange(1, 4)):
            draft = _Draft(said=[self._person(language)], reply=[self._chat(language) for _ in range(self._rows)])
            if self._rng.random() < 0.4:
                shape = self._rng.choice((bulk.log, bulk.code, bulk.listing, bulk.rows))
                target = f"node-{self._rng.randrange(10**6)}"
                draft.steps.append([("inspect", {"host": target}, shape(self._rng, 5 * self._rows))])
            self._end_turn(draft)

    def _account(self, customer: _Customer, card: Fact) -> str:
        """A long record of which only the gift card is ever needed."""
        rng = self._rng
        first, _, last = customer.name.partition(" ")
        return _json(
            {
                "name": {"first_name": first, "last_name": last},
                "address": {
                    "address1": f"{rng.randrange(100, 999)} {rng.choice(phrases.CITIES)} Road",
                    "zip": f"{rng.randrange(10_000, 99_999)}",
                },
                "email": f"{first}.{last}{self._values.number(1_000)}@example.com".lower(),
                "payment_methods": [
                    {"source": "credit_card", "id": f"credit_card_{self._values.number(1_000_000)}"},
                    {"source": "gift_card", "id": card.value},
                    {"source": "certificate", "id": f"certificate_{self._values.number(1_000_000)}"},
                ],
                "past_orders": [self._values.order() for _ in range(rng.randrange(2, 2 + self._rows))],
            }
        )

    def _flight(self) -> dict[str, Any]:
        rng = self._rng
        return {
            "flight_number": f"HAT{rng.randrange(100, 999)}",
            "departure": f"{rng.randrange(5, 22):02}:{rng.randrange(0, 60, 5):02}",
            "seats": rng.randrange(1, 30),
            "status": "available",
        }

    @staticmethod
    def _offer(flights: Sequence[Mapping[str, Any]]) -> str:
        return "\n".join(f"- {flight['flight_number']} at {flight['departure']}" for flight in flights[:4])

    def _thing(self, language: str) -> str:
        return self._rng.choice(phrases.THINGS[language])

    def _person(self, language: str) -> str:
        return self._rng.choice(PERSON.get(language, PERSON["en"]))

    def _chat(self, language: str) -> str:
        return self._rng.choice(MODEL.get(language, MODEL["en"]))

    # -- making -----------------------------------------------------------------------------------

    def _told(self, matter: _Matter, name: str, value: str, speaker: Speaker, customer: _Customer) -> Fact:
        kinds: Mapping[str, Kind] = {
            "day": "day",
            "price": "price",
            "version": "code",
            "path": "path",
            "code": "letters",
        }
        said = phrases.TOLD[matter.kind, name][customer.language].format(about=matter.about, value=value)
        subject = f"{customer.name}, {matter.about}"
        made = self._fact(kinds[name], customer.language, subject, value, speaker, statement=said)
        matter.facts[name] = made
        return made

    def _fact(
        self,
        kind: Kind,
        language: str,
        subject: str,
        value: str,
        speaker: Speaker,
        *,
        statement: str = "",
        former: str = "",
    ) -> Fact:
        self._made += 1
        return Fact(
            number=self._made,
            kind=kind,
            language=language,
            subject=subject,
            value=value,
            statement=statement or f"{subject}: {value}",
            speaker=speaker,
            former=former,
        )

    def _end_turn(self, draft: _Draft) -> None:
        said = " ".join(filter(None, draft.said))
        messages = [user(said)]
        for step in draft.steps:
            calls = [self._call(tool, arguments) for tool, arguments, _ in step]
            messages.append(assistant(None, calls))
            messages += [tool_result(call["id"], result) for call, (_, _, result) in zip(calls, step, strict=True)]
        messages.append(assistant(" ".join(draft.reply)))
        number, started = len(self._turns), self._tokens
        noted_messages = tuple(self._noted(message, number, place) for place, message in enumerate(messages))
        self._turns.append(
            Turn(
                number=number,
                started=started,
                messages=noted_messages,
                plants=tuple(draft.plants),
                needs=tuple(Need(way=way, facts=facts, words=f"{draft.name}: {said}") for way, facts in draft.needs),
            )
        )

    def _noted(self, message: Message, turn: int, place: int) -> Message:
        """As the store keeps it."""
        tokens = self._counter.message(message)
        self._tokens += tokens
        return noted(
            message,
            id=f"{turn}.{place}",
            tokens=tokens,
            at=_START + turn * _TURN + place,
            identifiers=identifiers.found(message),
        )

    def _call(self, tool: str, arguments: Mapping[str, Any]) -> ToolCall:
        self._calls += 1
        text = json.dumps(arguments, ensure_ascii=False)
        return {"id": f"call_{self._calls}", "type": "function", "function": {"name": tool, "arguments": text}}

    def _shuffled(self, values: Sequence[str]) -> Iterator[str]:
        order = list(values)
        self._rng.shuffle(order)
        return iter(order)


class _Values:
    """Values of which no two are the same."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._used: set[str] = set()

    def booking(self) -> str:
        """Six letters, every second time with digits among them."""
        signs = _LETTERS if self._rng.random() < 0.5 else _LETTERS + "23456789"
        return self._unique(lambda: "".join(self._rng.choice(signs) for _ in range(6)))

    def short(self) -> str:
        """Return a value that means something only under its key."""
        return self._unique(lambda: f"{self._rng.choice(_LETTERS)}{self._rng.randrange(1, 400)}")

    def order(self) -> str:
        """As shops write them."""
        return self._unique(lambda: f"#W{self._rng.randrange(1_000_000, 9_999_999)}")

    def number(self, least: int) -> str:
        """From `least` to its tenfold."""
        return self._unique(lambda: str(self._rng.randrange(least, 10 * least)))

    def item(self) -> str:
        """Ten digits."""
        return self._unique(lambda: f"{self._rng.randrange(10**9, 10**10)}")

    def person(self, name: str) -> str:
        """A user's id."""
        return self._unique(lambda: f"{name.lower().replace(' ', '_')}_{self._rng.randrange(1_000, 9_999)}")

    def price(self, language: str) -> str:
        """An amount as it is written where somebody comes from."""
        form = {"en": "${}", "de": "{} €", "zh": "{}元"}[language]
        return self._unique(lambda: form.format(self._rng.randrange(1_001, 9_999)))

    def day(self, language: str) -> str:
        """A date as people say it, without a year unless all days of a year have been said."""
        form = {"en": "{0} {1}", "de": "{1}. {2}", "zh": "{3}月{1}日"}[language]

        def made() -> str:
            month, day = self._rng.randrange(12), self._rng.randrange(1, 29)
            return form.format(phrases.MONTHS[0][month], day, phrases.MONTHS[1][month], month + 1)

        if sum(value.startswith(language) for value in self._used) >= 300:
            year = {"en": ", {}", "de": " {}", "zh": " {}年"}[language]
            return self._unique(lambda: made() + year.format(self._rng.randrange(1_900, 2_100)))
        value = self._unique(made)
        self._used.add(f"{language} {value}")
        return value

    def version(self) -> str:
        """Three numbers."""
        return self._unique(lambda: ".".join(str(self._rng.randrange(1, most)) for most in (30, 60, 90)))

    def path(self, about: str) -> str:
        """A file of a program."""
        return self._unique(lambda: f"/etc/{about.lower()}/site-{self._rng.randrange(100, 9_999)}.conf")

    def _unique(self, make: Any) -> str:
        for _ in range(5_000):
            value: str = make()
            if value not in self._used:
                self._used.add(value)
                return value
        raise RuntimeError("this conversation needs more values than there are")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)
