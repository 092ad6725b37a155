"""`transcription`: one way to write down, and all that it needs."""

import pytest

SERVER = "base_url: 'http://127.0.0.1:1/v1', model: w"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("transcription: {model: w}", ":1: transcription.base_url is needed: which server has this model?"),
        ("transcription: {base_url: 'http://x/v1'}", ":1: transcription.model is needed: which model of the server"),
        ("transcription: {base_url: x, model: w}", ":1: transcription.base_url must be an address that begins with"),
        (f"transcription: {{{SERVER}, command: [a, '{{file}}']}}", "transcription.command and transcription.base_url "),
        ("transcription: {command: [whisper]}", ':1: transcription.command must hold "{file}" behind the program'),
        ("transcription: {command: ['{file}']}", ':1: transcription.command must hold "{file}" behind the program'),
        (f"transcription: {{{SERVER}, api_key: sk-1}}", ":1: transcription.api_key must not be written into the file"),
        ("transcription: {max_mb: 0}", ":1: transcription.max_mb must be greater than 0"),
        (f"transcription: {{{SERVER}}}\nbudgets: {{daily_usd: 1}}", "transcription.usd_per_minute is needed, or the "),
    ],
)
def test_a_mistake_is_told_with_its_line(problems, text, problem):
    (found,) = problems(text)
    assert problem in found


def test_its_key_is_a_secret(load):
    config = load(f"transcription: {{{SERVER}, api_key: '${{KEY}}'}}", KEY="sk-abc")
    assert "sk-abc" in config.secrets()
