"""Sections of config.yaml with rules of their own, and every mistake in them with its line."""

from __future__ import annotations

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
        ("chats: {console:*: {listen: free}}", ":1: chats.console:*.listen has no effect here: there are no groups"),
        ("chats: {telegram:-1: {daily_usd: -1}}", ":1: chats.telegram:-1.daily_usd must be greater than 0"),
        ("chats: {telegram:-1: pirate}", ":1: chats.telegram:-1 must hold keys of its own"),
        ("chats: {telegram:-1: {model: {name: x}}}", ":1: chats.telegram:-1.model must name the provider"),
        ("chats: {telegram:-1: {model: {provider: opnai}}}", "; did you mean openai?"),
        ("chats: {telegram:-1: {model: {provider: anthropic, name: c, api_key: sk}}}", "must not be written into"),
        ("chats: {telegram:-1: {tools: clock}}", ":1: chats.telegram:-1.tools must be a list"),
    ],
)
def test_a_mistake_in_chats_is_told_with_its_line(problems, text, problem):
    (found,) = problems(text)
    assert problem in found


def test_a_section_that_is_left_empty_says_nothing(load):
    assert load("chats:\n  telegram:-1:\n").chats in ({}, {"telegram:-1": Chat()})
    assert load("chats:\n").chats == {}


# MCP servers, whose names people choose


def test_a_server_is_a_program_or_an_address(load):
    config = load(
        "tools:\n"
        "  mcp:\n"
        "    files: {command: mcp-files, args: [-v, ''], env: {PORT: 80, TOKEN: \"${T}\"}, cwd: /tmp}\n"
        '    web-1: {url: https://x.example/mcp, headers: {Authorization: "Bearer ${T}"}, ask: ["*"]}\n',
        T="s3cret-value",
    )
    files, web = config.tools.mcp["files"], config.tools.mcp["web-1"]
    assert (files.command, files.args) == (("mcp-files",), ("-v", ""))
    assert files.env == {"PORT": "80", "TOKEN": "s3cret-value"}
    assert web.headers == {"Authorization": "Bearer s3cret-value"}
    assert web.asks("anything")
    assert {"s3cret-value", "Bearer s3cret-value"} <= set(config.secrets())


def test_a_mistake_in_a_server_is_told_with_its_line(problems):
    assert problems(
        "tools:\n"
        "  mcp:\n"
        "    one: {command: x, tiemout: 3}\n"
        "    two: {url: ftp://x}\n"
        "    three: {url: http://x, cwd: /}\n"
        "    four: {timeout: 1}\n"
        "    five: 5\n"
        "    Six_: {command: x}\n"
        "    seven: {command: x, url: http://x}\n"
        "    eight: {command: [x, 1]}\n"
    ) == [
        "config.yaml:3: tools.mcp.one.tiemout is not a known key; did you mean timeout?",
        "config.yaml:4: tools.mcp.two.url must be an address that begins with http:// or https://",
        "config.yaml:5: tools.mcp.three.cwd does not go with url",
        "config.yaml:6: tools.mcp.four.command is missing: name a program (command) or an address (url)",
        "config.yaml:7: tools.mcp.five must hold keys of its own, indented below it, not 5",
        "config.yaml:8: tools.mcp.Six_ must have a name of small letters, digits and - alone, 24 at most",
        "config.yaml:9: tools.mcp.seven.command cannot be used with url: a server is either a program or an address",
        "config.yaml:10: tools.mcp.eight.command[1] must be text, not 1",
    ]


def test_a_server_in_a_sandbox_is_lent_folders_and_hosts(load, problems):
    config = load(
        "tools: {mcp: {one: {command: x, sandbox: true, folders: {a: {path: /a}, b: {path: /b, write: true}}, "
        'hosts: [Files.Example, "*.bücher.example", "git.example.org:8443", "*"]}}}\n'
    )
    one = config.tools.mcp["one"]
    assert {name: (each.path, each.write) for name, each in one.folders.items()} == {
        "a": ("/a", False),
        "b": ("/b", True),
    }
    assert one.hosts == ("files.example", "*.xn--bcher-kva.example", "git.example.org:8443", "*")
    assert problems(
        "tools:\n"
        "  mcp:\n"
        "    one: {command: x, hosts: [a.example]}\n"
        "    two: {command: x, folders: {a: {path: /a}}}\n"
        "    three: {command: x, sandbox: true, cwd: /}\n"
        "    four: {url: http://x, sandbox: true}\n"
    ) == [
        "config.yaml:3: tools.mcp.one.hosts needs sandbox: true",
        "config.yaml:4: tools.mcp.two.folders needs sandbox: true",
        "config.yaml:5: tools.mcp.three.cwd does not go with sandbox: the program starts in a folder of its own",
        "config.yaml:6: tools.mcp.four.sandbox does not go with url",
    ]
    assert problems(
        "tools:\n"
        "  mcp:\n"
        "    one: {command: x, sandbox: true, hosts: ['http://a.example/']}\n"
        "    two: {command: x, sandbox: true, folders: {../a: {path: /b}}}\n"
    ) == [
        "config.yaml:3: tools.mcp.one.hosts[0] must be the name of a host, such as example.org, *.example.org or "
        "git.example.org:8443; * is every host",
        "config.yaml:4: tools.mcp.two.folders.../a.[key] must be a name of small letters, digits, - and _ alone, 30 "
        "at most",
    ]


@pytest.mark.parametrize("key", ["env: {GITHUB_TOKEN: ghp_x}", "env: {db_password: x}", "headers: {X-Api-Key: x}"])
def test_a_secret_does_not_stand_in_the_file(problems, key):
    (problem,) = problems(f"tools:\n  mcp:\n    one: {{command: x, {key}}}\n")
    assert "must not be written into the file: put it into a variable" in problem


def test_a_variable_that_is_not_set_is_told_unless_the_server_is_switched_off(load, problems):
    server = 'command: x, env: {TOKEN: "${NO_SUCH}"}'
    assert "needs the variable NO_SUCH" in problems(f"tools:\n  mcp:\n    one: {{{server}}}\n")[0]
    assert load(f"tools:\n  mcp:\n    one: {{{server}, enabled: false}}\n").tools.mcp["one"].env == {}


def test_what_is_shown_of_an_address_holds_no_secret(load):
    config = load('tools: {mcp: {one: {url: "https://x.example/mcp/${K}?key=${K}"}}}\n', K="s3cret-value")
    assert config.tools.mcp["one"].place == "https://x.example"


# Transcription: one way to write down, and all that it needs


SERVER = "base_url: 'http://127.0.0.1:1/v1', model: w"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("transcription: {model: w}", ":1: transcription.base_url is needed: which server has this model?"),
        ("transcription: {base_url: 'http://x/v1'}", ":1: transcription.model is needed: which model of the server"),
        ("transcription: {base_url: x, model: w}", ":1: transcription.base_url must be an address that begins with"),
        (f"transcription: {{{SERVER}, command: [a, '{{file}}']}}", "transcription.command and transcription.base_url "),
        ("transcription: {command: [whisper]}", ':1: transcription.command must hold "{file}" after the program'),
        ("transcription: {command: ['{file}']}", ':1: transcription.command must hold "{file}" after the program'),
        (f"transcription: {{{SERVER}, api_key: sk-1}}", ":1: transcription.api_key must not be written into the file"),
        ("transcription: {max_mb: 0}", ":1: transcription.max_mb must be greater than 0"),
        (f"transcription: {{{SERVER}}}\nbudgets: {{daily_usd: 1}}", "transcription.usd_per_minute is needed, or the "),
    ],
)
def test_a_mistake_in_transcription_is_told_with_its_line(problems, text, problem):
    (found,) = problems(text)
    assert problem in found


def test_its_key_is_a_secret(load):
    config = load(f"transcription: {{{SERVER}, api_key: '${{KEY}}'}}", KEY="sk-abc")
    assert "sk-abc" in config.secrets()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("monitor: {address: '9464'}", ':1: monitor.address must be HOST:PORT, such as "127.0.0.1:9464"'),
        ("monitor: {address: '127.0.0.1:99999'}", ":1: monitor.address must be HOST:PORT"),
        (
            "monitor: {address: '0.0.0.0:9464'}",
            ":1: monitor.address can be reached from other machines: allow this with ",
        ),
        ("monitor: {adress: '127.0.0.1:9464'}", ":1: monitor.adress is not a known key; did you mean address?"),
        ("alerts: {to: 'telegram:1'}", ":1: alerts.to must be PLATFORM:CHAT, on a platform that is enabled"),
    ],
)
def test_a_mistake_in_what_monitors_are_told_is_told_with_its_line(problems, text, problem):
    (told,) = problems(text)
    assert problem in told


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{address: '127.0.0.1:9464'}", ("127.0.0.1", 9465)),
        ("{address: 'localhost:9464'}", ("localhost", 9465)),
        ("{address: '[::1]:9464'}", ("::1", 9465)),
        ("{address: '0.0.0.0:9464', public: true}", ("0.0.0.0", 9465)),
    ],
)
def test_each_worker_listens_at_a_port_of_its_own(load, text, place):
    assert load(f"monitor: {text}").monitor.place(1) == place
