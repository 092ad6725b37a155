"""The configuration: defaults without a file, and every mistake told at once, with its line."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gateway.app.config import Config, load_config
from gateway.app.config.shape import Shape
from gateway.app.config.source import Tree, dotted
from gateway.app.plugins import platforms, providers
from gateway.cli.reference import as_yaml
from gateway.domain.platform import Platform
from gateway.providers.plugin import ModelSettings as Model
from gateway.runtime.errors import ConfigError
from tests.docs.settings import as_markdown
from tests.support.installed import PLATFORMS

ROOT = Path(__file__).parents[3]


def test_without_a_file_everything_has_its_default():
    config = load_config(None, {"HOME": "/", "LEGATO_HOME": "x"})
    assert config == Config()
    assert config.model.provider == "offline"
    assert (config.compression.threshold, config.hygiene.threshold) == (0.50, 0.85)
    assert config.store.sqlite_path == Path("legato.db")
    assert config.secrets() == ()


def test_the_file_at_the_root_holds_exactly_the_defaults():
    of_platforms = {each.name: each.settings() for each in platforms().values() if each.settings}
    assert load_config(ROOT / "config.yaml", {}) == Config(adapters=of_platforms)


def test_the_file_at_the_root_is_what_the_program_prints():
    """`legato config > config.yaml` renews it after a change of a setting."""
    assert (ROOT / "config.yaml").read_text() == as_yaml()


def test_examples_in_it_stand_as_they_are_written() -> None:
    """A docstring whose lines below the first are all indented loses that, and its example is told as prose."""
    assert re.findall(r"^ *# [a-z_]+:(?: .*[^.]$|$)", as_yaml(), re.MULTILINE) == []


def test_the_reference_tells_of_every_key():
    """Platforms' keys, too, and those that a model has whatever its provider."""
    shape, told = Shape(Tree(name=""), platforms(), providers()), as_markdown()
    for path in shape.paths():
        if path[:2] != ("auxiliary", "compression"):
            assert f"`{path[-1]}`" in told or f"`{dotted(path)}`" in told, path
    assert "| `protect_last_n` | `20` | messages at the end that stay while" in told
    assert "| `mode` | `polling` | polling or webhook: Legato asks Telegram, or Telegram calls Legato |" in told
    assert "| `allow` | `[]` | people who may talk |" in told
    assert "|  |" not in told, "a key without a meaning"


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "---\n", "model:\n", "model:\nsessions:\n  expiry:\n", "\ufeffmodel:\n"]
)
def test_what_is_left_empty_has_its_default(load, text):
    assert load(text) == Config()


def test_values_and_their_types(load):
    config = load(
        'model: {provider: openai, name: some-model, api_key: "${KEY}", context_length: 200000,'
        " prices: {input: 1, output: 2.5}}\n"
        "access: {allow: ['telegram:12345', 'telegram:7@*'], admins: ['telegram:*@-100']}\n"
        'sessions: {expiry: {mode: both, daily_at: "23:59", timezone: Europe/Berlin}}\n'
        "store: {url: sqlite:////var/lib/legato.db}\n"
        "hygiene: {timeout: 5}\n",
        KEY="s3cret-value",
    )
    assert config.model.api_key.get_secret_value() == "s3cret-value"
    assert "s3cret-value" not in repr(config)
    assert config.secrets() == ("s3cret-value",)
    assert config.model.prices.output == 2.5
    assert config.access.allow == ("telegram:12345", "telegram:7@*")
    assert config.store.sqlite_path == Path("/var/lib/legato.db")
    assert config.sessions.expiry.mode == "both"


def test_a_configuration_does_not_change():
    with pytest.raises(ValidationError):
        Config().compression.threshold = 0.7


def test_all_problems_are_told_at_once_with_line_and_nearest_name(problems):
    assert problems(
        "compression:\n"
        "  treshold: 0.4\n"
        "  enabled: maybe\n"
        "  target_ratio: 0.9\n"
        "busy_mode: queue\n"
        "turns: {max_steps: 0, deadline: .inf}\n"
        "sessions:\n"
        "  busy_mode: stear\n"
        "  expiry: {daily_at: 14:00, timezone: Mars/X}\n"
        "hygiene: {min_messages: 9, max_messages: 3}\n"
        "access: {allow: ['public:anna', true]}\n"
        "log: [debug]\n"
    ) == [
        "config.yaml:2: compression.treshold is not a known key; did you mean threshold?",
        "config.yaml:3: compression.enabled must be true or false, not 'maybe'",
        "config.yaml:4: compression.target_ratio must be at most 0.8, not 0.9",
        "config.yaml:5: busy_mode is not a known key; did you mean sessions.busy_mode?",
        "config.yaml:6: turns.deadline must be a finite number, not inf",
        "config.yaml:6: turns.max_steps must be at least 1, not 0",
        "config.yaml:8: sessions.busy_mode must be queue, collect, steer or interrupt, not 'stear'; "
        "did you mean steer?",
        'config.yaml:9: sessions.expiry.daily_at must be written in quotes, as "14:00": without them YAML reads 840',
        "config.yaml:9: sessions.expiry.timezone must be the name of a time zone such as Europe/Berlin, not 'Mars/X'",
        "config.yaml:10: hygiene.max_messages (3) must be above hygiene.min_messages (9)",
        'config.yaml:11: access.allow[1] must be written in quotes, as "true": without them YAML reads true',
        "config.yaml:12: log must hold keys of its own, indented below it, not a list",
    ]


QUOTES = 'must be written in quotes, as "{}": without them YAML reads {}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("adapters: {discord: {listen: off}}", ":1: adapters.discord.listen " + QUOTES.format("off", "false")),
        (
            "adapters: {discord: {listen: No}}",
            ":1: adapters.discord.listen must be mention, free, thread or off, not 'No'",
        ),
        ("log: {format: 2024-01-02}", ":1: log.format must be console or json, not '2024-01-02'"),
        ("context: {engine: on}", ":1: context.engine " + QUOTES.format("on", "true")),
        ("context: {engine: Yes}", ":1: context.engine " + QUOTES.format("Yes", "true")),
        ("context: {engine: 0x1f}", ":1: context.engine " + QUOTES.format("0x1f", "31")),
        ("context: {engine: null}", ":1: context.engine is empty: leave the key out, or write null in quotes"),
        ("context: {engine: ~}", ":1: context.engine is empty: leave the key out, or write ~ in quotes"),
        ("context: {engine:}", ":1: context.engine must be text, not empty"),
        ("context: {engine: 5}", ":1: context.engine must be text, not 5"),
        (
            "chats: {'telegram:-5': {persona: 2024-01-02}}",
            ":1: chats.telegram:-5.persona " + QUOTES.format("2024-01-02", "a date"),
        ),
        ("tools: {admins_only: [shell, 010]}", ":1: tools.admins_only[1] " + QUOTES.format("010", "8")),
        ("tools: {mcp: {x: {command: x, args: [1_000]}}}", ":1: tools.mcp.x.args[0] " + QUOTES.format("1_000", "1000")),
        ("backup: {at: 3:30}", ":1: backup.at " + QUOTES.format("3:30", "210")),
        ("fallback_models: [off]", ":1: fallback_models[0] " + QUOTES.format("off", "false")),
        ("turns: {lane_cap: 010}", ":1: turns.lane_cap must have neither a zero in front nor a colon: YAML reads 8"),
        ("turns: {deadline: 5:00}", ":1: turns.deadline must have neither a zero in front nor a colon: YAML reads 300"),
    ],
)
def test_a_word_that_yaml_takes_for_something_else(problems, text, problem):
    assert problem in "\n".join(problems(text))


@pytest.mark.parametrize(
    "text",
    [
        "sessions: {expiry: {daily_at: 04:00, timezone: null, notify: off}}",
        "turns: {lane_cap: 1_000, deadline: 900.5}",
        "adapters: {discord: {listen: 'off', enabled: no}}", "search: {embeddings: ~}",
        "chats: {'telegram:-5': {listen: ~}}",
    ],
)  # fmt: skip
def test_a_word_of_yaml_where_it_is_meant(load, text):
    load(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("compression: {threshold: 0.9}", ":1: hygiene.threshold (0.85) must be above compression.threshold (0.9)"),
        ("hygiene:\n  threshold: 0.5", ":2: hygiene.threshold (0.5) must be above compression.threshold (0.5)"),
        ("compression: {threshold: 0}", ":1: compression.threshold must be greater than 0, not 0"),
        ("compression: {threshold: 1}", ":1: compression.threshold must be less than 1, not 1"),
        ("compression: {threshold: true}", ":1: compression.threshold must be auto, not 'true'"),
        ("compression: {protect_first_n: -1}", ":1: compression.protect_first_n must be at least 0, not -1"),
        ("compression: {enabled: 1}", ":1: compression.enabled must be true or false, not 1"),
        ("tools: {shell: {enabled: maybe}}", ":1: tools.shell.enabled must be true or false, or auto, not 'maybe'"),
        ("adapters: {discord: {shards: many}}", ":1: adapters.discord.shards must be a whole number, or auto"),
        ("adapters: {discord: {shards: 0}}", ":1: adapters.discord.shards must be at least 1, not 0"),
        ("turns: {lane_cap: '100'}", ":1: turns.lane_cap must be a whole number, not '100'"),
        ("turns: {lane_cap: null}", ":1: turns.lane_cap must be a whole number, not empty"),
        (
            "tools: {approval_deadline: 1800}",
            ":1: tools.approval_deadline (1800) must be below turns.deadline (1800), which ends a turn that waits",
        ),
        ("tools: {shell: {allow: [ls, 'a; b']}}", ":1: tools.shell.allow[1] must be the first words of a command"),
        ("tools: {shell: {allow: ['']}}", ":1: tools.shell.allow[0] must be the first words of a command"),
        ("tools: {shell: {allow: ['ls ']}}", ":1: tools.shell.allow[0] must be the first words of a command"),
        (
            "sessions: {expiry: {daily_at: '24:00'}}",
            """:1: sessions.expiry.daily_at must be a time of day from "00:00" to""",
        ),
        ("store: {url: legato.db}", ":1: store.url must be sqlite:///FILE"),
        ("store: {url: 'sqlite://legato.db'}", ":1: store.url must be sqlite:///FILE"),
        ("store: {url: 'sqlite:///:memory:'}", ":1: store.url must name a file"),
        ("store: {url: 'redis://'}", ":1: store.url must be redis://HOST:PORT/0"),
        ("store: {url: 'redis://host:99999/0'}", ":1: store.url must be redis://HOST:PORT/0"),
        ("model: {provider: openai, base_url: 'http://h'}", ":1: model.name is needed: which model of openai"),
        ("model: {provider: openai, name: x}", ":1: model.api_key is needed by openai"),
        ("model: {base_url: localhost}", ":1: model.base_url must be an address that begins with http://"),
        ("model: {base_url: 'http://localhost:0'}", ":1: model.base_url must be an address that begins with http://"),
        ("model: {base_url: 'http://[::1'}", ":1: model.base_url must be an address that begins with http://"),
        (
            "model: {context_length: 10, max_output_tokens: 10}",
            ":1: model.max_output_tokens (10) must be below context_length",
        ),
        ("model: {prices: {input: 1}}", ":1: model.prices.output is missing"),
        ("model: {name: ''}", ":1: model.name must not be empty"),
        ("auxiliary: {mode: custom}", ":1: auxiliary.mode is custom, but no model is given"),
        (
            "auxiliary: {mode: custom, compression: {provider: openai, base_url: 'http://h'}}",
            ":1: auxiliary.compression.name is needed",
        ),
        ("adapters: {irc: {}}", f":1: adapters.irc is not a known key; known here: {PLATFORMS}"),
        ("adapters: {telgram: {}}", ":1: adapters.telgram is not a known key; did you mean telegram?"),
        ("adapters: [telegram]", ":1: adapters must hold keys of its own, indented below it, not a list"),
        (
            "model: {provider: opnai, name: x}",
            ":1: model.provider has no such name: 'opnai'; did you mean",
        ),
        ("model: {provider: 5}", ":1: model.provider must be text, not 5"),
        (
            "auxiliary: {compression: {provider: mine}}",
            ":1: auxiliary.compression.provider has no such name",
        ),
        ("budgets: {daily_usd: 0}", ":1: budgets.daily_usd must be greater than 0, not 0"),
        ("budgets: {per_session_usd: '5'}", ":1: budgets.per_session_usd must be a number, not '5'"),
        (
            "budgets: {daily_usd: 1, per_user_daily_usd: 2}",
            ":1: budgets.per_user_daily_usd (2) must not exceed budgets.daily_usd (1), which all share",
        ),
        ("1: 2", ":1: 1 is not a known key"),
        ("? [a, b]\n: c", ":1: ? a key must be a single word"),
        ("model: {}\nlog: {}\nmodel: {}", ":1: model is given twice, here and in line 3"),
        ("log: {level: debug, level: info}", ":1: log.level is given twice, here and in line 1"),
        ("log: {level: !!int x}", ":1: log.level is a value YAML cannot read"),
        ("log: {level: !strange x}", ":1: log.level is a value YAML cannot read"),
        ("prompt: {persona: 2024-13-45}", ":1: prompt.persona is a value YAML cannot read"),
    ],
)
def test_one_problem(problems, text, problem):
    (found,) = problems(text)
    assert found.startswith("config.yaml" + problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n- b", "config.yaml: the file must hold sections such as `model:` at its top level"),
        ("just words", "config.yaml: the file must hold sections"),
        ("model: {}\nlog: [", "config.yaml:2: the file is not valid YAML: "),
        ("model: {}\n\tlog: {}", "config.yaml:2: the file is not valid YAML: "),
        ("model: *nowhere", "config.yaml:1: the file is not valid YAML: "),
        ("a: 1\n---\nb: 2", "config.yaml:2: the file is not valid YAML: "),
        ("a: 1\nb: \x00", "config.yaml:2: the file holds a character that YAML forbids (U+0000)"),
        (b"a: \xff", "config.yaml: the file is not UTF-8 text (byte 3)"),
        ("[" * 5_000, "config.yaml: the file is nested too deeply"),
        ("#" * (1024 * 1024 + 1), "config.yaml: the file is larger than 1 MB"),
    ],
)
def test_a_file_that_cannot_be_read_as_yaml(problems, text, problem):
    (found,) = problems(text)
    assert found.startswith(problem)


def test_a_file_that_is_not_there_or_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path, words in [
        (Path("gone.yaml"), "gone.yaml: there is no such file"),
        (Path("."), "the file cannot be read: "),
    ]:
        with pytest.raises(ConfigError, match=words):
            load_config(path, {})


def test_an_alias_of_itself_is_refused(problems):
    assert any("is nested too deeply" in line for line in problems("prompt: &a {persona: *a}"))


def test_aliases_that_multiply_are_refused(problems):
    lines = ["tools:", "  any:", "    a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"    a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert any("repeats itself without end" in line for line in problems("\n".join(lines)))


def test_spend_caps_are_taken_as_they_are_given(load):
    assert load("budgets: {daily_usd: 5, per_user_daily_usd: 0.5}").budgets.model_dump() == {
        "per_session_usd": None,
        "per_user_daily_usd": 0.5,
        "daily_usd": 5,
        "when_reached": "stop",
        "footer": False,
    }


def test_a_cap_gives_way_to_fallback_models_only_where_there_are_any(problems):
    (found,) = problems("budgets: {daily_usd: 5, when_reached: fallback}")
    assert found == "config.yaml:1: budgets.when_reached is fallback, but fallback_models names none"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("12345", "must name a platform and a person, as in \"discord:12345678\", not '12345'"),
        (
            "telegram:@anna",
            "must give a number, as in \"telegram:12345678\", not 'telegram:@anna'; `legato access list` has",
        ),
        ("telegram:7@trip", "must give a number, as in"),
        (
            "telegram:-100",
            'names a group instead of a person; "telegram:*@-100" names everybody in the group',
        ),
    ],
)
def test_who_is_named_so_that_nobody_would_ever_be_meant_is_told(problems, entry, said):
    (found,) = problems(f"access: {{admins: ['{entry}']}}")
    assert found.startswith(f"config.yaml:1: access.admins[0] {said}")


@pytest.mark.parametrize("key", ["allow", "admins"])
def test_a_platform_that_is_not_installed_is_told_with_the_nearest_name(problems, monkeypatch, key):
    line = Platform(name="line", title="LINE", create="toys:line")
    monkeypatch.setattr("gateway.app.config.loading.platforms", lambda: {**platforms(), "line": line})
    assert problems(f"access:\n  {key}: ['lien:anna']") == [
        f"config.yaml:2: access.{key}[0] names the platform 'lien', which is not installed; did you mean line?"
    ]


@pytest.mark.parametrize("above", ["model: ", "auxiliary: {mode: custom, compression: "])
def test_of_a_model_whose_provider_does_not_exist_nothing_else_is_told(problems, above):
    (found,) = problems(f"{above}{{provider: opnai, name: x, effort: high}}" + "}" * above.count("{"))
    assert "provider has no such name: 'opnai'; did you mean openai?" in found


def test_a_platform_without_its_token_says_how_to_give_one(problems):
    assert problems("adapters: {telegram: {enabled: true}}") == [
        'config.yaml:1: adapters.telegram.token is needed: write "${TELEGRAM_BOT_TOKEN}" and set that variable, or '
        "set enabled to false"
    ]


@pytest.mark.parametrize(
    "key", ["discord.token", "matrix.token", "slack.app_token", "telegram.token", "whatsapp.token"]
)
def test_a_token_that_was_copied_with_more_than_itself_is_told(problems, load, key):
    platform, _, name = key.partition(".")
    text = f'adapters: {{{platform}: {{{name}: "${{K}}"}}}}'
    (found,) = problems(text, K="abc\u200bdef")
    assert found == f"config.yaml:1: adapters.{key} has characters that a token never has: copy it again"
    load(text, K="abcdef\n")


@pytest.mark.parametrize("platform", ["discord", "slack", "whatsapp"])
def test_what_is_no_proxy_of_a_platform_is_refused(problems, platform):
    (found,) = problems(f"adapters: {{{platform}: {{proxy: '127.0.0.1:80'}}}}")
    assert "proxy must be an address that begins with http://" in found


# A webhook

HOOK = 'adapters: {telegram: {enabled: true, token: "${K}", mode: webhook, webhook: {%s}}}'


@pytest.mark.parametrize("url", ["https://a.example/hook", "https://a.example:8443/hook", "https://a.example:80/"])
def test_an_address_that_telegram_calls_is_taken(load, url):
    assert load(HOOK % f'url: "{url}"', K="k").adapters["telegram"].webhook.url == url


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "webhook.url is needed with mode: webhook"),
        ('url: "http://a.example/hook"', "must begin with https:// and use port 443, 80, 88 or 8443"),
        ('url: "https://a.example:8444/hook"', "must begin with https:// and use port 443, 80, 88 or 8443"),
        ('url: "https://a.example/", path: hook', "webhook.path must begin with /"),
        ('url: "https://a.example/", secret: "${S}"', "webhook.secret must be 16 to 256 of the characters"),
        ('url: "https://a.example/", port: 0', "webhook.port must be at least 1"),
    ],
)
def test_a_webhook_that_telegram_would_not_call_is_refused(problems, given, said):
    (found,) = problems(HOOK % given, K="k", S="with spaces in between")
    assert said in found
    assert "in between" not in found


@pytest.mark.parametrize("proxy", ["http://p:3128", "https://p", "socks5://p:1080", "socks5h://p:1080"])
def test_a_proxy_to_telegram_is_taken(load, proxy):
    assert load(f'adapters: {{telegram: {{proxy: "{proxy}"}}}}').adapters["telegram"].proxy == proxy


@pytest.mark.parametrize("proxy", ["p:3128", "socks4://p", "http://", "http:// p"])
def test_what_is_no_proxy_is_refused(problems, proxy):
    (found,) = problems(f'adapters: {{telegram: {{proxy: "{proxy}"}}}}')
    assert "adapters.telegram.proxy must be an address" in found


def test_a_server_of_ones_own_calls_any_address(load):
    text = 'adapters: {telegram: {enabled: true, token: "${K}", mode: webhook, base_url: "http://127.0.0.1:1/bot",'
    assert load(text + ' webhook: {url: "http://127.0.0.1:2/"}}}', K="k").adapters["telegram"].mode == "webhook"


def test_the_secret_of_a_webhook_is_a_secret(load):
    secret = "this-is-a-long-secret"
    assert secret in load(HOOK % 'url: "https://a.example/", secret: "${S}"', K="k", S=secret).secrets()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("auxiliary: {speech: null}", "auxiliary.speech"),
        ("adapters: {pigeon: {enabled: false}}", "adapters.pigeon"),
    ],
)
def test_a_setting_of_what_does_not_exist_is_an_unknown_key(problems, text, key):
    (found,) = problems(text)
    assert found.startswith(f"config.yaml:1: {key} is not a known key")


def test_further_headers_and_keys_of_a_request(load):
    config = load(
        f"{OPENAI[:-2]}, headers: {{Api-Key: '${{H}}', X-Title: t}}, extra_body: {{top_k: 3, a: {{b: [1]}}}}}}",
        K="k",
        H="h",
    )
    assert config.model.headers == {"Api-Key": "h", "X-Title": "t"}
    assert config.model.extra_body == {"top_k": 3, "a": {"b": [1]}}
    assert set(config.secrets()) == {"k", "h"}


# Fallback models

OPENAI = 'model: {provider: openai, name: big, api_key: "${K}", prices: {input: 1, output: 1}, context_length: 9}\n'


def test_a_fallback_is_a_name_beside_the_model_or_a_section_of_its_own(load):
    local = 'provider: openai, name: local, base_url: "http://127.0.0.1:1/v1", api_key: "${L}"'
    config = load(f"{OPENAI}fallback_models: [small, {{{local}}}]", K="k", L="l")
    beside, other = config.fallbacks()
    assert (beside.provider, beside.name, beside.context_length, beside.prices) == ("openai", "small", None, None)
    assert (beside.api_key, other.name) == (config.model.api_key, "local")
    assert config.secrets() == ("k", "l")
    assert [each.name for each in load(OPENAI, K="k", LEGATO__FALLBACK_MODELS="a, b").fallbacks()] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "[{provider: opnai, name: q}]",
            "[0].provider has no such name: 'opnai'",
        ),
        ("[small, {provider: openai, nam: q}]", "[1].nam is not a known key; did you mean name?"),
        ("[small, {name: q}]", " must name the provider in each section"),
        ("[{provider: openai, name: q}]", "[0].api_key is needed by openai"),
        ("[{provider: openai, name: q, api_key: sk-1}]", "[0].api_key must not be written into the file"),
        ("[3]", "[0] must be a model's name, or a section like `model`"),
        ("small", " must be a list, not 'small'"),
    ],
)
def test_what_is_no_fallback(problems, text, problem):
    (found,) = problems(f"{OPENAI}fallback_models: {text}", K="k")
    assert found.startswith(f"config.yaml:2: fallback_models{problem}")


# Auxiliary models


def test_which_model_does_side_work(load):
    main = 'model: {provider: openai, name: big, api_key: "${K}", context_length: 9000}\n'
    short = "compression: {summary_model: small}\n"
    entry = 'auxiliary: {mode: custom, compression: {provider: openai, name: own, api_key: "${K}"}}\n'
    assert load(main, K="v").auxiliary_models() == {}
    by_short_form = load(main + short, K="v").auxiliary_models()["compression"]
    assert (by_short_form.name, by_short_form.context_length) == ("small", None)
    assert load(main + short + entry, K="v").auxiliary_models()["compression"].name == "own"
    assert load(main + short + "auxiliary: {mode: same-as-main}", K="v").auxiliary_models() == {}


@pytest.mark.parametrize("task", ["compression", "memory", "title", "delegate"])
def test_each_task_may_have_a_model_of_its_own(load, task):
    main = 'model: {provider: openai, name: big, api_key: "${K}"}\n'
    entry = f'auxiliary: {{mode: custom, {task}: {{provider: openai, name: own, api_key: "${{K}}"}}}}\n'
    assert load(main + entry, K="v").auxiliary_models()[task].name == "own"


# Whatever is written, the answer is a configuration or a list of problems.

names = st.sampled_from(
    [*Config.model_fields, "provider", "enabled", "expiry", "token", "api_key", "url", "x", "threshold"]
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**6),
    st.floats(),
    st.sampled_from(["", "${X}", "${", "queue", "openai", "redis://h/0", "04:00", "a: b", "null"]),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=12
)


@given(
    st.dictionaries(names, values, max_size=5),
    st.dictionaries(names, st.sampled_from(["1", "x", "[", "null"]), max_size=2),
)
def test_nothing_else_is_ever_raised(tmp_path_factory, values, overrides):
    path = tmp_path_factory.getbasetemp() / f"{random.Random(str(values)).random()}.yaml"
    path.write_text(_as_yaml(values))
    environ = {f"LEGATO__MODEL__{key.upper()}": text for key, text in overrides.items()}
    lines = _problems_of(path, environ)
    path.unlink()
    assert not [line for line in lines if not line or "Input should" in line or "\n" in line]


def _problems_of(path, environ):
    try:
        load_config(path, environ)
    except ConfigError as error:
        return error.problems or [""]
    return []


def _as_yaml(value):
    import yaml

    return yaml.safe_dump(value)


def test_a_section_replaced_for_a_test_leaves_the_rest():
    config = Config().replace(model=Model(name="other"))
    assert (config.model.name, config.turns) == ("other", Config().turns)
