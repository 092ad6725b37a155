"""`chats`: what holds in single places, and every mistake in it with its line."""

import pytest

from gateway.app.config.models import Chat


def test_chats_are_read_by_place(load):
    config = load(
        "model: {provider: openai, name: big, base_url: 'http://127.0.0.1:1/v1'}\n"
        "chats:\n"
        "  telegram:-100123: {persona: You are a pirate., model: small, tools: [clock]}\n"
        "  telegram:-100123/7: {model: {provider: anthropic, name: c, api_key: '${KEY}'}, listen: free}\n"
        "  telegram:*: {daily_usd: 2}\n"
        "  discord:guild-9:\n"
        "    groups: shared\n",
        KEY="sk-1",
    )
    assert config.chats["telegram:-100123"] == Chat(persona="You are a pirate.", model="small", tools=("clock",))
    models = config.chat_models()
    assert (models["telegram:-100123"].name, models["telegram:-100123"].provider) == ("small", "openai")
    assert models["telegram:-100123/7"].provider == "anthropic"
    assert config.by_place("daily_usd") == {"telegram:*": 2}
    assert "sk-1" in config.secrets()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("chats: {telegram:-1: {person: x}}", ":1: chats.telegram:-1.person is not a known key; did you mean persona?"),
        ("chats: {telegram: {persona: x}}", ":1: chats.telegram must name a platform and a chat, as in "),
        ("chats: {telegrm:-1: {persona: x}}", ":1: chats.telegrm:-1 names the platform 'telegrm', which is not "),
        ("chats: {telegram:ann: {persona: x}}", ":1: chats.telegram:ann must give a chat's number, as in"),
        ("chats: {discord:1/2: {persona: x}}", ":1: chats.discord:1/2 must give a channel's number"),
        (
            "chats:\n  telegram:-1:\n    listen: fre",
            ":3: chats.telegram:-1.listen must be mention, free, thread or off, not 'fre'; did you mean free?",
        ),
        (
            "chats:\n  telegram:-1:\n    listen: thread",
            ":3: chats.telegram:-1.listen must be mention, free or off, not 'thread'; that is what Telegram knows",
        ),
        ("chats: {console:*: {listen: free}}", ":1: chats.console:*.listen says nothing here: there are no groups"),
        ("chats: {telegram:-1: {daily_usd: -1}}", ":1: chats.telegram:-1.daily_usd must be greater than 0"),
        ("chats: {telegram:-1: pirate}", ":1: chats.telegram:-1 must hold keys of its own"),
        ("chats: {telegram:-1: {model: {name: x}}}", ":1: chats.telegram:-1.model must name the provider"),
        ("chats: {telegram:-1: {model: {provider: opnai}}}", "; did you mean openai?"),
        ("chats: {telegram:-1: {model: {provider: anthropic, name: c, api_key: sk}}}", "must not be written into"),
        ("chats: {telegram:-1: {tools: clock}}", ":1: chats.telegram:-1.tools must be a list"),
    ],
)
def test_a_mistake_is_told_with_its_line(problems, text, problem):
    (found,) = problems(text)
    assert problem in found


def test_a_section_that_is_left_empty_says_nothing(load):
    assert load("chats:\n  telegram:-1:\n").chats in ({}, {"telegram:-1": Chat()})
    assert load("chats:\n").chats == {}
