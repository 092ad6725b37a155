"""Settings changed from the page: what `legato init` asks, and where it writes it, without a terminal.

A key that was tried waits in memory until it is saved, so that no page ever holds it. What is written is read as the
next start reads it, and taken up at once as far as `legato reload` could.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from gateway.app.config import Setup, set_up
from gateway.app.config.setup import FILE
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
from gateway.runtime.errors import ConfigError, GatewayError
from gateway.runtime.redaction import Redactor

_LISTS: Final = ("access.allow", "access.admins")
_CAPS: Final = ("budgets.daily_usd", "budgets.per_user_daily_usd", "budgets.per_session_usd")
_WORDS: Final = {
    "access.allow": "Who may talk, several with commas",
    "access.admins": "Who may also change things",
    "budgets.daily_usd": "What all may spend in a day, in US dollars",
    "budgets.per_user_daily_usd": "What one person may spend in a day",
    "budgets.per_session_usd": "What one conversation may cost",
}


class Desk(Struct, kw_only=True):
    """`SettingUp` of the settings at `path` (None: where they are by themselves)."""

    path: Path | None
    reloader: Reloader
    _tried: dict[str, str] = field(default_factory=dict)  # keys by variable, until they are saved
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def seen(self) -> Settings:
        """The settings as they are written now. Raises ConfigError."""
        setup = await asyncio.to_thread(self._setup)
        known, config = {**setup.variables(os.environ), **self._tried}, setup.config
        vendors = [(each.name, each.vendor) for each in providers().values() if each.vendor is not None]
        values = {key: _value(config, key) for key in (*_LISTS, *_CAPS)}
        return Settings(
            file=str(setup.file or setup.folder / FILE),
            secrets=str(setup.folder / ".env"),
            model=Chosen(
                provider=config.model.provider, name=config.model.name or "", address=config.model.base_url or ""
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
                        Blank(name=name, label=what, value=str(getattr(present, name, None) or ""))
                        for name, what in asked_settings_of(each).items()
                    ],
                    guide=each.guide,
                )
                for each in platforms().values()
                if tokens_of(each)
            ],
            people=[Blank(name=key, label=_WORDS[key], value=value) for key, value in values.items()],
            example=next((f"{each.name}:{each.person}" for each in platforms().values() if tokens_of(each)), ""),
        )

    async def try_model(self, chosen: Chosen, key: str) -> Tried:
        """What a model says for itself, and what its server offers."""
        vendor = providers()[chosen.provider].vendor if chosen.provider in providers() else None
        if vendor is None:
            return Tried(ok=False, told="There is no such provider.")
        if key and vendor.key:
            self._tried[vendor.key] = key
        try:
            setup = await asyncio.to_thread(self._setup)
            environ = {**os.environ, **setup.variables(os.environ), **self._tried}
            more = {"LEGATO__MODEL__NAME": chosen.name} if chosen.name else {}
            more |= {"LEGATO__MODEL__BASE_URL": chosen.address} if chosen.address else {}
            config = asked_of(chosen.provider, setup, environ, anew=True, **more)
            redact = Redactor(config.secrets())
            async with models_alone(config, redact) as models:
                offered = [each.name for each in await offered_by(models)]
                if not chosen.name:
                    return Tried(ok=True, told=f"It offers {len(offered):,} models: choose one.", offered=offered)
                await models.learn_windows()
                found = await of_model("model", models, models.main)
                return Tried(ok=bool(found.ok), told=redact(found.detail), offered=offered)
        except GatewayError as error:
            return Tried(ok=False, told=Redactor([*self._tried.values()])(_sentence(error)))

    async def try_platform(self, name: str) -> Sequence[Tried]:
        """What a platform says to the tokens that are saved."""
        found: list[Tried] = []
        try:
            config = (await asyncio.to_thread(self._setup)).config
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
        present = (await asyncio.to_thread(self._setup)).config.model
        secret = key or self._tried.get(vendor.key, "")
        section: dict[str, Any] = {"name": chosen.name, "base_url": chosen.address or None}
        if present.provider == chosen.provider:  # the rest of the section stays, with its comments
            changes = {f"model.{name}": each for name, each in section.items() if each != getattr(present, name)}
        else:
            changes = {"model": {"provider": chosen.provider, **{name: each for name, each in section.items() if each}}}
        return await self._save(changes, {vendor.key: secret} if secret and vendor.key else {})

    async def save_platform(
        self, name: str, enabled: bool, tokens: Mapping[str, str], asked: Mapping[str, str]
    ) -> Saved:
        """Write a platform's tokens, and what else it needs."""
        platform = platforms().get(name)
        if platform is None or not tokens_of(platform):
            return Saved(problems=("There is no such platform.",))
        changes: dict[str, Any] = {f"adapters.{name}.enabled": enabled}
        changes |= {
            f"adapters.{name}.{each}": said for each in asked_settings_of(platform) if (said := asked.get(each))
        }
        return await self._save(changes, {each: said for each in tokens_of(platform) if (said := tokens.get(each))})

    async def save_people(self, values: Mapping[str, str]) -> Saved:
        """Write who may talk, and what may be spent. Only what is another than before is written."""
        before = (await asyncio.to_thread(self._setup)).config
        changes: dict[str, Any] = {}
        for key in (*_LISTS, *_CAPS):
            if (said := values.get(key)) is not None and said.strip() != _value(before, key):
                names = [each.strip() for each in said.split(",") if each.strip()]
                changes[key] = names if key in _LISTS else said.strip() or None
        return await self._save(changes, {}, widens=True)

    def _setup(self) -> Setup:
        return set_up(self.path, os.environ)

    async def _save(self, changes: Mapping[str, Any], secrets: Mapping[str, str], *, widens: bool = False) -> Saved:
        if unfit := [name for name, secret in secrets.items() if not secret.isprintable()]:
            return Saved(problems=(f"{unfit[0]} holds signs that no key has: copy it again.",))
        draft = SetupChanges(settings=dict(changes), secrets=dict(secrets))
        async with self._one:
            before: Mapping[Path, str | None] = {}
            try:
                setup = await asyncio.to_thread(self._setup)
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


def _value(config: Any, key: str) -> str:
    for name in key.split("."):
        config = getattr(config, name)
    return ", ".join(config) if isinstance(config, tuple) else "" if config is None else f"{config:g}"


def _text(path: Path) -> str | None:
    return path.read_bytes().decode() if path.exists() else None


def _sentences(error: GatewayError) -> Sequence[str]:
    return error.problems if isinstance(error, ConfigError) else [str(error)]


def _sentence(error: GatewayError) -> str:
    return _sentences(error)[0]
