"""The forms of the settings, made from the fields of each section; and the way back, from what somebody typed to what
is written."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Final, get_args, get_origin

import yaml
from msgspec import Struct
from pydantic import BaseModel, SecretStr

from gateway.app.config import Setup
from gateway.app.config.environment import PREFIX, is_reference, typed
from gateway.app.config.sentences import words_at
from gateway.app.config.setup import FILE
from gateway.app.config.shape import Shape, alternatives, is_section
from gateway.app.config.shown import SECRET, is_for_a_server, public
from gateway.app.config.source import KeyPath, dotted
from gateway.cli.init import SetupChanges, asked_settings_of
from gateway.cli.reference import default_of, named_section, paragraphs
from gateway.cli.settings import REMOVED
from gateway.domain.platform import Platform
from gateway.domain.settings import Section, variable_of
from gateway.domain.views import Blank, Part
from gateway.runtime.errors import UserError
from gateway.runtime.redaction import Redactor
from gateway.runtime.redaction.places import MARK
from gateway.runtime.structs import replace

_LONGEST: Final = 2_000  # characters of a value, a key or a token
# New lines and tabs; wide spaces and those that no line ends at; and what joins or parts letters and signs, as Persian,
# Hindi and families of emoji need.
_OF_PROSE: Final = dict.fromkeys(map(ord, "\n\t\u00a0\u202f\u3000\u200c\u200d"))
_DEEPEST: Final = 12  # names of a key; each is looked up inside the one before
_NOT_SHOWN: Final = ("…", SECRET, MARK)  # where a part of a value is not shown
# Keys by which a program of this machine is started or sees its files. Who has a shell there may write them.
_STARTS: Final = frozenset(
    [
        "command",
        "args",
        "env",
        "cwd",
        "sandbox",
        "folders",
        "hosts",
        "api_key_command",
        "shell",
        "plugins",
        "context_files",
    ]
)
_KEEPS: Final = frozenset(["store", "backup"])  # sections: who has the store has the logins in it, the owner's too
_NAMES: Final = (("access", "admins"), ("adapters", "people"))  # who decides, and who somebody is
_LEADS: Final = frozenset(["base_url", "proxy", "homeserver"])  # where keys are sent
ELSEWHERE: Final = (
    "With this {key}, Legato would send a hidden key to another address. Type the hidden key as well, or ask someone "
    "who has a shell on this machine."
)
_NO_PROGRAMS: Final = (
    "The setting {key} can start programs on this machine, show its files, or move stored data. To change {key} here, "
    "log in with a link made on this machine (`legato access link`), or edit {file}."
)

NO_PEOPLE: Final = (
    "The setting {key} decides who is an admin, or who gets in. To change {key} here, log in with a link made on this "
    "machine (`legato access link`). In a shell, {way} does the same."
)


class Present(Struct, frozen=True, kw_only=True):
    """The present settings. `written`: the content of their file. `known`: the variables that they may name."""

    setup: Setup
    shape: Shape
    written: Mapping[str, Any]
    known: Mapping[str, str]

    def held(self, path: KeyPath) -> Any:
        """A value as it stands in the file, else as it is in force."""
        found = _at(self.written, path)
        return self._in_force(path) if found is None else found

    def _in_force(self, path: KeyPath) -> Any:
        return _at(self.setup.config, path)

    def text(self, path: KeyPath) -> str:
        """A value as a person writes it. One that names variables is shown as it stands in the file: they may be
        secret."""
        held = self.held(path)
        if is_for_a_server((*path, "")) and isinstance(held, Mapping):
            held = _covered(held)
        text = _as_text(held)
        text = text if "${" in text or isinstance(held, Mapping) else _as_text(self._in_force(path))
        begins = f"{PREFIX}{'__'.join(map(str, path))}".upper()
        is_overruled = any(each.upper().startswith(begins) for each in self.known)  # there, a value may hold a password
        return Redactor(self.setup.config.secrets())(text) if is_overruled else text

    def changed(self, said: Mapping[KeyPath, str]) -> dict[str | KeyPath, Any]:
        """What of this is another than now."""
        return {path: text or None for path, text in said.items() if text != self.text(path)}

    def part(self, path: KeyPath) -> Part | None:
        """The section at `path`, or several of a kind, without fields; None: a value stands there."""
        several = self._several(path)
        section = several or (self.shape.section(path) if len(path) <= _DEEPEST else None)
        if section is None or path == ("adapters",) or (path and several is None and self.shape.may_be_null(path)):
            return None
        names = sorted(self._in_force(path) or ()) if several else None
        about = " ".join(paragraphs(section)[0].split()) if path and inspect.getdoc(section) else ""
        return Part(at=dotted(path), about=about, names=names)

    def filled(self, path: KeyPath, name: str) -> Part | None:
        """The same with its fields; of several, those of the one called `name`."""
        if (part := self.part(path)) is None:
            return None
        several = self._several(path)
        section = several or self.shape.section(path)
        assert section is not None, "it is a part"
        return replace(part, fields=[*self._blanks((*path, name) if several else path, section)], name=name)

    def asked(self, platform: Platform) -> list[Blank]:
        """What a platform's section is asked for: its tokens, and what nobody can guess."""
        fields = platform.settings.model_fields if platform.settings else {}
        names = {*asked_settings_of(platform), *(name for name, each in fields.items() if variable_of(each))}
        part = self.filled(("adapters", platform.name), "")
        return [each for each in part.fields if each.name in names] if part else []

    def is_one_of_several(self, path: KeyPath) -> bool:
        """Whether people chose the last name of `path`, as that of an MCP server."""
        return self._several(path[:-1]) is not None

    def _several(self, path: KeyPath) -> type[BaseModel] | None:
        """The kind of sections that stand at `path` by names of people's own choice."""
        is_key = path and path != ("adapters",) and len(path) <= _DEEPEST
        field = self.shape.field(path) if is_key else None
        return named_section(field) if field is not None else None

    def _blanks(self, path: KeyPath, section: type[BaseModel]) -> Iterator[Blank]:
        made = self._in_force(path)
        hidden = _hidden(made) if isinstance(made, Section) else {}
        for name, declared in section.model_fields.items():
            where = (*path, name)
            kinds = [*alternatives(declared.annotation)]
            nullable = types.NoneType in kinds
            if (any(map(is_section, kinds)) and not nullable) or named_section(declared):
                continue
            usual = "" if declared.is_required() else default_of(declared)
            blank = Blank(name=name, label=declared.description or "", usual=usual)
            words = words_at(where, self.shape) + (["true", "false"] if bool in kinds and kinds != [bool] else [])
            if self.shape.is_secret(where) or name in hidden:
                is_set = self._in_force(where) not in (None, ()) or self.shape.variable(where) in self.known
                yield replace(blank, kind="secret", is_set=is_set, usual=hidden.get(name, ""))
                continue
            value = self.text(where) if made is not None or (bool not in kinds and not words) else usual
            if kinds == [bool]:
                yield replace(blank, kind="flag", value=value)
            elif words and not {str, int, float}.intersection(kinds):
                words = [*([""] if nullable else []), *(each.lower() for each in words)]
                yield replace(blank, kind="choice", value=value.lower(), choices=words)
            else:
                is_long = "\n" in value or len(value) > 60 or _holds_more(kinds)
                yield replace(blank, kind="long" if is_long else "text", value=value)

    def wanted(self, path: KeyPath, said: Mapping[str, str], shown: Mapping[str, str]) -> SetupChanges:
        """What is to be written of the section at `path`. Raises UserError."""
        draft = SetupChanges()
        if self._several(path):
            raise UserError("Give the new entry a name first.")
        self._refuse_taken(path, shown)
        for name, was in shown.items():
            where, text = (*path, *name.split(".")), said.get(name, "false" if was in ("true", "false") else "")
            if len(where) > _DEEPEST:
                continue
            kind, field = self.shape.kind(where), self.shape.field(where)
            if text == was or kind is None:
                continue
            if self.shape.is_secret(where):
                held, usual = self.held(where), self.shape.variable(where)
                shared = where[-1] == "api_key" or (field and usual == variable_of(field))  # others may name these
                variable = (
                    held[2:-1] if is_reference(held) else usual if shared else self._unused(usual, held, draft.secrets)
                )
                draft.secrets[variable] = text
                if not (field and variable == variable_of(field)):  # a platform is given its usual ones
                    draft.settings[where] = f"${{{variable}}}"
            elif is_for_a_server((*where, "")):
                draft.settings[where] = self._for_a_server(where, text, was, draft.secrets)
            elif any(each in text and each in was for each in _NOT_SHOWN):
                raise UserError(f"{dotted(where)} is shown only in part. Type the whole value.")
            else:
                draft.settings[where] = self._merged(where, text, was, kind) if text else REMOVED
        return draft

    def _refuse_taken(self, path: KeyPath, shown: Mapping[str, str]) -> None:
        """Raise UserError if a form for a new one has the name of one that is there: that would go on with its rest,
        such as its headers."""
        if not self.is_one_of_several(path) or self._in_force(path) is None:
            return
        new = self.filled(path[:-1], "")
        fresh = {each.name: each.value for each in new.fields if each.kind != "secret"} if new else {}
        if fresh.items() <= shown.items() and any(self.text((*path, name)) != was for name, was in fresh.items()):
            raise UserError(f"{dotted(path)} already exists. Choose another name, or change that entry.")

    def _merged(self, where: KeyPath, text: str, was: str, kind: Any) -> Any:
        """What was said, as its key wants it; of a list, and of values by name, what came and went, done to them as
        they are by now."""
        value, before, held = _read(where, kind, text), _read(where, kind, was), self.held(where)
        now = held if _is_words(held) else self._in_force(where)  # as it stands there, it may name variables
        if isinstance(value, dict) and self.shape.is_mapping(where) and isinstance(held, dict):
            shown = before if isinstance(before, dict) else {}
            stay = {name: each for name, each in held.items() if name not in shown or shown[name] == value.get(name)}
            return stay | {str(name): each for name, each in value.items() if each != shown.get(name)}
        if not isinstance(value, list) or not isinstance(before, list) or _as_text(now) == was:
            return value
        kept = [each for each in now or () if each in value or each not in before]
        return [*kept, *(each for each in value if each not in before and each not in kept)]

    def _for_a_server(self, where: KeyPath, text: str, was: str, secrets: dict[str, str]) -> Any:
        """Variables or headers: each that is new goes to a variable of ours, and those that are as shown stay."""
        said, shown = _read(where, dict, text or "{}"), _read(where, dict, was or "{}")
        held = self.held(where)
        present = {str(name): each for name, each in held.items()} if isinstance(held, Mapping) else {}
        if not isinstance(said, dict) or not isinstance(shown, dict):
            raise UserError(f"{dotted(where)} needs lines such as NAME: value.")
        made = {name: each for name, each in present.items() if name not in map(str, shown)}  # came meanwhile
        for name, value in said.items():
            if name in shown and str(value) == str(shown[name]):
                made |= {str(name): present[name]} if name in present else {}  # else it was taken away meanwhile
                continue
            variable = self._unused(f"{where[-2]}_{name}", present.get(name), secrets)
            secrets[variable], made[str(name)] = str(value), f"${{{variable}}}"
        return made or REMOVED

    def _unused(self, usual: str, held: Any, taken: Mapping[str, str]) -> str:
        """A variable that nothing else uses, or the one of that name that the key holds by now. People choose the names
        of servers and headers, and must neither fetch or replace another's variable by them, nor set any key."""
        usual = re.sub(r"\W", "_", usual, flags=re.ASCII).upper()
        usual = usual if re.match(r"(?!LEGATO_)[A-Z]", usual) else f"SECRET_{usual}"
        names = (usual if number == 1 else f"{usual}_{number}" for number in count(1))
        return next(each for each in names if held == f"${{{each}}}" or each not in {*self.known, *taken})


def _read(where: KeyPath, kind: Any, text: str) -> Any:
    """What somebody typed, as its key wants it. Raises UserError for what is endless by parts that repeat others."""
    value = typed(kind, text)
    with suppress(yaml.YAMLError):  # of names with commas, one of them a star
        is_nested = "*" in text and isinstance(value, dict | list)
        if is_nested and any(isinstance(each, yaml.AliasEvent) for each in yaml.parse(text)):
            raise UserError(f"{dotted(where)} holds YAML aliases (*name). Write out what the aliases stand for.")
    return value


def _as_text(value: Any) -> str:
    if isinstance(value, list | tuple) and not any(
        isinstance(each, dict | Section) or "," in str(each) for each in value
    ):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list | tuple | Section):
        return (
            str(yaml.safe_dump(_plain(value), default_flow_style=False, sort_keys=False, allow_unicode=True))
            if value
            else ""
        )
    return "" if value is None else str(value).removesuffix(".0")


def _is_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _plain(value: Any) -> Any:
    """A value as YAML has it, as far as it may be shown; of a section, what was written."""
    if isinstance(value, Section):
        value = {name: each for name, each in public(value).items() if name in value.model_fields_set}
    if isinstance(value, dict):
        shown = {str(name): each for name, each in value.items() if not isinstance(each, SecretStr)}
        return {
            name: _covered(each) if is_for_a_server((name, "")) and isinstance(each, dict) else _plain(each)
            for name, each in shown.items()
        }
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _covered(values: Mapping[str, Any]) -> dict[str, str]:
    """Headers or variables, each shown as a variable's name, or as being set."""
    return {str(name): each if "${" in str(each) else SECRET for name, each in values.items()}


def _holds_more(kinds: Sequence[Any]) -> bool:
    """True if a value of one of these kinds is more than a word, or a list of words."""
    lists = [inner for each in kinds if get_origin(each) is tuple for inner in alternatives(get_args(each)[0])]
    return any(get_origin(each) is dict or is_section(each) for each in (*kinds, *lists))


def _hidden(made: Section) -> Mapping[str, str]:
    """The keys of a section of which not everything may be shown, with what is shown."""
    shown = {name: " ".join(_words(each)) for name, each in made.shown_instead.items()}
    real = " ".join(each for name in shown for each in _words(getattr(made, name)))
    return {} if " ".join(filter(None, shown.values())) == real else shown


def _words(value: Any) -> Sequence[str]:
    return value if isinstance(value, tuple) else [str(value or "")]


def _at(held: Any, names: Sequence[str | int]) -> Any:
    for name in names:
        held = held.get(name) if isinstance(held, Mapping) else getattr(held, str(name), None)
    return held


def fits(text: str, *, lines: bool = False) -> bool:
    """Whether a text can be typed, on one line or as prose on several (`lines`), and is not too long."""
    return (text.translate(_OF_PROSE) if lines else text).isprintable() and len(text) <= _LONGEST


def refuse_odd(now: Present, draft: SetupChanges, *, owner: bool) -> None:
    """Raise UserError for what nobody means, or may not do here. A page shows values, so none of its own may fetch a
    variable's. `owner`: of this machine."""
    if unfit := [name for name, secret in draft.secrets.items() if not fits(secret)]:
        raise UserError(f"{unfit[0]} contains characters that a key never has. Copy the key again.")
    for key, value in draft.settings.items():
        path = (key,) if isinstance(key, str) else key
        names, texts = _parts_of(value)
        gone = () if now.is_one_of_several(path) or path == ("model",) else _parts_of(now.held(path))[0]
        if not owner and any(path[0] == first and name in (*path, *names, *gone) for first, name in _NAMES):
            raise UserError(NO_PEOPLE.format(key=dotted(path), way=f"a line in {FILE}"))
        if path[-1:] == ("enabled",) and value not in (False, "false"):
            gone = _parts_of(now.held(path[:-1]))[0]  # what is switched on is started as it stands there
        if not owner and (path[0] in _KEEPS or not _STARTS.isdisjoint((*path, *names, *gone))):
            raise UserError(_NO_PROGRAMS.format(key=dotted(path), file=FILE))
        held = now.held(path)
        is_old = not draft.secrets and now.held(path[:-1]) is not None and path != ("model",)
        if not owner and is_old and _addresses(path, value) - _addresses(path, held):
            raise UserError(ELSEWHERE.format(key=dotted(path)))
        before = _parts_of(held)[1] if is_for_a_server((*path, "")) or _is_words(held) else ()
        for text in (*map(str, path), *names, *texts):
            if not fits(text, lines=path[0] != "model" and text in texts):
                raise UserError(f"{dotted(path)} contains characters that cannot be typed, or is too long.")
            if "${" in text and text not in before and not (is_reference(text) and text[2:-1] in draft.secrets):
                raise UserError(f"A ${{VARIABLE}} for {dotted(path)} can be written only in {FILE}, not here.")


def _addresses(path: KeyPath, value: Any) -> set[str]:
    """The addresses in a value to which a key of its section may be sent."""
    if isinstance(value, Mapping):
        return {found for name, each in value.items() for found in _addresses((*path, name), each)}
    if isinstance(value, list | tuple):
        return {found for each in value for found in _addresses(path, each)}
    leads = path[-1] in _LEADS or (path[:2] == ("tools", "mcp") and path[-1] == "url")
    return {value} if leads and isinstance(value, str) and value else set()


def _parts_of(value: Any) -> tuple[list[str], list[str]]:
    if isinstance(value, dict):
        inner = [_parts_of(each) for each in value.values()]
        return [*map(str, value), *(name for names, _ in inner for name in names)], [t for _, ts in inner for t in ts]
    if isinstance(value, list | tuple):
        inner = [_parts_of(each) for each in value]
        return [name for names, _ in inner for name in names], [text for _, texts in inner for text in texts]
    return [], [value] if isinstance(value, str) else []
