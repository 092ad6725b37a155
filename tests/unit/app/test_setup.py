"""Where settings and store are found: one folder wherever the program starts, and what an earlier version left."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.app.config import Setup, set_up
from gateway.runtime.errors import ConfigError

SHIPPED = (Path(__file__).parents[3] / "config.yaml").read_text(encoding="utf-8")
ANTHROPIC = "model: {provider: anthropic, name: claude, api_key: '${A_KEY}'}\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's home folder, away from the working folder."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def started(home: Path, given: Path | None = None, **environ: str) -> Setup:
    return set_up(given, {"HOME": str(home), "A_KEY": "a", **environ})


def own(home: Path, settings: str, secrets: str = "") -> Path:
    """The person's folder with these files."""
    folder = home / ".legato"
    folder.mkdir(mode=0o700)
    (folder / "config.yaml").write_text(settings)
    (folder / ".env").write_text(secrets)
    return folder


def left_by_an_earlier_version(store: str = "legato.db") -> None:
    """A store in the working folder, as Legato makes it."""
    Path(store).touch(mode=0o600)


def test_a_newcomer_has_one_folder_wherever_the_program_starts(home: Path) -> None:
    found = started(home)
    assert (found.file, found.earlier) == (None, ())
    assert found.config.database == home / ".legato/legato.db"
    assert found.config.home == home / ".legato/legato-home"
    assert not (home / ".legato").exists(), "looking makes nothing"


def test_shipped_defaults_in_the_working_folder_say_nothing(home: Path) -> None:
    Path("config.yaml").write_text(SHIPPED, encoding="utf-8")
    assert started(home).config.database == home / ".legato/legato.db"


def test_settings_and_secrets_of_ones_own_lie_in_the_folder(home: Path) -> None:
    own(home, "model: {provider: openai, name: x, api_key: '${OF_FILE}'}\nplugins: {dir: mine}\n", "OF_FILE=secret-1\n")
    Path("config.yaml").write_text(ANTHROPIC)
    Path(".env").write_text("OF_FILE=of a stranger\n")
    found = started(home)
    assert found.config.model.provider == "openai"
    assert found.config.secrets() == ("secret-1",)
    assert found.config.at(found.config.plugins.dir) == home / ".legato/mine"


def test_a_link_that_leads_nowhere_is_told(home: Path) -> None:
    (own(home, "") / "config.yaml").unlink()
    (home / ".legato/config.yaml").symlink_to("/not/there.yaml")
    with pytest.raises(ConfigError, match=r"config\.yaml: /not/there\.yaml, to which this link points, does not exist"):
        started(home)


def test_a_file_in_place_of_the_folder_is_told(home: Path) -> None:
    (home / ".legato").touch()
    with pytest.raises(ConfigError, match=r"\.legato is not a folder: move it away, or set LEGATO_HOME"):
        started(home)


def test_the_variable_names_another_folder(home: Path, tmp_path: Path) -> None:
    left_by_an_earlier_version()
    assert started(home, LEGATO_HOME=str(tmp_path / "other")).config.database == tmp_path / "other/legato.db"
    assert started(home, LEGATO_HOME=".").config.database == Path("legato.db")
    assert started(home, LEGATO_HOME="~/mine").config.database == Path("~/mine").expanduser() / "legato.db"


def test_an_edited_file_of_an_earlier_version_is_read_and_its_store_found(home: Path) -> None:
    Path("config.yaml").write_text(ANTHROPIC + "store: {url: 'sqlite:///my/bot.db'}\n")
    Path(".env").write_text("A_KEY=of the file\n")
    found = set_up(None, {"HOME": str(home)})
    assert (found.config.model.name, found.earlier) == ("claude", (Path("config.yaml"), Path("my/bot.db")))
    assert found.config.secrets() == ("of the file",)
    assert (found.config.database, found.config.home) == (Path("my/bot.db"), Path("my/bot-home"))


def test_an_earlier_store_is_found_beside_untouched_defaults_and_below_new_settings(home: Path) -> None:
    Path("config.yaml").write_text(SHIPPED, encoding="utf-8")
    left_by_an_earlier_version()
    assert started(home).config.database == Path("legato.db")
    own(home, ANTHROPIC)
    found = started(home)
    assert (found.config.database, found.config.model.name) == (Path("legato.db"), "claude")


def test_settings_of_ones_own_beside_those_of_an_earlier_version_are_told(home: Path) -> None:
    left_by_an_earlier_version()
    Path("config.yaml").write_text("turns: {deadline: 900}\naccess: {admins: ['telegram:1']}\n")
    assert started(home).config.turns.deadline == 900
    own(home, ANTHROPIC)
    with pytest.raises(ConfigError, match=r"two files hold settings: .*, which an earlier version read, and "):
        started(home)


def test_an_edit_of_the_shipped_file_does_not_hide_the_conversation(home: Path) -> None:
    (home / ".legato").mkdir(mode=0o700)
    Path("config.yaml").write_text(ANTHROPIC)
    found = started(home)
    assert (found.config.model.name, found.earlier) == ("claude", (Path("config.yaml"),))
    assert found.config.database == home / ".legato/legato.db"


def test_a_service_that_names_its_file_finds_its_store_where_it_was(home: Path, tmp_path: Path) -> None:
    given = tmp_path / "etc.yaml"
    given.write_text("store: {url: 'sqlite:///bot.db'}\n")
    assert started(home, given).config.database == home / ".legato/bot.db"
    left_by_an_earlier_version("bot.db")
    assert started(home, given).config.database == Path("bot.db")


def test_a_redis_gateway_finds_its_folder_where_it_was(home: Path) -> None:
    own(home, "store: {url: 'redis://127.0.0.1:1/0'}\n")
    Path("legato-home").mkdir(mode=0o700)
    assert started(home).config.home == Path("legato-home")


def test_a_strangers_folder_chooses_nothing(home: Path) -> None:
    """Such as a repository that was cloned: nothing in it is the person's alone."""
    own(home, ANTHROPIC)
    Path("config.yaml").write_text("tools: {mcp: {evil: {command: 'touch /tmp/evil'}}}\n")
    Path(".env").write_text("LEGATO__TOOLS__SHELL__ENABLED=true\n")
    (home / "private").mkdir(mode=0o700)
    Path("legato-home").symlink_to(home / "private")
    found = started(home)
    assert (found.earlier, found.config.tools.mcp, found.config.tools.shell.enabled) == ((), {}, "auto")


def test_another_programs_settings_are_no_mistake(home: Path) -> None:
    Path("config.yaml").write_text("trainer: {layers: 3}\nsite: x\n")
    assert not started(home).earlier


def test_a_store_that_others_can_open_is_neither_taken_nor_passed_over(home: Path) -> None:
    Path("legato.db").touch()
    Path("legato.db").chmod(0o644)
    with pytest.raises(ConfigError, match=r"LEGATO_HOME=\. to use it, or LEGATO_HOME=/.* to leave it"):
        started(home)
    assert started(home, LEGATO_HOME="~/.legato").config.database is not None
