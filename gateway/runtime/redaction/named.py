"""Credentials beside a name such as `password`: in elements, tables, options and declarations.

A match begins where `assignments.assigned` says that a name may begin.
"""

from __future__ import annotations

import re
from typing import Final

from gateway.runtime.redaction.places import Kind
from gateway.runtime.redaction.plausible import holds_chosen, holds_mixed

_SECRET_NAME = (
    r"(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|api[_-]?key|private[_-]?key|access[_-]?key|credentials?)"
)
_DASHES: Final = re.compile(r"(?:\A|[\s\"'=])--(?:[A-Za-z0-9]{1,16}-){0,3}\Z")
_LONGEST_NAME: Final = 60  # characters of an option before its last word


def _is_option(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - _LONGEST_NAME) : match.start()]
    return holds_chosen(match) and _DASHES.search(before) is not None


NAMED: Final[tuple[Kind, ...]] = (
    Kind(
        "element",
        "",
        rf"(?i){_SECRET_NAME}[\w.:-]{{0,20}}+>\s{{0,3}}([^<>{{}}\s][^<>{{}}\n]{{3,200}}+)</",
        plausible=holds_chosen,
        needs="</",
    ),
    Kind(
        "attribute",
        "",
        rf"(?i){_SECRET_NAME}[\w.-]{{0,20}}+\"\s{{1,3}}value=\"([^\"<>{{}}\n]{{4,200}}+)\"",
        plausible=holds_chosen,
        needs='value="',
    ),
    Kind(
        "property",
        "",
        rf"(?i){_SECRET_NAME}[\w.-]{{0,20}}+\">\s{{0,3}}([^<>{{}}\s]{{4,200}}+)\s{{0,3}}</",
        plausible=holds_mixed,
        needs="</",
    ),
    Kind(
        "cell of a table",
        "",
        rf"(?i){_SECRET_NAME}[`*\"]{{0,2}}(?:\s{{0,20}}(?:[|│┃]|</t[dh]>\s{{0,9}}<td>)[ `\t]{{0,20}}|\t{{1,3}})"
        r"([^\s|│┃()`<>]{4,200}+)[ `\t]{0,20}(?=[|│┃\n<]|\Z)",
        plausible=holds_mixed,
    ),
    Kind(
        "default of a variable",
        "",
        rf"(?i){_SECRET_NAME}[\w-]{{0,20}}+\"\s{{0,3}}\{{(?:(?!default)[^}}]){{0,200}}+default\s{{0,20}}=\s{{0,20}}\"([^\"\n]{{4,200}}+)\"",
        plausible=holds_chosen,
        needs="default",
    ),
    Kind(
        "option",
        "",
        rf"(?i){_SECRET_NAME}(?:[\"'],?\s{{1,3}}|\s{{1,3}}|=)[\"']?((?![-<$\[{{(])[^\s\"'<>\[\]]{{4,200}}+)",
        plausible=_is_option,
    ),
    Kind(
        "passphrase of words",
        "",
        r"(?im)passphrase\\?[\"']?\s{0,3}[:=]\s{0,3}((?:[a-z]{3,12}[ -]){3,9}+[a-z]{3,12})(?=\s{0,3}$|\\[nr])",
        needs="passphrase",
    ),
)


# -- options of commands -------------------------------------------------------------------------------


# A command up to its option, over lines that end in a backslash: the option of a command further on is another's.
_OPTIONS = r"(?:[^\n|;&\"'\\]|\\\r?\n|\"[^\"\n]{0,80}\"|'[^'\n]{0,80}'){0,80}?"

DASH: Final = "-"
PASS: Final = "pass:"  # with which the one kind begins that has no option of its own
# In a text without any of these options are none of the others.
OPTION: Final = re.compile(r"-(?<=\s-)(?:[abpuwPU]|-(?:user|proxy-user|cookie))")
COMMANDS: Final[tuple[Kind, ...]] = (
    Kind(
        "user and password of curl",
        "curl wget etcdctl",
        rf"\b(?:curl|wget|etcdctl)\b{_OPTIONS}\s(?:-u|-U|--user|--proxy-user|-a)"
        r"[ =]{0,2}[\"']?[^\s:\"'$]{1,64}:((?!\$)[^\s\"']{3,200}+)",
    ),
    Kind(
        "cookie of curl",
        "curl",
        rf"\bcurl\b{_OPTIONS}\s(?:-b|--cookie)[ =]{{0,2}}[\"']?[^\s=\"']{{1,64}}=([^\s\"']{{8,4096}}+)",
    ),
    Kind(
        "password of mysql",
        "mysql mariadb",
        rf"\b(?:mysql|mariadb)[a-z-]{{0,12}}\b{_OPTIONS}\s-p[\"']?((?!\$)[^\s\"'-][^\s\"']{{3,200}}+)",
    ),
    Kind(
        "password of sshpass",
        "sshpass",
        r"\bsshpass\s{1,3}-p\s{0,3}[\"']?((?!\$)(?:(?<=[\"'])[^\"'\n]{3,200}+|[^\s\"']{3,200}+))",
    ),
    Kind(
        "password of a sign-in",
        "login",
        rf"\blogin\b{_OPTIONS}\s-p[ =]{{0,2}}[\"']?((?!\$)[^\s\"']{{4,200}}+)",
        plausible=holds_mixed,
    ),
    Kind("password of redis", "redis-cli", rf"\bredis-cli\b{_OPTIONS}\s-a\s{{1,3}}[\"']?((?!\$)[^\s\"']{{4,200}}+)"),
    Kind("password of ldap", "ldap", rf"\bldap[a-z]{{2,12}}\b{_OPTIONS}\s-w\s{{1,3}}[\"']?((?!\$)[^\s\"']{{4,200}}+)"),
    Kind(
        "password of samba",
        "smbclient rpcclient",
        rf"\b(?:smb|rpc)client\b{_OPTIONS}\s-U\s{{1,3}}[\"']?[^\s%\"']{{1,64}}%((?!\$)[^\s\"']{{4,200}}+)",
    ),
    Kind(
        "password of an archive",
        "zip unzip 7z",
        rf"\b(?:zip|unzip|7z[a-z]?)\b{_OPTIONS}\s(?:-P\s{{0,3}}|-p)[\"']?((?!\$)[^\s\"']{{4,200}}+)",
        plausible=holds_mixed,
    ),
    Kind("password of openssl", PASS, r"(?<=[\s=\"'])pass:((?!\$)[^\s\"']{4,200}+)", plausible=holds_mixed),
)
