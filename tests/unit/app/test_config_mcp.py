"""MCP servers in config.yaml: sections whose names people choose."""

from __future__ import annotations

import pytest


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


def test_what_is_wrong_is_told_with_its_line(problems):
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
        "config.yaml:9: tools.mcp.seven.command cannot stand beside url: a server is either a program or an address",
        "config.yaml:10: tools.mcp.eight.command[1] must be text, not 1",
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
    config = load('tools: {mcp: {one: {url: "https://x.example/mcp?key=${K}"}}}\n', K="s3cret-value")
    assert config.tools.mcp["one"].place == "https://x.example/mcp"
