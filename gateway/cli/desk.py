"""Settings changed from the page: what `legato init` asks, and where it writes it, without a terminal.

A key that was tried waits in memory until it is saved, so that no page ever holds it. What is written is read as the
next start reads it, and taken up at once as far as `legato reload` could.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from socket import AF_INET, AF_INET6, create_server
from typing import Any, Final

from msgspec import Struct, field
from pydantic import ValidationError

from gateway.agent.search.plugin import EXAMPLE, SearchPlugin, Wanted, opened, searches
from gateway.agent.search.results import link, plain
from gateway.agent.tools.web_fetch import WebSearchSettings
from gateway.app.config import set_up
from gateway.app.config.loading import load_with_origins
from gateway.app.config.models import Config
from gateway.app.config.setup import FILE
from gateway.app.config.source import KeyPath, read_file
from gateway.app.models import models_alone
from gateway.app.plugins import platforms, providers
from gateway.app.reload import Reloader, differences
from gateway.app.serving import adapters
from gateway.cli.check import of_model
from gateway.cli.forms import ELSEWHERE, NO_PEOPLE, Present, fits, refuse_odd
from gateway.cli.init import SetupChanges, tokens_of, write
from gateway.cli.models import asked_of, offered_by
from gateway.cli.settings import REMOVED, put
from gateway.domain.adapter import CanBeProbed
from gateway.domain.keys import Key
from gateway.domain.views import Blank, Chosen, Part, PlatformBlank, ProviderBlank, Saved, SearchBlank, Settings, Tried
from gateway.people.keys import Keys, line_of
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import ConfigError, GatewayError, UserError
from gateway.runtime.redaction import Redactor
from gateway.store.port import Documents

_SEARCH: Final = ("tools", "search")
_TRIED_WITH: Final = "weather"
_SHOWN: Final = 3  # pages that a test shows
_LONGEST_TITLE: Final = 80  # characters
_WORDS: Final = {
    "access.allow": "Who may talk, several with commas",
    "access.admins": "Who may also change settings and let people in",
    "budgets.daily_usd": "What everybody together may spend in a day, in US dollars",
    "budgets.per_user_daily_usd": "What one person may spend in a day",
    "budgets.per_session_usd": "What one conversation may cost",
}


class Desk(Struct, kw_only=True):
    """`SettingUp` of the settings at `path` (None: where they are by themselves)."""

    path: Path | None
    reloader: Reloader
    store: Documents
    again: Callable[[], None] | None = None
    _tried: dict[str, str] = field(default_factory=dict)  # keys that were taken, by variable, until they are saved
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def seen(self) -> Settings:
        now = await self._present()
        setup = now.setup
        known, config = {**setup.variables(os.environ), **self._tried}, setup.config
        vendors = [(each.name, each.vendor) for each in providers().values() if each.vendor is not None]
        embedded = [each for each in providers().values() if each.vendor is None and each.only_model]
        return Settings(
            file=_homely(setup.file or setup.folder / FILE),
            secrets=_homely(setup.folder / ".env"),
            model=Chosen(
                provider=config.model.provider,
                name=now.text(("model", "name")),
                address=now.text(("model", "base_url")),
            ),
            providers=[
                ProviderBlank(
                    name=name,
                    title=vendor.title,
                    key=Blank(name=vendor.key, label="Key", is_set=bool(known.get(vendor.key))),
                    keys_at=vendor.keys_at,
                    example=vendor.example,
                    address=vendor.address_to_fill or (vendor.address if vendor.own else ""),
                    own=vendor.own,
                )
                for name, vendor in vendors
            ]
            + [
                ProviderBlank(name=each.name, title=each.only_model, key=Blank(name="", label=""), own=None)
                for each in embedded
            ],
            search=Chosen(
                provider=config.tools.search.provider or "", name="", address=now.text((*_SEARCH, "base_url"))
            ),
            searches=[
                SearchBlank(
                    name=each.name,
                    title=each.title,
                    key=Blank(name=each.key, label="Key", is_set=bool(known.get(each.key))),
                    keys_at=each.keys_at,
                    own=each.own,
                    example=EXAMPLE if each.own else "",
                )
                for each in searches().values()
            ],
            platforms=[
                PlatformBlank(
                    name=each.name,
                    title=each.title,
                    enabled=(present := config.adapters.get(each.name)) is not None and present.enabled,
                    fields=now.asked(each),
                    guide=each.guide,
                )
                for each in platforms().values()
                if tokens_of(each)
            ],
            people=[Blank(name=key, label=_WORDS[key], value=now.text(tuple(key.split(".")))) for key in _WORDS],
            parts=[part for path in ((), *now.shape.paths()) if (part := now.filled(path, ""))],
            keys={each.name: line_of(each) for each in await self._keys.all()},
            again=self.again is not None,
            waits=differences(self.reloader.config, config),
            example=next((f"{each.name}:{each.person}" for each in platforms().values() if tokens_of(each)), ""),
        )

    async def try_model(self, chosen: Chosen, key: str, *, owner: bool) -> Tried:
        """What a model says for itself, and what its server offers."""
        vendor = providers()[chosen.provider].vendor if chosen.provider in providers() else None
        if vendor is None:
            return Tried(ok=False, told="There is no such provider.")
        if not all(map(fits, (chosen.name, chosen.address, key))):
            return Tried(
                ok=False,
                told="The name, the address or the key contains characters that cannot be typed, or is too long.",
            )
        new = {vendor.key: key} if key and vendor.key else {}
        try:
            now = await self._present()
            setup = now.setup
            known = setup.variables(os.environ)
            if not owner and not key:
                self._refuse_elsewhere(now, chosen, vendor.key)
            environ = {**os.environ, **known, **self._tried, **new}
            more = {
                variable: said if said != now.text(("model", name)) else str(getattr(setup.config.model, name))
                for variable, name, said in (
                    ("LEGATO__MODEL__NAME", "name", chosen.name),
                    ("LEGATO__MODEL__BASE_URL", "base_url", chosen.address),
                )
                if said
            }
            config = asked_of(chosen.provider, setup, environ, anew=True, **more)
            redact = Redactor([*config.secrets(), *new.values()])
            async with models_alone(config, redact) as models:
                offered = [each.name for each in await offered_by(models)]
                if offered and not known.get(vendor.key):
                    self._tried |= new  # only what was taken may take the place of a key that works
                if not chosen.name:
                    return Tried(
                        ok=True, told=f"The provider offers {len(offered):,} models: choose one.", offered=offered
                    )
                await models.learn_windows()
                found = await of_model("model", models, models.main)
                self._tried |= new if found.ok else {}
                return Tried(ok=bool(found.ok), told=redact(found.detail), offered=offered)
        except GatewayError as error:
            return Tried(ok=False, told=Redactor([*self._tried.values(), *new.values()])(_sentence(error)))

    async def try_platform(self, name: str) -> Sequence[Tried]:
        found: list[Tried] = []
        try:
            config = (await self._present()).setup.config
            alone = config.replace(adapters={each: made for each, made in config.adapters.items() if each == name})
            for adapter in adapters(alone):
                async with aclosing(adapter):
                    told = await adapter.probe() if isinstance(adapter, CanBeProbed) else ()
                redact = Redactor(config.secrets())
                found += [Tried(ok=each.ok is not False, told=redact(f"{each.what}: {each.detail}")) for each in told]
        except GatewayError as error:
            found.append(Tried(ok=False, told=_sentence(error)))
        return found or [Tried(ok=False, told="This platform is not switched on.")]

    async def save_model(self, chosen: Chosen, key: str, *, owner: bool) -> Saved:
        plugin = providers().get(chosen.provider)
        if plugin is None:
            return Saved(problems=("There is no such provider.",))
        variable = plugin.vendor.key if plugin.vendor else ""
        secret = key or self._tried.get(variable, "")

        def wanted(now: Present) -> SetupChanges:
            if not owner and not key:
                self._refuse_elsewhere(now, chosen, variable)
            said = {"name": chosen.name, "base_url": chosen.address} if plugin.vendor else {}
            secrets = {variable: secret} if secret and variable else {}
            if now.setup.config.model.provider == chosen.provider:  # the rest of the section stays, with its comments
                settings = now.changed({("model", name): each for name, each in said.items()})
            else:
                filled = {name: each for name, each in said.items() if each}
                settings = {"model": {"provider": chosen.provider, **filled}}
            return SetupChanges(settings=settings, secrets=secrets)

        return await self._save(wanted, owner=owner)

    def _refuse_elsewhere(self, now: Present, chosen: Chosen, variable: str) -> None:
        """Raise UserError if the kept key of a model would go to an address that it does not go to now."""
        model = now.setup.config.model
        is_same = model.provider == chosen.provider
        if not chosen.address or (is_same and chosen.address == now.text(("model", "base_url"))):
            return
        kept = {**os.environ, **now.setup.variables(os.environ), **self._tried}.get(variable)
        if kept or (is_same and model.api_key is not None):
            raise UserError(ELSEWHERE.format(key="model.base_url"))

    async def try_search(self, chosen: Chosen, key: str, *, owner: bool) -> Tried:
        redact = Redactor([*self._tried.values(), key] if key else [*self._tried.values()])
        try:
            if (plugin := searches().get(chosen.provider)) is None:
                return Tried(ok=False, told="Choose a search first.")
            now = await self._present()
            if not owner and not key:
                self._refuse_search_elsewhere(now, chosen, plugin)
            known = {**os.environ, **now.setup.variables(os.environ), **self._tried}
            kept = now.setup.config.tools.search.api_key if self._is_present(now, chosen) else None
            secret = key or known.get(plugin.key) or (kept.get_secret_value() if kept else "")
            settings = WebSearchSettings.model_validate(
                {"provider": plugin.name}
                | ({"base_url": chosen.address} if chosen.address and plugin.own else {})
                | ({"api_key": secret} if secret else {})
            )
            redact = Redactor([*self._tried.values(), secret] if secret else [*self._tried.values()])
            _, search = opened(settings, SystemClock())
            hits = await search.find(Wanted(query=_TRIED_WITH, most=_SHOWN))
        except ValidationError as error:
            return Tried(
                ok=False, told=redact(f"The address {error.errors()[0]['msg'].removeprefix('Value error, ')}.")
            )
        except GatewayError as error:
            return Tried(ok=False, told=redact(_sentence(error)))
        if key and plugin.key:
            self._tried[plugin.key] = key
        found = [(plain(each.title, _LONGEST_TITLE), link(each.address)) for each in hits[:_SHOWN]]
        return Tried(ok=True, told=f"{plugin.title} finds pages for “{_TRIED_WITH}”:", found=found)

    async def save_search(self, chosen: Chosen, key: str, *, owner: bool) -> Saved:
        plugin = searches().get(chosen.provider)
        if plugin is None and chosen.provider:
            return Saved(problems=("There is no such search.",))
        variable = plugin.key if plugin else ""
        secret = key or self._tried.get(variable, "")
        address = chosen.address if plugin and plugin.own else ""

        def wanted(now: Present) -> SetupChanges:
            if plugin is not None and not owner and not key:
                self._refuse_search_elsewhere(now, chosen, plugin)
            same, key_at = now.setup.config.tools.search.provider == chosen.provider, (*_SEARCH, "api_key")
            given: dict[KeyPath, str] = {(*_SEARCH, "provider"): chosen.provider}
            if not same or (plugin and plugin.own):
                given[*_SEARCH, "base_url"] = address
            settings = now.changed(given)
            if not same and isinstance(now.held(key_at), str):  # another's key must not go there
                settings[key_at] = REMOVED
            return SetupChanges(settings=settings, secrets={variable: secret} if secret and variable else {})

        return await self._save(wanted, widens=True, owner=owner)

    def _refuse_search_elsewhere(self, now: Present, chosen: Chosen, plugin: SearchPlugin) -> None:
        """The same of a search."""
        kept = now.setup.config.tools.search.api_key is not None
        if plugin.own and kept and chosen.address and not self._is_present(now, chosen):
            raise UserError(ELSEWHERE.format(key="tools.search.base_url"))

    def _is_present(self, now: Present, chosen: Chosen) -> bool:
        """Whether a search is the one that is set up, at its address."""
        same = now.setup.config.tools.search.provider == chosen.provider
        return same and chosen.address == now.text((*_SEARCH, "base_url"))

    async def part(self, at: str, name: str) -> Part | None:
        return (await self._present()).filled(tuple(at.split(".")) if at else (), name)

    async def save(
        self, at: str, name: str, said: Mapping[str, str], shown: Mapping[str, str], *, owner: bool
    ) -> Saved:
        path = tuple(each for each in (*at.split("."), name) if each)
        return await self._save(lambda now: now.wanted(path, said, shown), widens=True, owner=owner)

    async def remove(self, at: str, name: str, *, owner: bool) -> Saved:
        draft = SetupChanges(settings={(*at.split("."), name): REMOVED})
        return await self._save(lambda _: draft, widens=True, owner=owner)

    @property
    def _keys(self) -> Keys:
        return Keys(store=self.store, clock=SystemClock())

    async def add_key(self, name: str, kind: str, cap: str, *, owner: bool) -> tuple[bool, str]:
        if not owner:
            return False, NO_PEOPLE.format(key="A key", way="`legato keys add`")
        try:
            most = float(cap) if cap else None
            made = Key(
                name=name, front_end=kind == "front end", admin=kind == "admin", cap=most, made_at=SystemClock().now()
            )
            return True, await self._keys.add(made)
        except ValueError:
            return False, f"{cap[:40]!r} is not an amount in US dollars."
        except UserError as error:
            return False, f"{error}."

    async def remove_key(self, name: str) -> bool:
        return await self._keys.remove(name)

    async def start_again(self) -> Saved:
        def pages(now: Present) -> SetupChanges:
            """Make sure that this page is there again, even if it is beside a terminal at the moment."""
            on = {name for name, each in now.setup.config.adapters.items() if each.enabled}
            names = [name for name, each in platforms().items() if each.beside_shell and name not in on]
            return SetupChanges(settings={("adapters", name, "enabled"): True for name in names})

        if self.again is None:
            return Saved(
                problems=("Another program, such as systemd, started Legato. Restart Legato with that program.",)
            )
        try:
            wanted = (await self._present()).setup.config
        except ConfigError as error:
            return Saved(problems=tuple(error.problems))
        if taken := _taken(self.reloader.config, wanted):
            return Saved(problems=taken)
        saved = await self._save(pages)
        if not saved.problems:
            self.again()
        return saved

    async def _present(self) -> Present:
        def read() -> Present:
            setup = set_up(self.path, os.environ)
            known = setup.variables(os.environ)
            _, shape, _ = load_with_origins(setup.file, known)
            written = read_file(setup.file).values if setup.file is not None else {}
            return Present(setup=setup, shape=shape, written=written, known=known)

        return await asyncio.to_thread(read)

    async def _save(
        self, wanted: Callable[[Present], SetupChanges], *, widens: bool = False, owner: bool = False
    ) -> Saved:
        async with self._one:
            before: Mapping[Path, str | None] = {}
            secrets: Mapping[str, str] = {}
            try:
                now = await self._present()
                setup, draft = now.setup, wanted(now)
                secrets = draft.secrets
                refuse_odd(now, draft, owner=owner)
                _refuse_overruled(secrets)
                before = {path: _text(path) for path in (setup.file or setup.folder / FILE, setup.folder / ".env")}
                files = await asyncio.to_thread(write, draft, setup, os.environ)
                done = await self.reloader.reload(widens=widens)
            except GatewayError as error:
                for path, text in before.items():  # with what cannot be taken up, no start would go well either
                    if text is None:
                        path.unlink(missing_ok=True)
                    elif text != _text(path):
                        put(path, text, newline="")
                redact = Redactor([*secrets.values(), *self._tried.values()])
                return Saved(problems=tuple(redact(each) for each in _sentences(error)))
        for name in secrets:
            self._tried.pop(name, None)
        return Saved(files=tuple(map(str, files)), now=done.changed, later=(*done.waiting, *done.held))


def _refuse_overruled(secrets: Mapping[str, str]) -> None:
    """Raise UserError for a secret that would have no effect: what reads its variable would get the other value."""
    if fixed := [name for name, secret in secrets.items() if os.environ.get(name, secret) != secret]:
        raise UserError(
            f"{fixed[0]} is set in the environment that Legato was started in, and overrides .env. Change the "
            "variable there."
        )


def _taken(held: Config, wanted: Config) -> tuple[str, ...]:
    """Why the next start could not listen where it is `wanted` to: nobody would be left to serve, nor this page."""
    own, problems = {at[1] for _, at in _listening(held)}, []
    for name, at in _listening(wanted):
        if at[1] in own:
            continue  # this program has the port, if at another address, and gives it back before it starts again
        try:
            create_server(at, family=AF_INET6 if ":" in at[0] else AF_INET).close()
        except OSError as error:
            problems.append(
                f"Legato did not restart, because it could not listen at {at[0]}:{at[1]} "
                f"({os.strerror(error.errno or 0)}). End the program that uses this port, or set another {name}."
            )
    return tuple(problems)


def _listening(config: Config) -> Iterator[tuple[str, tuple[str, int]]]:
    """The keys of the ports that a program with these settings has, each with its host and port."""
    for platform in platforms().values():
        settings: Any = config.adapters.get(platform.name)
        if (settings is None or not settings.enabled) and platform.beside_shell and platform.settings is not None:
            settings = settings or platform.settings(enabled=True)  # the page, from which somebody starts it again
        elif settings is None or not settings.enabled:
            continue
        if port := getattr(settings, "port", 0):  # 0: any that is free
            yield f"adapters.{platform.name}.port", (settings.host.strip("[]"), port)
    host, _, number = (config.monitor.address or "").rpartition(":")
    if number:
        yield "monitor.address", (host.strip("[]"), int(number))


def _homely(path: Path) -> str:
    """A path as a person writes it."""
    with suppress(ValueError, RuntimeError):  # it is elsewhere, or nobody knows where home is
        return f"~/{path.relative_to(Path.home())}"
    return str(path)


def _text(path: Path) -> str | None:
    return path.read_bytes().decode() if path.exists() else None


def _sentences(error: GatewayError) -> Sequence[str]:
    return error.problems if isinstance(error, ConfigError) else [str(error)]


def _sentence(error: GatewayError) -> str:
    return _sentences(error)[0]
