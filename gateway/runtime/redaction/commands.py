"""Passwords in the options of commands; each stands after a blank and a dash."""

from __future__ import annotations

import re
from typing import Final

from gateway.runtime.redaction.kind import Kind
from gateway.runtime.redaction.plausible import holds_mixed

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
