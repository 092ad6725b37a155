"""A server's question to the person of a call (elicitation), as questions in the chat, one after the other.

https://modelcontextprotocol.io/specification: a form is a flat object of texts, numbers, yes or no, and choices; in URL
mode there is a link instead. A chat is no place for secrets, so a form that seems to want one is refused. The server
checks the values by its own rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from gateway.agent.mcp.server import Beside
from gateway.agent.tools.shell import shown
from gateway.domain.approval import Choices, Labels, Verdict

_MOST_FIELDS: Final = 10  # of a form
_MOST_CHOICES: Final = 20
_MOST_ASKED: Final = 15  # questions of one call
_TRIES: Final = 3  # answers to one question
_LONGEST: Final = 1_000  # characters of what a server says
_SECRET: Final = re.compile(
    r"pass\W?(?:word|phrase|code|wd)|secret|token|api\W?key|(?:private|access|ssh|encryption)\W?key|credential|\bpin\b"
    r"|\bcv[vc]\b|card\W?number|\botp\b|one.time\W?(?:code|pass)|verification\W?code|2fa|seed\W?phrase|kennwort|passwort"
    r"|mot de passe|contraseña|senha|пароль|密码|密碼|パスワード|비밀번호",
    re.IGNORECASE,
)
_SAFE: Final = re.compile(  # a link, with its host; to this machine also without encryption
    r"(?:https://([a-z0-9.-]+)|http://(localhost|127\.0\.0\.1))(?::\d+)?(?:[/?#][!-~]{0,1000})?", re.IGNORECASE
)
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}(?:[.,][0-9]{1,18})?")
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
_YES_NO: Final[Labels] = ("Yes", "No")
_AGREE: Final[Labels] = ("Yes", "Refuse")
_DONE: Final[Labels] = ("Done", "Refuse")
_ENDED: Final[Mapping[Verdict, Mapping[str, Any]]] = {"denied": {"action": "decline"}, "expired": {"action": "cancel"}}
_LEFT_OUT: Final = "-"
_UNREADABLE: Final = "it asked in a form that cannot be read"
NO_SECRETS: Final = "it asked for a secret ({name}), which nobody should type into a chat"


class _Unfit(Exception):
    """A question that is not put; the text says why, as a clause."""


class _Field(Struct, frozen=True, kw_only=True):
    """One field of a form. `values`: those to choose from, by what a person reads."""

    name: str
    text: str
    kind: str
    required: bool
    values: Mapping[str, Any]

    def read(self, said: str) -> Any:
        """The value that a person means. Raises ValueError with a hint."""
        for number, (label, value) in enumerate(self.values.items(), 1):
            if said.lower() in (str(number), label.lower(), value.lower()):
                return value
        if self.values:
            raise ValueError(f"Your answer must be a number from 1 to {len(self.values)}.")
        if self.kind == "string":
            return said
        form = _WHOLE if self.kind == "integer" else _NUMBER
        if not form.fullmatch(said):
            raise ValueError(f"It must be a {'whole ' if self.kind == 'integer' else ''}number.")
        return int(said) if self.kind == "integer" else float(said.replace(",", "."))


class Elicitation(Struct, frozen=True, kw_only=True):
    """A question of a server, `beside` a call."""

    server: str
    beside: Beside

    async def ask(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """Put a question of MCP's; returns MCP's answer."""
        message = _said(question.get("message"))
        try:
            if question.get("mode") == "url":
                return await self._link(message, str(question.get("url")))
            return await self._form(message, question.get("requestedSchema"))
        except _Unfit as why:
            self.beside.refused.append(str(why))
            return _ENDED["denied"]

    async def _form(self, message: str, schema: Any) -> Mapping[str, Any]:
        try:
            fields, content = _fields(message, schema), dict[str, Any]()
        except TypeError:
            raise _Unfit(_UNREADABLE) from None
        head = f"{self.server} asks: {message}"
        if not fields:
            verdict, _ = await self._put(head, _AGREE)
            return _ENDED.get(verdict) or {"action": "accept", "content": {}}
        for each in fields:
            if each.kind == "boolean":
                verdict, _ = await self._put(f"{head}\n{each.text}", _YES_NO)
                value: Any = verdict == "approved"
                verdict = "approved" if verdict == "denied" else verdict
            else:
                verdict, value = await self._value(head, each)
            if verdict in _ENDED:
                return _ENDED[verdict]
            content |= {each.name: value} if value is not None else {}
            head = f"{self.server} asks further:"
        return {"action": "accept", "content": content}

    async def _value(self, head: str, each: _Field) -> tuple[Verdict, Any]:
        lines = [head, each.text, *(f"{number}. {label}" for number, label in enumerate(each.values, 1))]
        lines += [] if each.required else [f"{_LEFT_OUT} leaves this question out."]
        for _ in range(_TRIES):
            verdict, said = await self._put("\n".join(lines), None, [*each.values])
            if verdict != "approved" or (said == _LEFT_OUT and not each.required):
                return verdict, None
            try:
                return verdict, each.read(said)
            except ValueError as error:
                lines[0] = str(error)
        return "denied", None

    async def _link(self, message: str, url: str) -> Mapping[str, Any]:
        if (safe := _SAFE.fullmatch(url)) is None:
            raise _Unfit("it gave a link that is not safe")
        text = f"{self.server} asks you to open a page of {safe[1] or safe[2]}: {message}\n{url}"
        verdict, _ = await self._put(text, _DONE)
        return _ENDED.get(verdict) or {"action": "accept"}

    async def _put(self, text: str, labels: Labels | None, choices: Sequence[str] = ()) -> tuple[Verdict, str]:
        self.beside.asked += 1
        if self.beside.asked > _MOST_ASKED or self.beside.person is None:
            raise _Unfit(f"it asked more than {_MOST_ASKED} questions")
        return await self.beside.person(text, labels, Choices(options=tuple(choices), closed=bool(choices)))


def _fields(message: str, schema: Any) -> list[_Field]:
    """The fields of a form, the required ones first. Raises _Unfit."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        raise _Unfit(_UNREADABLE)
    if len(properties) > _MOST_FIELDS:
        raise _Unfit(f"it asked for more than {_MOST_FIELDS} things at once")
    required = schema.get("required") or ()
    fields = [_field(message, str(name), each, required=name in required) for name, each in properties.items()]
    return sorted(fields, key=lambda each: not each.required)


def _field(message: str, name: str, rules: Any, *, required: bool) -> _Field:
    rules = rules if isinstance(rules, Mapping) else {}
    kind, values = rules.get("type"), _values(rules)
    title, told = _said(rules.get("title")) or _said(name), _said(rules.get("description"))
    text = f"{title}: {told}" if told else title
    if kind not in ("string", "number", "integer", "boolean") or len(values) > _MOST_CHOICES:
        raise _Unfit(_UNREADABLE)
    spelled = f"{_HUMP.sub(' ', name)} {text} {rules.get('format')} {message}"
    if kind != "boolean" and not values and _SECRET.search(spelled):
        raise _Unfit(NO_SECRETS.format(name=title[:60]))
    return _Field(name=name, text=text, kind=kind, required=required, values=values)


def _values(rules: Mapping[str, Any]) -> dict[str, str]:
    """The values to choose from, by what a person reads."""
    titled = rules.get("oneOf") or [{"const": each} for each in rules.get("enum") or ()]
    pairs = [(each.get("title"), each.get("const")) for each in titled if isinstance(each, Mapping)]
    return {_said(label) or _said(value): value for label, value in pairs if isinstance(value, str)}


def _said(value: Any) -> str:
    return shown(" ".join(value[:_LONGEST].split())) if isinstance(value, str) else ""
