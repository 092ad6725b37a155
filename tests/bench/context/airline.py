"""A desk of an airline, as τ-bench has one: people give a user id, and the agent looks things up and changes them.

Results are JSON with many ids of the same forms. What a call's arguments need was shown before: by a person, in an
account, in a list of flights, in a booking. Some people come back long after, without saying their ids again. The
measures are those of `coding`.
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.domain.message import assistant, user
from gateway.runtime.tokens import TokenCounter
from tests.bench.context.coding import Run, Worker

_FIRST: Final = ("mia", "omar", "sofia", "liam", "aarav", "yusuf", "emma", "chen", "raj", "ivan", "noah", "lucas")
_LAST: Final = ("li", "rossi", "kim", "khan", "patel", "silva", "jackson", "nguyen", "garcia", "brown", "lopez", "ito")
_AIRPORTS: Final = ("JFK", "SEA", "DFW", "LAX", "ORD", "MCO", "IAH", "BOS", "DEN", "PHX", "CLT", "MIA", "SFO", "EWR")
TASKS: Final = 120  # in a conversation, for each 16,000 tokens of the window
_COMES_BACK: Final = 0.4
_CABINS: Final = ("basic_economy", "economy", "business")
_WORDS: Final = (
    "I want to change my flight, the meeting was moved by a day and I have to be there in the evening.",
    "I'd like to add a bag and move to a nonstop flight if that costs less than 200 dollars.",
    "My plans changed. What would it cost to upgrade everybody to business?",
    "I want to cancel because of a sick passenger, I have the insurance.",
)
_SMALL: Final = (
    "Yes, please go ahead.", "That works for me.", "Hmm, what about an earlier one?", "Okay, and what is the policy?",
)  # fmt: skip


@dataclass(slots=True)
class _Customer:
    name: str
    uid: str
    bookings: list[str]
    payments: list[str]
    flights: dict[str, str] = field(default_factory=dict)  # by booking


def run(seed: int, counter: TokenCounter, tasks: int) -> Run:
    """One day at the desk."""
    return _Desk(seed, counter).work(tasks)


class _Desk(Worker):
    """Serves one after the other."""

    def work(self, tasks: int) -> Run:
        """So many tasks, one behind the other."""
        known: list[_Customer] = []
        for _ in range(tasks):
            if len(known) > 4 and self._rng.random() < _COMES_BACK:
                self._again(self._rng.choice(known[:-2]))
            else:
                known.append(self._customer())
                self._new(known[-1])
        return Run(messages=self._messages, needs=self._needs)

    def _customer(self) -> _Customer:
        rng = self._rng
        name = f"{rng.choice(_FIRST)}_{rng.choice(_LAST)}"
        paid = [f"{kind}_{rng.randrange(10**6, 10**7)}" for kind in ("credit_card", "gift_card", "certificate")]
        bookings = [
            "".join(rng.choices(string.ascii_uppercase + string.digits, k=6)) for _ in range(rng.randrange(2, 6))
        ]
        return _Customer(name, f"{name}_{rng.randrange(1000, 9999)}", bookings, paid)

    def _new(self, customer: _Customer) -> None:
        rng = self._rng
        self._add(user(f"Hi! {rng.choice(_WORDS)}"))
        self._add(assistant("I can help with that. May I have your user id?"))
        self._add(user(f"Sure, it's {customer.uid}."))
        account = {
            "name": {"first_name": customer.name.split("_")[0], "last_name": customer.name.split("_")[1]},
            "address": {"city": "Denver", "zip": f"{rng.randrange(10000, 99999)}"},
            "email": f"{customer.name.replace('_', '.')}{rng.randrange(1000, 9999)}@example.com",
            "payment_methods": {each: {"id": each, "amount": rng.randrange(20, 400)} for each in customer.payments},
            "membership": rng.choice(("regular", "silver", "gold")),
            "reservations": customer.bookings,
        }
        self._look("get_user_details", {"user_id": customer.uid}, account, [("user", customer.uid)])
        self._serve(customer)

    def _again(self, customer: _Customer) -> None:
        who = customer.name.replace("_", " ").title()
        self._add(user(f"{who} again. {self._rng.choice(_WORDS)}"))
        self._look("get_user_details", {"user_id": customer.uid}, {"status": "active"}, [("user", customer.uid)])
        self._serve(customer)

    def _serve(self, customer: _Customer) -> None:
        rng = self._rng
        booking = rng.choice(customer.bookings)
        kind = "used booking" if booking in customer.flights else "listed booking"
        flight = customer.flights.setdefault(booking, self._flight())
        details = {
            "reservation_id": booking, "user_id": customer.uid, "cabin": rng.choice(("economy", "business")),
            "flights": [{"flight_number": flight, "price": rng.randrange(90, 400), "date": self._day()}],
            "passengers": [{"first_name": "Ann", "last_name": "Lee", "dob": f"19{rng.randrange(60, 99)}-01-12"}],
            "payment_history": [{"payment_id": customer.payments[0], "amount": rng.randrange(90, 900)}],
        }  # fmt: skip
        self._look("get_reservation_details", {"reservation_id": booking}, details, [(kind, booking)])
        self._say("I see your booking. Shall I look for other flights?")
        others = [self._flight() for _ in range(rng.randrange(4, 11))]
        listed = [self._offer(each) for each in others]
        way = {"origin": rng.choice(_AIRPORTS), "destination": rng.choice(_AIRPORTS), "date": self._day()}
        self._look("search_direct_flight", way, listed, [])
        chosen = rng.choice(others)
        self._say(f"{chosen} leaves at a good time. It would be charged to your usual card.")
        if rng.random() < 0.5:
            self._say("Changes are free within a day; later they cost 50 dollars a passenger.")
        arguments = {
            "reservation_id": booking,
            "flights": [{"flight_number": chosen}],
            "payment_id": customer.payments[0],
        }
        needed = [("booking", booking), ("flight", chosen), ("payment", customer.payments[0])]
        self._look("update_reservation_flights", arguments, {**details, "flights": [{"flight_number": chosen}]}, needed)
        customer.flights[booking] = chosen
        self._add(assistant("That is done. Is there anything else?"))

    def _look(self, tool: str, arguments: Mapping[str, Any], result: Any, needed: list[tuple[str, str]]) -> None:
        if needed:
            self._needs[len(self._messages)] = needed
        self._call("", tool, dict(arguments), json.dumps(result))

    def _say(self, text: str) -> None:
        self._add(assistant(text))
        self._add(user(self._rng.choice(_SMALL)))

    def _flight(self) -> str:
        return f"HAT{self._rng.randrange(300):03}"

    def _day(self) -> str:
        return f"2024-05-{self._rng.randrange(10, 31)}"

    def _offer(self, flight: str) -> dict[str, Any]:
        rng = self._rng
        return {
            "flight_number": flight, "origin": rng.choice(_AIRPORTS), "destination": rng.choice(_AIRPORTS),
            "scheduled_departure_time_est": f"{rng.randrange(24):02}:00:00", "status": "available",
            "scheduled_arrival_time_est": f"{rng.randrange(24):02}:30:00",
            "available_seats": {cabin: rng.randrange(20) for cabin in _CABINS},
            "prices": {cabin: rng.randrange(50, 499) for cabin in _CABINS},
        }  # fmt: skip
