"""Settings changed from the page: what `legato init` asks, and where it writes it, without a terminal.

A key that was tried waits in memory until it is saved, so that no page ever holds it. What is written is read as the
next start reads it, and taken up at once as far as `legato reload` could.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from gateway.app.config import Setup, set_up
from gateway.app.config.setup import FILE
from gateway.app.config.source import read_file
from gateway.app.models import models_alone
from gateway.app.plugins import platforms, providers
from gateway.app.reload import Reloader
from gateway.app.serving import adapters
from gateway.cli.check import of_model
from gateway.cli.init import SetupChanges, asked_settings_of, tokens_of, write
from gateway.cli.models import asked_of, offered_by
from gateway.cli.settings import put
from gateway.domain.adapter import CanBeProbed
from gateway.domain.views import Blank, Chosen, PlatformBlank, ProviderBlank, Saved, Settings, Tried
from gateway.runtime.errors import ConfigError, GatewayError, UserError
from gateway.runtime.redaction import Redactor

_LISTS: Final = ("access.allow", "access.admins")
_CAPS: Final = ("budgets.daily_usd", "budgets.per_user_daily_usd", "budgets.per_session_usd")
_LONGEST: Final = 2_000  # characters of a value, a key or a token
_WORDS: Final = {
    "access.allow": "Who may talk, several with commas",
    "access.admins": "Who may also change things",
    "budgets.daily_usd": "What all may spend in a day, in US dollars",
    "budgets.per_user_daily_usd": "What one person may spend in a day",
    "budgets.per_session_usd": "What one conversation may cost",
}


class Present(Struct, frozen=True, kw_only=True):
    """The settings as they are now; `written` is what stands in their files, that which counts most first."""

    setup: Setup
    written: Sequence[Mapping[str, Any]]

    def text(self, key: str) -> str:
        """A value as a person writes it. One that names variables is shown as it stands in the file: they may be
        secret."""
        names = key.split(".")
        for values in self.written:
            if "${" in (text := _as_text(_at(values, names))):
                return text
        return _as_text(_at(self.setup.config, names))

    def changed(self, said: Mapping[str, str | None]) -> Mapping[str, Any]:
        """What of this is another than now."""
        return {
            key: [name for each in (text or "").split(",") if (name := each.strip())] if key in _LISTS else text or None
            for key, text in said.items()
            if (text or "") != self.text(key)
        }


class Desk(Struct, kw_only=True):
    """`SettingUp` of the settings at `path` (None: where they are by themselves)."""

    path: Path | None
    reloader: Reloader
    _tried: dict[str, str] = field(default_factory=dict)  # keys that were taken, by variable, until they are saved
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def seen(self) -> Settings:
        """The settings as they are written now. Raises ConfigError."""
        now = await self._present()
        setup = now.setup
        known, config = {**setup.variables(os.environ), **self._tried}, setup.config
        vendors = [(each.name, each.vendor) for each in providers().values() if each.vendor is not None]
        return Settings(
            file=str(setup.file or setup.folder / FILE),
            secrets=str(setup.folder / ".env"),
            model=Chosen(
                provider=config.model.provider,
                name=now.text("model.name"),
                address=now.text("model.base_url"),
            ),
            providers=[
                ProviderBlank(
                    name=name,
                    title=vendor.title,
                    key=Blank(name=vendor.key, label="Key", value="", is_set=bool(known.get(vendor.key))),
                    keys_at=vendor.keys_at,
                    example=vendor.example,
                    address=vendor.address_to_fill or (vendor.address if vendor.own else ""),
                    own=vendor.own,
                )
                for name, vendor in vendors
            ],
            platforms=[
                PlatformBlank(
                    name=each.name,
                    title=each.title,
                    enabled=(present := config.adapters.get(each.name)) is not None and present.enabled,
                    tokens=[
                        Blank(
                            name=variable, label=what or "token of the bot", value="", is_set=bool(known.get(variable))
                        )
                        for variable, what in tokens_of(each).items()
                    ],
                    asked=[
                        Blank(name=name, label=what, value=now.text(f"adapters.{each.name}.{name}"))
                        for name, what in asked_settings_of(each).items()
                    ],
                    guide=each.guide,
                )
                for each in platforms().values()
                if tokens_of(each)
            ],
            people=[Blank(name=key, label=_WORDS[key], value=now.text(key)) for key in (*_LISTS, *_CAPS)],
            example=next((f"{each.name}:{each.person}" for each in platforms().values() if tokens_of(each)), ""),
        )

    async def try_model(self, chosen: Chosen, key: str) -> Tried:
        """What a model says for itself, and what its server offers."""
        vendor = providers()[chosen.provider].vendor if chosen.provider in providers() else None
        if vendor is None:
            return Tried(ok=False, told="There is no such provider.")
        if not all(map(_fits, (chosen.name, chosen.address, key))):
            return Tried(ok=False, told="It holds signs that cannot be typed, or is too long: copy it again.")
        new = {vendor.key: key} if key and vendor.key else {}
        try:
            now = await self._present()
            setup = now.setup
            known = setup.variables(os.environ)
            environ = {**os.environ, **known, **self._tried, **new}
            more = {
                variable: said if said != now.text(name) else str(getattr(setup.config.model, name[6:]))
                for variable, name, said in (
                    ("LEGATO__MODEL__NAME", "model.name", chosen.name),
                    ("LEGATO__MODEL__BASE_URL", "model.base_url", chosen.address),
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
                    return Tried(ok=True, told=f"It offers {len(offered):,} models: choose one.", offered=offered)
                await models.learn_windows()
                found = await of_model("model", models, models.main)
                self._tried |= new if found.ok else {}
                return Tried(ok=bool(found.ok), told=redact(found.detail), offered=offered)
        except GatewayError as error:
            return Tried(ok=False, told=Redactor([*self._tried.values(), *new.values()])(_sentence(error)))

    async def try_platform(self, name: str) -> Sequence[Tried]:
        """What a platform says to the tokens that are saved."""
        found: list[Tried] = []
        try:
            config = (await self._present()).setup.config
            alone = config.replace(adapters={each: made for each, made in config.adapters.items() if each == name})
            for adapter in adapters(alone):
                try:
                    told = await adapter.probe() if isinstance(adapter, CanBeProbed) else ()
                    redact = Redactor(config.secrets())
                    found += [
                        Tried(ok=each.ok is not False, told=redact(f"{each.what}: {each.detail}")) for each in told
                    ]
                finally:
                    await adapter.aclose()
        except GatewayError as error:
            found.append(Tried(ok=False, told=_sentence(error)))
        return found or [Tried(ok=False, told="It is not switched on.")]

    async def save_model(self, chosen: Chosen, key: str) -> Saved:
        """Write a model and its key."""
        vendor = providers()[chosen.provider].vendor if chosen.provider in providers() else None
        if vendor is None:
            return Saved(problems=("There is no such provider.",))
        secret = key or self._tried.get(vendor.key, "")

        def wanted(now: Present) -> Mapping[str, Any]:
            said = {"name": chosen.name, "base_url": chosen.address or None}
            if now.setup.config.model.provider == chosen.provider:  # the rest of the section stays, with its comments
                return now.changed({f"model.{name}": each for name, each in said.items()})
            return {"model": {"provider": chosen.provider, **{name: each for name, each in said.items() if each}}}

        return await self._save(wanted, {vendor.key: secret} if secret and vendor.key else {})

    async def save_platform(
        self, name: str, enabled: bool, tokens: Mapping[str, str], asked: Mapping[str, str]
    ) -> Saved:
        """Write a platform's tokens, and what else it needs."""
        platform = platforms().get(name)
        if platform is None or not tokens_of(platform):
            return Saved(problems=("There is no such platform.",))
        said = {f"adapters.{name}.{each}": text for each in asked_settings_of(platform) if (text := asked.get(each))}
        return await self._save(
            lambda now: {f"adapters.{name}.enabled": enabled, **now.changed(said)},
            {each: text for each in tokens_of(platform) if (text := tokens.get(each))},
        )

    async def save_people(self, values: Mapping[str, str]) -> Saved:
        """Write who may talk, and what may be spent. Only what is another than before is written."""
        said = {key: values[key].strip() for key in (*_LISTS, *_CAPS) if key in values}
        return await self._save(lambda now: now.changed(said), {}, widens=True)

    async def _present(self) -> Present:
        def read() -> Present:
            setup = set_up(self.path, os.environ)
            return Present(setup=setup, written=[read_file(each).values for each in reversed(setup.files)])

        return await asyncio.to_thread(read)

    async def _save(
        self, wanted: Callable[[Present], Mapping[str, Any]], secrets: Mapping[str, str], *, widens: bool = False
    ) -> Saved:
        if unfit := [name for name, secret in secrets.items() if not _fits(secret)]:
            return Saved(problems=(f"{unfit[0]} holds signs that no key has: copy it again.",))
        async with self._one:
            before: Mapping[Path, str | None] = {}
            try:
                now = await self._present()
                setup, changes = now.setup, wanted(now)
                _refuse_odd(changes)
                draft = SetupChanges(settings=dict(changes), secrets=dict(secrets))
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
        return Saved(
            files=tuple(str(each) for each in files), now=done.changed, later=(*done.waiting, *done.held), problems=()
        )


def _as_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _at(held: Any, names: Sequence[str]) -> Any:
    for name in names:
        held = held.get(name) if isinstance(held, Mapping) else getattr(held, name, None)
    return held


def _fits(text: str) -> bool:
    return text.isprintable() and len(text) <= _LONGEST


def _refuse_odd(changes: Mapping[str, Any]) -> None:
    """Raise UserError for what nobody means: a page shows values, so none of its own may fetch a variable's."""
    for key, value in changes.items():
        for text in map(str, value.values() if isinstance(value, dict) else value if key in _LISTS else [value]):
            if not _fits(text):
                raise UserError(f"{key} holds signs that cannot be typed, or is too long.")
            if "${" in text:
                raise UserError(f"{key} can name a variable only in {FILE} itself: write it there.")


def _text(path: Path) -> str | None:
    return path.read_bytes().decode() if path.exists() else None


def _sentences(error: GatewayError) -> Sequence[str]:
    return error.problems if isinstance(error, ConfigError) else [str(error)]


def _sentence(error: GatewayError) -> str:
    return _sentences(error)[0]
