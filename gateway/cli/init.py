"""`legato init`: a person's settings and keys, from a few answers; or only from flags, for a script.

Each question has the present value as its default, so running it again changes one thing and keeps the others. Keys and
tokens go into `.env`, readable only by their owner, and everything else into `config.yaml`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import Any, Final, TypeVar

from msgspec import Struct, field
from pydantic import TypeAdapter, ValidationError

from gateway.agent.search.plugin import EXAMPLE, SearchPlugin, searches
from gateway.app.config import Config, Setup
from gateway.app.config.environment import FILE
from gateway.app.config.sentences import did_you_mean
from gateway.app.config.source import KeyPath
from gateway.app.plugins import platforms, providers
from gateway.cli.models import asked_of, model_rows
from gateway.cli.settings import change, put
from gateway.domain.platform import Platform
from gateway.domain.settings import variable_of
from gateway.domain.wording import counted
from gateway.providers.plugin import ProviderPlugin, Vendor
from gateway.runtime.errors import ConfigError, GatewayError, UserError

_SHOWN: Final = 12  # models of a vendor's list
_MOST_ANSWERS: Final = 5  # to one question
_MONITOR: Final = "127.0.0.1:9464"

T = TypeVar("T")

Run = Callable[[Callable[[], Any]], Any]
"""Runs an asynchronous function to its end, and returns its result."""


class Dialogue(Struct, frozen=True, kw_only=True):
    """How a person is asked. `ask` gives the answer to a question, or the default where only Enter was pressed;
    `secret` does not show what is typed. `tell` prints a line."""

    ask: Callable[[str, str], str]
    secret: Callable[[str], str]
    tell: Callable[[str], None]


class SetupChanges(Struct, kw_only=True):
    """What will be written: settings by key, and secrets by variable."""

    settings: dict[str | KeyPath, Any] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)


def by_answers(talk: Dialogue, setup: Setup, environ: Mapping[str, str], run: Run) -> SetupChanges:
    """Ask for everything. Raises UserError where an answer leads nowhere."""
    draft, known = SetupChanges(), dict(setup.variables(environ))
    talk.tell("Press Enter to keep the value in brackets. Legato does not show keys and tokens while you type them.\n")
    _ask_model(talk, draft, setup, known, run)
    for platform in platforms().values():
        if tokens_of(platform):
            _ask_platform(talk, draft, setup.config, platform, known)
        elif platform.beside_shell:
            _ask_beside(talk, draft, setup.config, platform)
    _ask_people(talk, draft, setup.config)
    _ask_search(talk, draft, setup.config, known)
    _watch(draft, setup.config)
    return draft


def by_flags(
    setup: Setup, environ: Mapping[str, str], *, provider: str, model: str, base_url: str, allow: Sequence[str]
) -> SetupChanges:
    """The same from flags: keys and tokens are those of the environment, and a platform whose token is there is
    enabled. Raises UserError."""
    draft, known = SetupChanges(), setup.variables(environ)
    if provider:
        plugin = _plugin(provider)
        section: dict[str, Any] = {"provider": provider}
        if plugin.vendor is not None:
            section["name"] = model or plugin.vendor.example
        draft.settings["model"] = section | ({"base_url": base_url} if base_url else {})
    elif model or base_url:
        raise UserError("--model and --base-url need --provider, too.")
    for platform in platforms().values():
        tokens = tokens_of(platform)
        if tokens and all(known.get(each) for each in tokens):
            draft.settings[f"adapters.{platform.name}.enabled"] = True
    if allow:
        draft.settings["access.allow"] = list(allow)
    _watch(draft, setup.config)
    return draft


def write(draft: SetupChanges, setup: Setup, environ: Mapping[str, str]) -> list[Path]:
    """Write it, and return the files. Raises ConfigError if the settings would not load."""
    files: list[Path] = []
    secrets = setup.folder / FILE
    if draft.secrets:
        before = secrets.read_text(encoding="utf-8") if secrets.exists() else None
        _write_secrets(secrets, draft.secrets)
        files.append(secrets)
    if draft.settings:
        try:
            files.append(change(setup, environ, draft.settings))
        except GatewayError:
            if draft.secrets:  # all or nothing
                secrets.unlink() if before is None else put(secrets, before)
            raise
    return files


def _write_secrets(path: Path, secrets: Mapping[str, str]) -> None:
    """Put NAME=value lines into the file, in place of older ones."""
    lines = path.read_text(encoding="utf-8-sig").splitlines() if path.exists() else []
    kept = [line for line in lines if line.partition("=")[0].strip().removeprefix("export ") not in secrets]
    text = "\n".join([*kept, *(f"{name}={_quoted(value)}" for name, value in secrets.items())]) + "\n"
    try:
        with suppress(FileNotFoundError):
            path.chmod(0o600)
    except OSError as error:
        raise UserError(f"Legato cannot write {path} ({error.strerror}). Nothing has changed.") from error
    put(path, text)


def _quoted(value: str) -> str:
    """A value as it stands in `.env`: a password may hold what would end it there."""
    if not any(each in value for each in " #'\""):
        return value
    return "'{}'".format(value.replace("\\", "\\\\").replace("'", "\\'"))


# -- the model --------------------------------------------------------------------------------


def _ask_model(talk: Dialogue, draft: SetupChanges, setup: Setup, known: dict[str, str], run: Run) -> None:
    present = setup.config.model
    talk.tell("Where does your model run?")
    for title, own in (("A server of your own", True), ("In the cloud", False), ("None, to try Legato", None)):
        named = [name for name, each in providers().items() if (each.vendor.own if each.vendor else None) is own]
        talk.tell(fill(f"{title}: {', '.join(named)}", 78, subsequent_indent="  ", break_on_hyphens=False))
    plugin = _chosen(talk, "Provider", present.provider, lambda name: _plugin(name.lower().replace(".", "")))
    if plugin.vendor is None:
        if present.provider != plugin.name:
            draft.settings["model"] = {"provider": plugin.name}
        return
    section: dict[str, Any] = {"provider": plugin.name}
    is_present = present.provider == plugin.name
    if address := _ask_address(talk, plugin.vendor, present.base_url if is_present else None):
        section["base_url"] = address
    _ask_key(talk, draft, plugin.vendor, known)
    offered = _offered(talk, setup, section, known, run)
    usual = (present.name if is_present else None) or plugin.vendor.example
    if offered:
        near = get_close_matches(usual, offered, n=_SHOWN, cutoff=0.0)
        talk.tell(f"This provider offers {counted(len(offered), 'model')}, such as {', '.join(near)}.")
        usual = usual if usual in offered or is_present else near[0]
    name = talk.ask("Model", usual)
    if section | {"name": name} != {"provider": present.provider, "name": present.name}:
        draft.settings["model"] = {"provider": section.pop("provider"), "name": name, **section}


def _chosen(talk: Dialogue, question: str, usual: str, read: Callable[[str], T]) -> T:
    """What `read` makes of the first answer that can be used. It raises UserError for any other."""
    for _ in range(_MOST_ANSWERS):
        try:
            return read(talk.ask(question, usual).strip())
        except UserError as error:
            talk.tell(str(error))
    raise UserError("Legato could use none of the answers, so it wrote nothing.")


def _plugin(name: str) -> ProviderPlugin:
    found = providers().get(name)
    if found is None:
        raise UserError(f"There is no provider {name!r}{did_you_mean(name, providers())}")
    return found


def _ask_address(talk: Dialogue, vendor: Vendor, present: str | None) -> str:
    """The address of somebody's own server, or of a customer's; "" for the vendor's own."""
    if pattern := vendor.address_to_fill:
        return talk.ask("The server's address, with your own names for the words in capitals", present or pattern)
    if not vendor.own:
        return present or ""
    address = talk.ask("Its address", present or vendor.address).strip()
    address = address if "://" in address else f"http://{address}"
    return "" if address == vendor.address else address


def _ask_key(talk: Dialogue, draft: SetupChanges, vendor: Vendor | SearchPlugin, known: dict[str, str]) -> None:
    if not vendor.key:
        return
    if known.get(vendor.key):
        talk.tell(f"The key is in {vendor.key}.")
        return
    optional = " (Enter: the server needs no key)" if vendor.own else ""
    if key := talk.secret(f"Key for {vendor.title}, from {vendor.keys_at or 'its owner'}{optional}").strip():
        draft.secrets[vendor.key] = known[vendor.key] = key


def _offered(talk: Dialogue, setup: Setup, section: Mapping[str, Any], known: Mapping[str, str], run: Run) -> list[str]:
    """The names of the models that the server lists; none if it cannot be asked, which is told."""
    more = {"LEGATO__MODEL__BASE_URL": section["base_url"]} if "base_url" in section else {}
    try:
        config = asked_of(str(section["provider"]), setup, known, anew=True, **more)
        rows = run(lambda: model_rows(config, str))
    except GatewayError as error:
        told = error.problems[0] if isinstance(error, ConfigError) else str(error)
        talk.tell(f"Legato could not list the models: {told}")
        return []
    return [str(row["name"]) for row in rows]


def _watch(draft: SetupChanges, config: Config) -> None:
    """A bot that runs for others can be asked how it does."""
    if any(draft.settings.get(f"adapters.{name}.enabled") for name in platforms()) and config.monitor.address is None:
        draft.settings["monitor.address"] = _MONITOR


# -- the search of the web --------------------------------------------------------------------


def _ask_search(talk: Dialogue, draft: SetupChanges, config: Config, known: dict[str, str]) -> None:
    present, named = config.tools.search, ", ".join(searches())
    talk.tell(f"Legato can search the web with {named}. ddgs asks DuckDuckGo and others, and needs no key.")
    name = _chosen(
        talk,
        "Search engine for the web (- for none)",
        present.provider or "-",
        lambda name: _search_named(name.lower()),
    )
    if name == "-":
        if present.provider is not None:
            draft.settings["tools.search.provider"] = None
        return
    plugin, section = searches()[name], {"provider": name}
    if plugin.own:
        address = talk.ask("Its address", present.base_url or EXAMPLE).strip()
        section["base_url"] = address if "://" in address else f"http://{address}"
    _ask_key(talk, draft, plugin, known)
    if section.items() - present.model_dump().items():
        draft.settings["tools.search"] = section
    if name == "ddgs" and find_spec(name) is None:
        talk.tell("The search is not installed here yet: pip install ddgs")


def _search_named(name: str) -> str:
    if name != "-" and name not in searches():
        raise UserError(f"There is no search {name!r}{did_you_mean(name, searches())}")
    return name


# -- platforms and people ---------------------------------------------------------------------


def tokens_of(platform: Platform) -> dict[str, str]:
    """The variables of a platform's tokens, and what each token is; empty for a platform without one."""
    fields = platform.settings.model_fields if platform.settings else {}
    return {variable: each.description or "" for each in fields.values() if (variable := variable_of(each))}


def asked_settings_of(platform: Platform) -> dict[str, str]:
    """Other settings that nobody can guess, and what each is: those of fields with `json_schema_extra` `asked`."""
    fields = platform.settings.model_fields if platform.settings else {}
    extras = {name: each.json_schema_extra for name, each in fields.items()}
    asked = [name for name, each in extras.items() if isinstance(each, dict) and each.get("asked")]
    return {name: fields[name].description or "" for name in asked}


def _ask_platform(
    talk: Dialogue, draft: SetupChanges, config: Config, platform: Platform, known: dict[str, str]
) -> None:
    present = config.adapters.get(platform.name)
    is_on = present is not None and present.enabled
    if not _yes(talk, f"Talk on {platform.title}?", usual=is_on):
        if is_on:
            draft.settings[f"adapters.{platform.name}.enabled"] = False
        return
    tokens = tokens_of(platform)
    for variable, what in tokens.items():
        is_token = variable.endswith("_TOKEN")
        asked = f"Token of the bot on {platform.title}" if is_token else f"On {platform.title}, {what}"
        which = f" ({what})" if is_token and len(tokens) > 1 else ""
        if known.get(variable):
            talk.tell(f"The {'token' if is_token else 'secret'} is in {variable}.")
        elif token := talk.secret(f"{asked}{which}").strip():
            draft.secrets[variable] = known[variable] = token
    for name, what in asked_settings_of(platform).items():
        usual = getattr(present, name, None) or "-"
        said = _chosen(talk, f"On {platform.title}, {what}", usual, partial(_usable, platform, name))
        if said not in ("", "-", usual):
            draft.settings[f"adapters.{platform.name}.{name}"] = said
    if all(known.get(each) for each in tokens):
        draft.settings[f"adapters.{platform.name}.enabled"] = True
    else:
        talk.tell(f"{platform.title} stays off until you set {' and '.join(tokens)}.")


def _usable(platform: Platform, name: str, said: str) -> str:
    """An answer, if the setting of this name takes it, or if there is none. Raises UserError."""
    if said not in ("", "-") and platform.settings is not None:
        try:
            TypeAdapter(platform.settings.model_fields[name].rebuild_annotation()).validate_python(said)
        except ValidationError as error:
            raise UserError(f"It {error.errors()[0]['msg'].removeprefix('Value error, ')}.") from None
    return said


def _ask_beside(talk: Dialogue, draft: SetupChanges, config: Config, platform: Platform) -> None:
    """Ask for a platform on this machine, which needs no token."""
    present = config.adapters.get(platform.name)
    is_on = present is not None and present.enabled
    wanted = _yes(talk, f"Also turn on {platform.title} on this machine?", usual=is_on)
    if wanted != is_on:
        draft.settings[f"adapters.{platform.name}.enabled"] = wanted


def _ask_people(talk: Dialogue, draft: SetupChanges, config: Config) -> None:
    public = [each for each in platforms().values() if tokens_of(each)]
    on = [each for each in public if draft.settings.get(f"adapters.{each.name}.enabled")]
    if not on and not any(each.name in config.adapters and config.adapters[each.name].enabled for each in public):
        return
    example = next((f"{each.name}:{each.person}" for each in (*on, *platforms().values()) if tokens_of(each)), "")
    present = ", ".join(config.access.allow)
    talk.tell("Nobody else can use the bot until you let them in. Strangers get a code that they can show you.")
    said = talk.ask(f"Who may talk to the bot, such as {example} (commas between several, - for none)", present or "-")
    allowed = [each.strip() for each in said.split(",") if each.strip() not in ("", "-")]
    if allowed != list(config.access.allow):
        draft.settings["access.allow"] = allowed


def _yes(talk: Dialogue, question: str, *, usual: bool) -> bool:
    return _chosen(talk, f"{question} (y/n)", "y" if usual else "n", lambda answer: _yes_or_no(answer.lower()))


def _yes_or_no(answer: str) -> bool:
    if answer not in ("y", "yes", "n", "no"):
        raise UserError("Answer y or n.")
    return answer.startswith("y")
