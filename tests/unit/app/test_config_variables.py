"""The file `.env`: keys and tokens for every command, where the environment does not give them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.app.config import load_config, variables
from gateway.runtime.errors import ConfigError


def given(folder: Path, text: str | bytes, **environ: str) -> dict[str, str]:
    """Return the variables with such a file beside the configuration."""
    (folder / ".env").write_bytes(text.encode() if isinstance(text, str) else text)
    return dict(variables([folder], environ))


def problems(folder: Path, text: str | bytes) -> list[str]:
    """Return the faults of such a file, without its folder."""
    with pytest.raises(ConfigError) as caught:
        given(folder, text)
    return [each.removeprefix(f"{folder}/") for each in caught.value.problems]


def test_without_the_file_there_is_the_environment_alone(tmp_path: Path) -> None:
    assert variables([tmp_path], {"A": "1"}) == {"A": "1"}


def test_what_the_environment_says_counts_for_more(tmp_path: Path) -> None:
    assert given(tmp_path, "A=file\nB=file\n", A="environment", C="") == {"A": "environment", "B": "file", "C": ""}


def test_values_are_taken_to_the_letter(tmp_path: Path) -> None:
    text = '# a comment\n\nexport A=123:AA$B${C}#x\nB=\'a "b" c\' # said\nC=\nD="two\nlines"\nÄ=größe 买\n'
    assert given(tmp_path, text) == {
        "A": "123:AA$B${C}#x",
        "B": 'a "b" c',
        "C": "",
        "D": "two\nlines",
        "Ä": "größe 买",
    }


@pytest.mark.parametrize("start", ["\ufeff", "", "\n"])
def test_editors_may_write_it_as_they_do(tmp_path: Path, start: str) -> None:
    assert given(tmp_path, f"{start}A=1\r\nB=2\r\n") == {"A": "1", "B": "2"}


def test_lines_that_set_nothing_are_told_with_their_number_and_not_repeated(tmp_path: Path) -> None:
    sentence = "this is not NAME=value; correct it, or put a # in front"
    text = "A=1\n\n\nsk-123456 a key alone\nB\nC='open\n"
    assert problems(tmp_path, text) == [f".env:{line}: {sentence}" for line in (4, 5, 6)]


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    assert problems(tmp_path, b"A=\xff") == [".env: the file is not UTF-8 text (byte 2); save it as UTF-8"]
    (tmp_path / ".env").unlink()
    (tmp_path / ".env").mkdir()
    with pytest.raises(ConfigError, match="the file cannot be read"):
        variables([tmp_path], {})


def test_without_a_configuration_it_lies_in_the_present_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text("LEGATO__COMPRESSION__THRESHOLD=0.4\n")
    assert load_config(None, variables([Path()], {})).compression.threshold == 0.4


def test_a_configuration_names_them(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text('adapters:\n  telegram: {enabled: true, token: "${TELEGRAM_BOT_TOKEN}"}\n')
    config = load_config(path, given(tmp_path, "TELEGRAM_BOT_TOKEN=42:abc\n"))
    assert config.adapters["telegram"].token is not None
    assert config.adapters["telegram"].token.get_secret_value() == "42:abc"
