"""Secrets, variables and overrides: what the environment adds to the configuration."""

import pytest
from redis.asyncio.connection import parse_url

from tests.support.installed import PLATFORMS


def test_a_secret_in_the_file_is_refused_without_being_repeated(problems):
    written = "x" * 8 + "123"
    found = problems(
        f"model: {{provider: openai, name: m, api_key: {written}}}\n"
        f"adapters:\n  telegram: {{token: '{written}'}}\n  irc: {{token: 12345678}}\n"
        f"store: {{url: 'redis://:{written}@host/0'}}\n"
        f"auxiliary: {{compression: {{api_key: 'Bearer ${{X}}{written}'}}}}\n"
    )
    assert [line.partition(" ")[0] for line in found] == [f"config.yaml:{n}:" for n in (1, 3, 4, 4, 5, 6)]
    assert found[0].endswith(
        'model.api_key must not be written into the file: put it into a variable and write "${OPENAI_API_KEY}"'
    )
    assert found[1].endswith('write "${TELEGRAM_BOT_TOKEN}"')
    assert found[3] == f"config.yaml:4: adapters.irc is not a known key; known here: {PLATFORMS}"
    assert "must not hold a password" in found[4]
    assert written not in "\n".join(found)
    assert "12345678" not in "\n".join(found)


def test_variables_are_read_and_typed(load):
    config = load(
        "model: {provider: openai, name: '${A}-${B}', base_url: 'http://${HOST}/v1', context_length: '${SIZE}'}\n"
        "prompt: {persona: 'Say $${A} and $A'}\n"
        "compression: {enabled: '${ON}'}\n",
        A="one",
        B="2",
        HOST="me:pass%20word@localhost",
        SIZE="32000",
        ON="false",
    )
    assert (config.model.name, config.model.context_length) == ("one-2", 32_000)
    assert config.prompt.persona == "Say ${A} and $A"
    assert config.compression.enabled is False
    assert config.secrets() == ("pass%20word", "pass word")


@pytest.mark.parametrize(
    ("url", "held", "read"),
    [
        ("redis://:${X}@host:1/0", "a/b#c?d[e]:f@100%", "a/b#c?d[e]:f@100%"),
        ("rediss://me:${X}@host/0", "a%2Fb", "a/b"),
        ("redis://${X}@host/0", "me:a/b", "a/b"),
        ("redis://:${X}@host/0", "a@b", "a@b"),
    ],
)
def test_a_password_of_an_address_comes_as_it_is(load, url, held, read):
    config = load(f"store: {{url: '{url}'}}", X=held)
    assert parse_url(config.store.url)["password"] == read
    assert read in config.secrets()


def test_an_address_that_its_password_breaks_off_says_how_to_write_it(problems):
    encoded = "must be redis://HOST:PORT/0, with the / # ? [ ] of a password as %2F %23 %3F %5B %5D"
    for password in ("pass/word", "pass#word", "pass?word", "pass[word"):
        assert problems("store: {url: '${URL}'}", URL=f"redis://:{password}@host:1/0") == [
            f"config.yaml:1: store.url {encoded}"
        ]


def test_a_variable_that_is_missing_is_named_where_it_is_needed(problems, load):
    key, unset = 'api_key: "${NO_KEY}"', "which is set neither in the environment nor in .env"
    assert problems(f"model: {{provider: openai, name: m, {key}}}") == [
        f"config.yaml:1: model.api_key needs the variable NO_KEY, {unset}"
    ]
    assert problems("prompt: {context_files: [a, '${NOPE}', '${NOPE2}']}") == [
        f"config.yaml:1: prompt.context_files[1] needs the variable NOPE, {unset}",
        f"config.yaml:1: prompt.context_files[2] needs the variable NOPE2, {unset}",
    ]
    assert problems("prompt: {persona: '${not a name}'}")[0].startswith(
        "config.yaml:1: prompt.persona holds ${not a name}, which is not the name of a variable"
    )
    unused = load(
        f"model: {{{key}}}\nauxiliary: {{compression: {{provider: openai, {key}}}}}\n"
        'adapters: {telegram: {token: "${T}"}}'
    )
    assert unused.secrets() == ()


def test_passwords_in_addresses_are_secrets_and_odd_texts_do_no_harm(load):
    config = load(
        "prompt: {persona: '${P}', context_files: ['${Q}']}", P="see http://[x:y@z and http://", Q="ftp://me:pw%20d@h"
    )
    assert config.secrets() == ("y", "pw%20d", "pw d")


def test_an_empty_secret_is_no_secret(problems):
    assert problems('model: {provider: openai, name: m, api_key: "${KEY}"}', KEY=" ") == [
        "config.yaml:1: model.api_key must not be empty"
    ]


def test_overrides_from_the_environment(load):
    config = load(
        "compression: {threshold: 0.4}\nmodel: {provider: offline}\n",
        LEGATO__COMPRESSION__THRESHOLD="0.6",
        LEGATO__COMPRESSION__ENABLED="false",
        LEGATO__MODEL__PROVIDER="openai",
        LEGATO__MODEL__NAME="123",
        LEGATO__MODEL__API_KEY="key: with ${odd} text",
        LEGATO__ACCESS__ALLOW="telegram:16, telegram:17",
        LEGATO__ACCESS__ADMINS="[telegram:1, telegram:2]",
        LEGATO__SESSIONS__EXPIRY__DAILY_AT="14:00",
        LEGATO__STORE__URL="sqlite:///other.db",
        LEGATO__PROMPT__PERSONA="null",
    )
    assert (config.compression.threshold, config.compression.enabled) == (0.6, False)
    assert (config.model.name, config.model.api_key.get_secret_value()) == ("123", "key: with ${odd} text")
    assert (config.access.allow, config.access.admins) == (("telegram:16", "telegram:17"), ("telegram:1", "telegram:2"))
    assert config.sessions.expiry.daily_at == "14:00"
    assert config.prompt.persona is None


def test_bad_overrides_are_named(problems):
    assert problems(
        "log: {level: info}\nturns: 3\n",
        LEGATO__COMPRESSION__TRESHOLD="0.6",
        LEGATO__COMPRESION__THRESHOLD="0.6",
        LEGATO__LOG="debug",
        LEGATO__LOG__LEVEL="loud",
        LEGATO__HYGIENE__TIMEOUT="soon",
        LEGATO__TURNS__LANE_CAP="3",
        LEGATO__MODEL__API_KEY="",
    )[0:1] == ["config.yaml:2: turns must hold keys of its own, indented below it, not 3"]
    found = problems(
        "",
        LEGATO__COMPRESSION__TRESHOLD="0.6",
        LEGATO__COMPRESION__THRESHOLD="0.6",
        LEGATO__LOG="debug",
        LEGATO__HYGIENE__TIMEOUT="soon",
        LEGATO__MODEL__API_KEY="",
    )
    assert sorted(found) == [
        "LEGATO__COMPRESION__THRESHOLD: compresion is not a known key; did you mean compression?",
        "LEGATO__COMPRESSION__TRESHOLD: compression.treshold is not a known key; did you mean threshold?",
        "LEGATO__HYGIENE__TIMEOUT: hygiene.timeout must be a number, not 'soon'",
        "LEGATO__LOG: log is a section: name one of its keys, as LEGATO__LOG__KEY",
        "LEGATO__MODEL__API_KEY: model.api_key must not be empty",
    ]


def test_no_sentence_repeats_what_may_be_a_secret(problems):
    key, password = "sk-" + "ant-" + "a1B2c3D4" * 4, "hunter2" + "hunter"
    found = problems(
        f"hygiene: {{timeout: {password}}}\nsessions: {{busy_mode: {key}, expiry: {{timezone: {key}}}}}\n"
        "turns: {lane_cap: '${WORD}'}\nmodel: {provider: '${WORD}'}\naccess: {allow: ['${WORD}']}",
        WORD="swordfish",
        LEGATO__COMPRESSION__ENABLED=password,
    )
    assert len(found) == 7
    assert not [line for line in found if password in line or key in line or "swordfish" in line]


@pytest.mark.parametrize(
    "text",
    [
        "model: {{api_key: *{}}}",
        "model: {{api_key: !{} x}}",
        'model: {{api_key: "{}',
        "model:\n  api_key: {}: x",
        "model: {{api_key: {{{}: 1}}}}",
        "model: {{base_url: 'http://u:{}@h:1x/'}}",
        "adapters: {{telegram: {{token: [{}}}}}",
        "adapters: {{telegram: {{webhook: {{secret: '${{A}}{}'}}}}}}",
        "access: {{allow: ['{}']}}",
        "access: {{admins: ['1234567890:{}']}}",
        "store: {{url: '{}'}}",
        "tools: {{shell: {{allow: '{}'}}}}",
    ],
)
def test_wherever_a_secret_stands_by_mistake_no_sentence_repeats_it(problems, text):
    secret = "Aa1" + "bC-9dEf7GhI2jKl4" * 2
    found = problems(text.format(secret))
    assert found
    assert secret not in "\n".join(found)
