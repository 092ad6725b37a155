"""Credentials never leave: `Redactor` replaces them by `[REDACTED]` and keeps the text around them.

Two layers. What the configuration holds is replaced wherever it appears, exactly. Everything else
is recognised by form: vendors give most keys a prefix of their own (`KINDS`), and the rest is
given away by the name it is assigned to (`password: …`, `API_KEY=…`).

Texts come from strangers and may be a megabyte long, so no pattern may backtrack over unbounded
text: every unbounded repeat is possessive (or followed by nothing), and a pattern of several
parts cannot begin inside its own first part. A test walks the parsed patterns to keep it so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

MARK: Final = "[REDACTED]"
SHORTEST_SECRET: Final = 6  # characters; replacing shorter ones would riddle ordinary text with marks
LONG_WORD: Final = 15  # characters that the shortest credential with a form of its own takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of credential. Group 1 of `pattern` is what is replaced.

    `hints`: lower-case strings of which at least one is in any text that holds such a credential.
    Looking for them is a hundred times quicker than the pattern, and most texts hold none. Where
    they are in nearly every text, `probe` is a simpler pattern that whatever `pattern` matches
    matches too: it begins with a literal or two, so that long texts are searched at memory's speed.
    `in_word`: what `pattern` matches holds no white space and takes `LONG_WORD` characters or more, so
    that its hints need only be looked for among the long words, which are few in most texts.
    """

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    probe: re.Pattern[str] | None = None
    in_word: bool = True


# Where a token may begin: not inside a word, but right after an escaped line break of JSON text.
_START = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
_WORD_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_DOTTED_START = r"(?:(?<![A-Za-z0-9_.-])|(?<=\\[nrt]))"


def _kind(name: str, hints: str, pattern: str, probe: str | None = None, *, in_word: bool = True) -> Kind:
    probing = None if probe is None else re.compile(probe)
    return Kind(name=name, hints=tuple(hints.split()), pattern=re.compile(pattern), probe=probing, in_word=in_word)


KINDS: Final[tuple[Kind, ...]] = (
    # A block whose end was cut off loses the lines that look like its body.
    _kind(
        "private key",
        "private key",
        r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"((?:[^-]|-(?!----))*+(?=-----END)|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)*+)",
        in_word=False,
    ),
    _kind("openai key", "sk-", _START + r"(sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,}))"),
    _kind("anthropic key", "sk-ant-", _START + r"(sk-ant-[A-Za-z0-9_-]{16,})"),
    _kind("openrouter key", "sk-or-", _START + r"(sk-or-[A-Za-z0-9_-]{16,})"),
    _kind("model provider key", "gsk_ xai- pplx- r8_ fw_", _START + r"((?:gsk_|xai-|pplx-|r8_|fw_)[A-Za-z0-9]{20,})"),
    _kind("github token", "ghp_ gho_ ghu_ ghs_ ghr_", r"(gh[pousr]_[A-Za-z0-9]{30,})"),
    _kind("github fine-grained token", "github_pat_", r"(github_pat_[A-Za-z0-9_]{22,})"),
    _kind(
        "gitlab token",
        "glpat- glptt- gldt- glrt- glsoat- glft- glimt- gloas- glcbt- glagent- glffct-",
        _START + r"(gl(?:pat|ptt|dt|rt|soat|ft|imt|oas|cbt|agent|ffct)-[A-Za-z0-9_.=-]{20,})",
    ),
    _kind("slack token", "xox xapp-", r"((?:xox[a-z][.-]|xapp-)[A-Za-z0-9.-]{10,})"),
    _kind("slack webhook", "hooks.slack.com", r"(?i)hooks\.slack\.com/[a-z]{1,20}/([A-Za-z0-9/_-]{10,})"),
    # A time stamp before a hash has the same form: plain hexadecimal is left alone.
    _kind(
        "telegram bot token",
        ":",
        r"(?<!\d)(\d{6,12}:(?![0-9a-f]{30,64}(?![A-Za-z0-9_-]))[A-Za-z0-9_-]{30,50})",
        probe=r":[A-Za-z0-9_-]{30}",
    ),
    _kind(
        "discord token",
        ".",
        _DOTTED_START + r"([MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,})",
        probe=r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",
    ),
    _kind(
        "discord webhook",
        "/webhooks/",
        r"(?i)discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{5,25}/([A-Za-z0-9_-]{20,})",
    ),
    _kind("aws key id", "akia asia abia acca", _WORD_START + r"((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})(?![A-Za-z0-9])"),
    _kind(
        "aws secret",
        "aws",
        r"(?i)aws[a-z0-9_ -]{0,20}(?:secret|access)[a-z0-9_ -]{0,20}key\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?"
        r"([A-Za-z0-9/+=]{40})(?![A-Za-z0-9/+=])",
        in_word=False,
    ),
    _kind("google api key", "aiza", r"(AIza[A-Za-z0-9_-]{30,})"),
    _kind("google oauth", "gocspx- ya29.", r"(GOCSPX-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,})"),
    _kind("azure key", "accountkey= sharedaccesskey=", r"(?i)(?:Account|SharedAccess)Key=([A-Za-z0-9+/=]{40,})"),
    _kind(
        "stripe key",
        "_live_ _test_ whsec_",
        _START + r"((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{20,})",
    ),
    _kind(
        "twilio key",
        "sk ac",
        _WORD_START + r"((?:SK|AC)[0-9a-f]{32})(?![A-Za-z0-9])",
        probe=r"[KC][0-9a-f]{32}",
    ),
    _kind("sendgrid key", "sg.", _DOTTED_START + r"(SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,})"),
    _kind("npm token", "npm_", _START + r"(npm_[A-Za-z0-9]{30,})"),
    _kind("pypi token", "pypi-ag", r"(pypi-Ag[A-Za-z0-9_-]{20,})"),
    _kind("hugging face token", "hf_ api_org_", _START + r"((?:hf_|api_org_)[A-Za-z0-9]{30,})"),
    _kind("shopify token", "shp", r"(shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32})"),
    _kind("digitalocean token", "_v1_", r"(do[opr]_v1_[a-f0-9]{40,})"),
    _kind("vault token", "hvs. hvb.", _WORD_START + r"(hv[sb]\.[A-Za-z0-9_-]{24,})"),
    _kind("age key", "age-secret-key-", r"(AGE-SECRET-KEY-1[A-Z0-9]{20,})"),
    _kind(
        "json web token",
        "eyj",
        _DOTTED_START + r"(eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+)",
    ),
    _kind(
        "bearer token",
        "bearer",
        r"(?i)(?<![a-z])bearer\s{1,3}((?=[^\s\d]{0,64}\d)[A-Za-z0-9._~+/=-]{16,})",
        in_word=False,
    ),
    _kind(
        "authorization header",
        "authorization",
        r"(?i)authorization\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?(?:basic|bearer|bot|digest|token)\s{1,3}([^\s\"'\\,\[]{6,})",
        in_word=False,
    ),
    _kind(
        "password in a sentence",
        "password passphrase passwort contraseña пароль 密码 口令 पासवर्ड",
        r"(?i)(?:password|passphrase|passwort|contraseña|пароль|密码|口令|पासवर्ड)"
        r"(?:\s{1,3}(?:is|ist|lautet|es|—|–)\s{1,3}|\s{0,3}[是为：]\s{0,3})[\"'`“]?((?=[^\s]{0,64}\d)[^\s\"'`”，。,;]{6,})",
        in_word=False,
    ),
    # The user part cannot hold a slash, so two attempts never read the same text.
    _kind("password in a url", "://", r"(?<=://)[^\s/:@\"'<>]*+:([^\s/\"'<>]+)@", in_word=False),
)

# A private key whose beginning was cut off, read backwards from its last line: that line is of any
# length if the one before it is long.
_KEY_END = re.compile(r"-----END[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_LONGEST_KEY: Final = 16_384  # characters; RSA with 16,384 bits takes about 13,000
_BREAK = r"(?:\s|[nr]\\)"
_BODY = rf"(?:(?!{_BREAK})[A-Za-z0-9+/=])"
_BREAKS = re.compile(r"\A(?:\s|\\[nr])++")
_REVERSED_KEY = re.compile(rf"{_BREAK}*+(?:{_BODY}++{_BREAK}++(?={_BODY}{{16}}))?+(?:{_BODY}{{16,}}+{_BREAK}*+)*+")

_NAME = (
    r"(?P<strong>pass(?:word|wd|phrase|code)|pwd|secret|credential)"
    r"|(?P<weak>(?:api|access|private|signing|encryption|auth|master|client)[_-]?key|apikey|token"
    r"|(?<![a-z0-9])(?-i:KEY))"
)
_VALUE = (
    r"\\{1,7}\"(?P<nested>[^\"\\\n]++)\\{1,7}\""  # JSON in JSON, three deep
    r"|\"(?P<double>(?:[^\"\\\n]|\\.)++)\""
    r"|'(?P<single>(?:[^'\\\n]|\\.)++)'"
    r"|(?P<bare>[^\s\"'`\\,;&]++)"
)
# `max_tokens: 4096` is no assignment of a token: after a name comes nothing, or a `_suffix`.
_ASSIGNMENT = re.compile(
    rf"(?i)(?:{_NAME})(?:[_-][a-z0-9]{{1,16}}){{0,3}}\\{{0,7}}[\"']?(?P<sign>\s{{0,3}}(?:[:=]|=>|:=)\s{{0,3}})(?:{_VALUE})"
)
_ASSIGNMENT_HINTS: Final = ("pass", "pwd", "secret", "credential", "key", "token")

# What stands where a secret would: references, types, states, and marks of an earlier redaction.
_PLACEHOLDER = re.compile(
    r"(?i)\$\{?[a-z_][a-z0-9_]*+(?::?-[^}]*+)?\}?|[<{(\[].*|\*+|x{3,}|\.{2,}|none|null|nil|true|false|str|string|bytes"
    r"|secretstr|optional|required|missing|invalid|unset|empty|changed?|change-?me|wrong|expired|your[_-].*"
)
_CODE = re.compile(r"(?i)(?:os\.|process\.env|env\.|getenv).*|[\w.]++\(.*")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z_.]*+")
_CLOSERS: Final = ")]}>"


class Redactor:
    """Replaces credentials in a text by `[REDACTED]`.

    `secrets` are the configured ones; those shorter than six characters are left to the patterns.
    Its own marks stay as they are. It never raises, and takes time linear in the text.
    """

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        spellings = {
            spelling
            for secret in secrets
            if len(secret) >= SHORTEST_SECRET
            for spelling in (
                secret,
                _url_quoted(secret),
                json.dumps(secret)[1:-1],
                json.dumps(secret, ensure_ascii=False)[1:-1],
            )
        }
        # Longest first: a secret may be the beginning of another.
        self._exact = tuple(sorted((s for s in spellings if s not in MARK), key=lambda s: (-len(s), s)))

    def __call__(self, text: str) -> str:
        """`text` without credentials; everything else stays as it was."""
        for secret in self._exact:
            text = text.replace(secret, MARK)
        lowered = text.lower()
        long_words = " ".join([word for word in lowered.split() if len(word) >= LONG_WORD])
        for kind in KINDS:
            searched = long_words if kind.in_word else lowered
            for hint in kind.hints:  # a plain loop: this is asked 70 times for every text there is
                if hint in searched:
                    if kind.probe is None or kind.probe.search(text):
                        text = kind.pattern.sub(_replace_group, text)
                    break
        if "-----end" in lowered:
            text = _without_cut_keys(text)
        if any(hint in lowered for hint in _ASSIGNMENT_HINTS):
            text = _ASSIGNMENT.sub(_replace_value, text)
        return text


def _url_quoted(secret: str) -> str:
    return quote(secret.encode("utf-8", "replace"), safe="")


def _without_cut_keys(text: str) -> str:
    """Redact what stands before the end of a private key whose beginning is missing."""
    pieces: list[str] = []
    done = 0
    for end in _KEY_END.finditer(text):
        before = text[max(done, end.start() - _LONGEST_KEY) : end.start()]
        found = _REVERSED_KEY.match(before[::-1])
        key = _BREAKS.sub("", before[len(before) - found.end() :]) if found is not None else ""
        pieces += [text[done : end.start() - len(key)], MARK if key else "", end[0]]
        done = end.end()
    return "".join([*pieces, text[done:]])


def _replace_group(match: re.Match[str]) -> str:
    return _spliced(match, match.start(1), match.end(1)) if match[1] else match[0]


def _spliced(match: re.Match[str], start: int, end: int) -> str:
    whole, offset = match[0], match.start()
    return whole[: start - offset] + MARK + whole[end - offset :]


def _replace_value(match: re.Match[str]) -> str:
    """Replace an assigned value that is plausibly a secret."""
    group = next(name for name in ("nested", "double", "single", "bare") if match[name] is not None)
    value, start = match[group], match.start(group)
    if group == "bare" and MARK not in value:
        value = value.rstrip(_CLOSERS)
    if MARK in value or _PLACEHOLDER.fullmatch(value) or (group == "bare" and _CODE.fullmatch(value)):
        return match[0]
    quoted = group != "bare"
    secret = _plausible_password(value, match, quoted=quoted) if match["strong"] else _looks_random(value)
    return _spliced(match, start, start + len(value)) if secret else match[0]


def _plausible_password(value: str, match: re.Match[str], *, quoted: bool) -> bool:
    """A password may be any word, so prose and code are told by what surrounds the word."""
    if len(value) < 4:
        return False
    if quoted or not _PLAIN.fullmatch(value):
        return True
    if "=" in match["sign"]:
        return match["sign"].strip() == match["sign"]  # `PASSWORD=word`, but not the code `password = word`
    return match.string[match.end() : match.end() + 1] in ("", "\n", "\r")  # `password: word` and no sentence


def _looks_random(value: str) -> bool:
    """Whether a value is what a machine would make up, rather than a name, a path or a number."""
    if len(value) < 12 or "://" in value or value.startswith(("/", "./", "~/")) or " " in value:
        return False
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
