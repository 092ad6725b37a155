"""The parts of settings: a section of `config.yaml` as a frozen model, and the kinds of values in it.

Legato's own sections and those of plug-ins follow the same rules: types are strict (`"5"` is no number, `1` is not
`true`), an unknown key is an error, and a field's description is its line in the reference of all settings. A
validator's ValueError says what a value must be, as in "must not be empty": the key's name is put in front of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr
from pydantic.fields import FieldInfo

Contradiction = tuple[tuple[str, ...], str]
"""Keys of a section that cannot go together, such as "webhook.url", the one to blame first; and what must be, said so
that it can follow the first key's name."""


class Section(BaseModel):
    """One section. `model_fields` are its keys, their defaults are the configuration's."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, defer_build=True)

    def contradictions(self) -> Iterator[Contradiction]:
        """Combinations of keys that cannot work. Sections inside this one are asked for theirs separately."""
        yield from ()

    @property
    def shown_instead(self) -> Mapping[str, Any]:
        """Return the keys whose values may hold a credential, whatever their names, with what is shown of each."""
        return {}


def variable_of(field: FieldInfo) -> str:
    """The variable in which people keep a platform's secret, as its field names it; "" where it names none."""
    extra = field.json_schema_extra
    return str(extra.get("variable", "")) if isinstance(extra, dict) else ""


def tuple_of_list(value: Any) -> Any:
    """YAML has lists, a frozen model has tuples."""
    return tuple(value) if isinstance(value, list) else value


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, which nobody else can reach."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _text_of_number(value: Any) -> Any:
    """Platforms number their users and chats; to Legato an id is text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _share_or_auto(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"must be a number or auto, not {str(value).lower()}")
    if isinstance(value, str) and value != "auto":
        raise ValueError(f"must be a number or auto, not {value!r}")
    if not isinstance(value, str) and not 0 < value < 1:
        raise ValueError(f"must be {'less than 1' if value > 0 else 'greater than 0'}, not {value!r}")
    return value


def _filled(value: str) -> str:
    if not value.strip():
        raise ValueError("must not be empty")
    return value


def _filled_secret(value: SecretStr) -> SecretStr:
    _filled(value.get_secret_value())
    return value


def _token(value: SecretStr) -> SecretStr:
    token = value.get_secret_value().strip()
    if not (token.isascii() and token.isprintable()):  # no header takes it
        raise ValueError("has characters that a token never has: copy it again")
    return value


def _http_url(value: str) -> str:
    try:
        parts = urlsplit(value)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        valid = False
    if not valid:
        raise ValueError("must be an address that begins with http:// or https://")
    return value


def _host(value: str) -> str:
    """A host as a program asks for it: in lower case, its letters beyond English ones as its registry has them."""
    try:
        name = value.strip().lower().encode("idna").decode("ascii")
    except UnicodeError:
        name = ""
    if not _HOST.fullmatch(name):
        raise ValueError(
            "must be the name of a host, such as example.org, *.example.org or git.example.org:8443; * is every host"
        )
    return name


_HOST = re.compile(r"\*|(?:\*\.)?(?!-)[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?::[1-9][0-9]{0,4})?")

AList = BeforeValidator(tuple_of_list)
"""For a field of many values: `Annotated[tuple[Text, ...], AList]`."""

Flag = Annotated[bool, Field(strict=True)]
Text = Annotated[str, Field(strict=True), AfterValidator(_filled)]
Texts = Annotated[tuple[Text, ...], AList]
Secret = Annotated[SecretStr, Field(strict=True), AfterValidator(_filled_secret)]
Token = Annotated[Secret, AfterValidator(_token)]
Ident = Annotated[str, Field(strict=True), AfterValidator(_filled), BeforeValidator(_text_of_number)]
Host = Annotated[str, Field(strict=True), AfterValidator(_host)]
Hosts = Annotated[tuple[Host, ...], AList]
HttpUrl = Annotated[str, Field(strict=True), AfterValidator(_http_url)]
Count = Annotated[int, Field(strict=True, ge=1)]
Natural = Annotated[int, Field(strict=True, ge=0)]
Port = Annotated[int, Field(strict=True, ge=1, le=65_535)]
Share = Annotated[float, Field(strict=True, gt=0, lt=1, allow_inf_nan=False)]
ShareOrAuto = Annotated[float | Literal["auto"], BeforeValidator(_share_or_auto)]
Seconds = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Dollars = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
SpendCap = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]


class CatchUp(Section):
    """`catch_up` limits what the bot reads in each channel after a pause."""

    hours: Natural = Field(24, description="how far back it answers messages")
    messages: Natural = Field(200, description="how many of a channel's newest messages it reads; 0: none")


class ServerSettings(Section):
    """A section about a server like OpenAI's, besides the models; without `base_url` there is none."""

    base_url: HttpUrl | None = Field(None, description="the server's address, with its version")
    model: Text | None = Field(None, description="the model's name there")
    api_key: Secret | None = Field(None, description='the key for the server, as "${NAME}"')
    timeout: Seconds = Field(120, description="seconds it may take")

    def contradictions(self) -> Iterator[Contradiction]:
        """A server and its model go together."""
        if self.base_url is not None and self.model is None:
            yield ("model", "base_url"), "is needed: which model of the server do you want to use?"
        if self.base_url is None and self.model is not None:
            yield ("base_url", "model"), "is needed: which server has this model?"

    @property
    def server(self) -> dict[str, Any]:
        """What the server is reached with."""
        key = self.api_key.get_secret_value() if self.api_key else None
        return {"base_url": self.base_url, "model": self.model, "api_key": key}
