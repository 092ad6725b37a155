"""The texts of events, and who signed them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from adapters.api.hooks import findings
from adapters.api.platform import HookSettings
from adapters.api.signing import Unsigned, check, data_in, names_of
from adapters.api.templates import MOST, filled
from tests.support.hooks import SECRET, signed

NOW = 1_700_000_000.0
DATA = {"a": {"b": ["x", {"c": 5}]}, "yes": True, "text": "hello", "long": "y" * 3_000, "{{ text }}": "z"}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ text }}, {{a.b.0}}!", "hello, x!"),
        ("{{ a.b.1.c }} {{ yes }} {{ a.b.1 }}", '5 true {"c": 5}'),
        ("{{ a.c }} {{ a.b.2 }} {{ a.b.x }} {{ text.upper }}", "[no a.c] [no a.b.2] [no a.b.x] [no text.upper]"),
        ("{{ a.__class__ }} {{ a.b.-1 }} {{ 7*7 }} {{ a.b.٠ }}", "[no a.__class__] [no a.b.-1] [no 7*7] [no a.b.٠]"),
        ("{{ }} { text } {{ {{ text }} }}", "{{ }} { text } {{ hello }}"),
        (None, "hello"),
        ("   ", "(the event is empty)"),
    ],
)
def test_values_stand_in_a_template_and_nothing_is_run(template: str | None, text: str) -> None:
    assert filled(template, DATA) == text


def test_a_value_is_not_read_as_a_template_and_nothing_grows_beyond_a_message() -> None:
    assert filled("{{ text }}", {"text": "{{ secret }}", "secret": "s"}) == "{{ secret }}"
    assert len(filled("{{ long }}", DATA)) == 2_000
    assert len(filled("{{ long }}" * 50, DATA)) == MOST
    assert len(filled(None, {"text": "x" * 100_000})) == MOST
    assert filled(None, {"b": "ä"}) == '{\n  "b": "ä"\n}'


@pytest.mark.parametrize(
    ("body", "data"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b"payload=%7B%22a%22%3A+1%7D", {"a": 1}),
        ("the backup is done \N{CHECK MARK}".encode(), {"text": "the backup is done \N{CHECK MARK}"}),
        (b"", {"text": ""}),
        (b"\xff\xfe", None),
        (b"[" * 100_000, None),
        (b"payload={", None),
    ],
)
def test_a_body_is_json_a_form_of_githubs_or_a_text(body: bytes, data: Any) -> None:
    if data is None:
        with pytest.raises(ValueError, match=r"."):
            data_in(body)
    else:
        assert data_in(body) == data


@pytest.mark.parametrize("kind", ["bearer", "hmac", "github", "stripe", "slack"])
def test_each_kind_of_sender_proves_that_it_knows_the_secret(kind: Any) -> None:
    body = b'{"id": "evt"}'
    right = signed(kind, body, at=NOW)
    check(kind, SECRET, right.get, body, NOW)
    for header, value in right.items():
        for wrong in (None, "", "é", value[1:-10], f"0{value}", value.replace("a", "b").replace("1", "2")):
            given = {**right, header: wrong}
            if header != "X-GitHub-Event":
                with pytest.raises(Unsigned):
                    check(kind, SECRET, given.get, body, NOW)
    with pytest.raises(Unsigned):
        check(kind, "another-secret", right.get, body, NOW)
    if kind != "bearer":
        with pytest.raises(Unsigned):
            check(kind, SECRET, right.get, body + b" ", NOW)
    if kind in ("stripe", "slack"):
        for late in (-301, 301):
            with pytest.raises(Unsigned, match="5 minutes"):
                check(kind, SECRET, right.get, body, NOW + late)


def test_stripe_may_sign_with_two_secrets_while_one_is_changed() -> None:
    body = b"{}"
    old, new = (signed("stripe", body, at=NOW, secret=each)["Stripe-Signature"] for each in ("old", SECRET))
    both = f"{old},{new.split(',')[1]}"
    check("stripe", SECRET, {"Stripe-Signature": both}.get, body, NOW)
    twice = f"t={NOW:.0f},{signed('stripe', body, at=NOW)['Stripe-Signature']}"
    with pytest.raises(Unsigned):
        check("stripe", SECRET, {"Stripe-Signature": twice}.get, body, NOW)


def names(kind: Any, body: bytes, now: float = NOW, **headers: str) -> list[str]:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return names_of(kind, "h", given.get, body, data_in(body), now)


def test_a_delivery_is_known_by_what_its_sender_signs_else_by_its_body() -> None:
    first, again = b'{"id": "e1", "event_id": "e2", "a": 1}', b'{"id": "e1", "event_id": "e2", "a": 2}'
    for kind in ("stripe", "slack"):
        assert names(kind, first) == names(kind, again)
    assert names("github", first, X_GitHub_Delivery="1") == names("github", first, X_GitHub_Delivery="2")
    assert names("github", first) != names("github", again)
    assert names("bearer", first, Idempotency_Key="k") == names("bearer", again, Idempotency_Key="k")
    assert names("bearer", first, Idempotency_Key="k") != names("bearer", first, Idempotency_Key="l")
    assert names("stripe", b"[]") == names("stripe", b"[]")
    now, later = names("bearer", first), names("bearer", first, NOW + 599)
    assert now[0] in later
    assert set(now).isdisjoint(names("bearer", first, NOW + 1_200))
    assert names_of("bearer", "other", {}.get, first, {}, NOW) != now


def test_a_secret_of_fewer_than_twelve_characters_is_refused() -> None:
    assert HookSettings.model_validate({"secret": "x" * 12}).secret.get_secret_value() == "x" * 12
    with pytest.raises(ValidationError, match="must have 12 characters or more"):
        HookSettings.model_validate({"secret": "x" * 11})


@pytest.mark.parametrize(("served", "ok"), [(("telegram",), True), (("slack",), False)])
@pytest.mark.parametrize("do", ["show", "ask"])
def test_a_check_says_where_a_hook_leads_and_whether_anybody_is_there(
    served: tuple[str, ...], ok: bool, do: Any
) -> None:
    hook = HookSettings(secret=SECRET, chat="telegram:5", do=do)
    (found,) = findings({"house": hook}, "https://bot.example", served)
    verb = "shows it in" if do == "show" else "asks the agent in"
    begin = f"https://bot.example/hook/house, signed as {hook.signature}, {verb} telegram:5"
    assert found.detail.startswith(begin)
    assert ("telegram is not switched on here" in found.detail) is not ok
    assert found.ok is ok
