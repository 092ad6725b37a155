"""What a configuration as a whole must obey, and what this version cannot do yet.

Each rule names the keys it is about: where one of them is already known to be wrong, the rule has
nothing to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from gateway.app.config.models import Config, Model, Telegram
from gateway.app.config.source import KeyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Unavailable:
    """A setting that the contract knows and this version does not have: refused, never ignored.

    `keys` with `*` for any name or index; `asked` tells whether a value asks for the feature.
    """

    keys: KeyPath
    asked: Callable[[Any], bool]
    what: str
    instead: str


def _is(*values: object) -> Callable[[Any], bool]:
    return lambda value: any(value is wanted or (isinstance(wanted, str) and value == wanted) for wanted in values)


_OTHER_PROVIDER = "use openai with the vendor's compatible base_url, or offline"
_PROVIDER = _is("openai-responses", "anthropic")

# The one list of what is still missing. Whoever builds a feature deletes its row.
UNAVAILABLE: Final[tuple[Unavailable, ...]] = (
    Unavailable(keys=("model", "provider"), asked=_PROVIDER, what="this provider", instead=_OTHER_PROVIDER),
    Unavailable(keys=("auxiliary", "*", "provider"), asked=_PROVIDER, what="this provider", instead=_OTHER_PROVIDER),
    Unavailable(keys=("fallback_models",), asked=bool, what="a chain of fallback models", instead="leave it empty"),
    Unavailable(
        keys=("sessions", "busy_mode"),
        asked=_is("collect"),
        what="collecting messages",
        instead="use queue, steer or interrupt",
    ),
    Unavailable(keys=("tools", "mcp"), asked=bool, what="tools over MCP", instead="leave it empty"),
    Unavailable(keys=("adapters", "web", "enabled"), asked=_is(True), what="the web page", instead="leave it false"),
    Unavailable(keys=("adapters", "discord", "enabled"), asked=_is(True), what="Discord", instead="leave it false"),
)


def unavailable(config: Config) -> Iterator[tuple[KeyPath, str]]:
    """Every setting that asks for something this version does not have."""
    for row in UNAVAILABLE:
        for path, value in _matching((), config, row.keys):
            if row.asked(value):
                name = ".".join(str(part) for part in path)
                yield path, f"{name} asks for {row.what}, which is not available in this version; {row.instead}"


def _matching(path: KeyPath, value: Any, keys: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if not keys:
        yield path, value
        return
    fields = getattr(type(value), "model_fields", {})
    for name in fields if keys[0] == "*" else [name for name in fields if name == keys[0]]:
        yield from _matching((*path, name), getattr(value, name), keys[1:])


_WEBHOOK_PORTS: Final = (443, 80, 88, 8443)

Finding = tuple[tuple[KeyPath, ...], str]


def contradictions(config: Config) -> Iterator[Finding]:
    """Combinations that cannot work: the keys involved, the one to blame first, and the sentence."""
    yield from _budgets_of_context(config)
    yield from _spend_caps(config)
    yield from _models(config)
    tools = config.tools
    if tools.preview_chars > tools.result_chars:
        text = (
            f"tools.preview_chars ({tools.preview_chars:,}) must not exceed tools.result_chars ({tools.result_chars:,})"
        )
        yield (("tools", "preview_chars"), ("tools", "result_chars")), text
    yield from _people(config)
    yield from _proxy(config.adapters.telegram)
    yield from _webhook(config.adapters.telegram)
    if tools.approval_deadline >= config.turns.deadline:
        yield (
            (("tools", "approval_deadline"), ("turns", "deadline")),
            f"tools.approval_deadline ({tools.approval_deadline:g}) must be below turns.deadline "
            f"({config.turns.deadline:g}), which ends a turn that waits, too",
        )
    for name in ("telegram", "discord"):
        adapter = getattr(config.adapters, name)
        if adapter.enabled and adapter.token is None:
            path: KeyPath = ("adapters", name)
            yield (
                ((*path, "token"), (*path, "enabled")),
                (
                    f'adapters.{name}.token is needed: write "${{{name.upper()}_BOT_TOKEN}}" and set that variable, '
                    "or set enabled to false"
                ),
            )


def _people(config: Config) -> Iterator[Finding]:
    """Entries that would never fit anybody: Telegram's people and chats are numbers there, whatever they are called."""
    for key in ("allow", "admins"):
        for index, entry in enumerate(getattr(config.access, key)):
            where, path = f"access.{key}[{index}]", ("access", key, index)
            if not re.fullmatch(r"[a-z]+:\S+", entry):
                yield (path,), f'{where} must name a platform and a person, as in "telegram:12345678", not {entry!r}'
            elif entry.startswith("telegram:") and not re.fullmatch(r"telegram:(\d+|\*)(@(-?\d+|\*))?", entry):
                yield (
                    (path,),
                    f'{where} must give a number, as in "telegram:12345678", not {entry!r}; `legato access list` has '
                    "the numbers of those who wrote to the bot",
                )


def _proxy(telegram: Telegram) -> Iterator[Finding]:
    if telegram.proxy is not None and not re.match(r"(https?|socks5h?)://[^\s/]", telegram.proxy):
        path: KeyPath = ("adapters", "telegram", "proxy")
        yield (path,), "adapters.telegram.proxy must be an address that begins with http://, https:// or socks5://"


def _webhook(telegram: Telegram) -> Iterator[Finding]:
    """What Telegram asks of a webhook (https://core.telegram.org/bots/api#setwebhook). A Bot API server of one's own
    takes any address."""
    webhook, where = telegram.webhook, "adapters.telegram.webhook"
    path: KeyPath = ("adapters", "telegram", "webhook")
    if telegram.mode == "webhook" and telegram.enabled and webhook.url is None:
        yield (
            ((*path, "url"), ("adapters", "telegram", "mode")),
            f"{where}.url is needed in mode webhook: at which https:// address can Telegram reach this bot?",
        )
    if webhook.url is not None and telegram.base_url is None:
        parts = urlsplit(webhook.url)
        if parts.scheme != "https" or (parts.port or 443) not in _WEBHOOK_PORTS:
            yield (
                ((*path, "url"), ("adapters", "telegram", "base_url")),
                f"{where}.url must begin with https:// and use port 443, 80, 88 or 8443: Telegram calls no other",
            )
    if webhook.path is not None and not re.fullmatch(r"/[!-~]*", webhook.path):
        yield ((*path, "path"),), f"{where}.path must begin with / and have no spaces"
    if webhook.secret is not None and not re.fullmatch(r"[A-Za-z0-9_-]{16,256}", webhook.secret.get_secret_value()):
        yield (
            ((*path, "secret"),),
            f"{where}.secret must be 16 to 256 of the characters A-Z, a-z, 0-9, _ and -; without one, one is made",
        )


def _budgets_of_context(config: Config) -> Iterator[Finding]:
    hygiene, compression = config.hygiene, config.compression
    if hygiene.threshold <= compression.threshold:
        yield (
            (("hygiene", "threshold"), ("compression", "threshold")),
            f"hygiene.threshold ({hygiene.threshold:g}) must be above compression.threshold "
            f"({compression.threshold:g}): hygiene is the safety net behind it",
        )
    if hygiene.max_messages <= hygiene.min_messages:
        yield (
            (("hygiene", "max_messages"), ("hygiene", "min_messages")),
            f"hygiene.max_messages ({hygiene.max_messages:,}) must be above "
            f"hygiene.min_messages ({hygiene.min_messages:,})",
        )


def _spend_caps(config: Config) -> Iterator[Finding]:
    person, all_ = config.budgets.per_user_daily_usd, config.budgets.daily_usd
    if person is not None and all_ is not None and person > all_:
        yield (
            (("budgets", "per_user_daily_usd"), ("budgets", "daily_usd")),
            f"budgets.per_user_daily_usd ({person:g}) must not exceed budgets.daily_usd ({all_:g}), which all share",
        )


def _models(config: Config) -> Iterator[Finding]:
    yield from _model(("model",), config.model)
    auxiliary = config.auxiliary
    entries = {task: getattr(auxiliary, task) for task in ("compression", "memory", "title")}
    for task, entry in entries.items():
        if entry is not None and auxiliary.mode == "custom":
            yield from _model(("auxiliary", task), entry)
    if auxiliary.mode == "custom" and not any(entries.values()) and config.compression.summary_model is None:
        keys: tuple[KeyPath, ...] = (("auxiliary", "mode"), *(("auxiliary", task) for task in entries))
        yield keys, "auxiliary.mode is custom, but no model is given: add auxiliary.compression, memory or title"


def _model(path: KeyPath, model: Model) -> Iterator[Finding]:
    where = ".".join(str(part) for part in path)
    provider: KeyPath = (*path, "provider")
    if model.provider != "offline" and model.name is None:
        yield ((*path, "name"), provider), f"{where}.name is needed: which model of {model.provider} is to be used?"
    if model.provider != "offline" and model.base_url is None and model.api_key is None:
        yield (
            ((*path, "api_key"), provider, (*path, "base_url")),
            f'{where}.api_key is needed by {model.provider}: write "${{OPENAI_API_KEY}}" and set that variable, '
            "or set base_url to a server that needs no key",
        )
    if None not in (model.context_length, model.max_output_tokens) and (
        (model.max_output_tokens or 0) >= (model.context_length or 0)
    ):
        yield (
            ((*path, "max_output_tokens"), (*path, "context_length")),
            f"{where}.max_output_tokens ({model.max_output_tokens:,}) must be below context_length "
            f"({model.context_length:,}), or no room is left for a prompt",
        )
