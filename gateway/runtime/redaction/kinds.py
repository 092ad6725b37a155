"""Credentials that have a form of their own, and what is worth knowing of a text before it is searched for one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

SHORTEST_RUN: Final = 15  # characters of a run (`Kind`) that is worth a look: most words are shorter
IN_RUN: Final = re.compile(r"[A-Za-z0-9_.=-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of credential. Group 1 of `pattern` is what is replaced.

    `starts`: literals with one of which every match begins, in lower case if the pattern takes any
    (`folded`); none where a match begins with no literal. `run`: how many characters out of `A-Za-z0-9_.=-`
    are next to each other in every match at least; 0 for less than `SHORTEST_RUN`. `needs`: a
    literal that is in every text with a match, so that nothing else is looked for without it.
    `probe`: a simpler pattern that finds something wherever `pattern` does, and begins with a literal.
    `within`: whether a run holds the literal as well, which then need not be looked for elsewhere.
    `foreign`: whether a literal has letters beyond ASCII.
    """

    name: str
    pattern: re.Pattern[str]
    starts: tuple[str, ...] = ()
    folded: bool = False
    run: int = 0
    needs: str = ""
    probe: re.Pattern[str] | None = None
    within: bool = False
    foreign: bool = False


# Where a token may begin: not inside a word, but right after an escaped line break of JSON text.
_START = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
_WORD_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_DOTTED_START = r"(?:(?<![A-Za-z0-9_.-])|(?<=\\[nrt]))"
_TOLD = (
    r"(?:\s{1,3}(?:is|ist|lautet|es|—|–)\s{1,3}|\s{0,3}[是为：]\s{0,3})[\"'`“]?((?=[^\s]{0,64}\d)[^\s\"'`”，。,;]{6,})"
)


def _kind(name: str, starts: str, pattern: str, *, run: int = 0, needs: str = "", probe: str | None = None) -> Kind:
    literals = tuple(starts.split())
    folded = pattern.startswith("(?i)")
    return Kind(
        name=name,
        pattern=re.compile(pattern),
        starts=literals,
        folded=folded,
        run=run,
        needs=needs,
        probe=None if probe is None else re.compile(probe),
        within=bool(run and literals) and not folded and all(map(IN_RUN.match, "".join(literals))),
        foreign=not starts.isascii(),
    )


KINDS: Final[tuple[Kind, ...]] = (
    # A block whose end was cut off loses the lines that look like its body.
    _kind(
        "private key",
        "-----BEGIN",
        r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"((?:[^-]|-(?!----))*+(?=-----END)|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)*+)",
        needs="key",
    ),
    _kind("openai key", "sk-", _START + r"(sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,}))", run=23),
    _kind("anthropic key", "sk-ant-", _START + r"(sk-ant-[A-Za-z0-9_-]{16,})", run=23),
    _kind("openrouter key", "sk-or-", _START + r"(sk-or-[A-Za-z0-9_-]{16,})", run=22),
    _kind(
        "model provider key",
        "gsk_ xai- pplx- r8_ fw_",
        _START + r"((?:gsk_|xai-|pplx-|r8_|fw_)[A-Za-z0-9]{20,})",
        run=23,
    ),
    _kind("github token", "ghp_ gho_ ghu_ ghs_ ghr_", r"(gh[pousr]_[A-Za-z0-9]{30,})", run=34),
    _kind("github fine-grained token", "github_pat_", r"(github_pat_[A-Za-z0-9_]{22,})", run=33),
    _kind(
        "gitlab token",
        "glpat- glptt- gldt- glrt- glsoat- glft- glimt- gloas- glcbt- glagent- glffct-",
        _START + r"(gl(?:pat|ptt|dt|rt|soat|ft|imt|oas|cbt|agent|ffct)-[A-Za-z0-9_.=-]{20,})",
        run=25,
    ),
    _kind("slack token", "xox xapp-", r"((?:xox[a-z][.-]|xapp-)[A-Za-z0-9.-]{10,})", run=15),
    _kind(
        "slack webhook",
        "hooks.slack.com/",
        r"(?i)hooks\.slack\.com/[a-z]{1,20}/([A-Za-z0-9/_-]{10,})",
        run=15,
    ),
    # A time stamp before a hash has the same form: plain hexadecimal is left alone.
    _kind(
        "telegram bot token",
        "",
        r"(?<!\d)(\d{6,12}:(?![0-9a-f]{30,64}(?![A-Za-z0-9_-]))[A-Za-z0-9_-]{30,50})",
        run=30,
        probe=r":[A-Za-z0-9_-]{30}",
    ),
    _kind(
        "discord token",
        "",
        _DOTTED_START + r"([MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,})",
        run=58,
        probe=r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",
    ),
    _kind(
        "discord webhook",
        "discord.com/api/ discordapp.com/api/",
        r"(?i)discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{5,25}/([A-Za-z0-9_-]{20,})",
        run=20,
    ),
    _kind(
        "aws key id",
        "AKIA ASIA ABIA ACCA",
        _WORD_START + r"((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})(?![A-Za-z0-9])",
        run=20,
    ),
    _kind(
        "aws secret",
        "aws",
        r"(?i)aws[a-z0-9_ -]{0,20}(?:secret|access)[a-z0-9_ -]{0,20}key\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?"
        r"([A-Za-z0-9/+=]{40})(?![A-Za-z0-9/+=])",
        needs="key",
    ),
    _kind("google api key", "AIza", r"(AIza[A-Za-z0-9_-]{30,})", run=34),
    _kind("google oauth", "GOCSPX- ya29.", r"(GOCSPX-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,})", run=25),
    _kind(
        "azure key",
        "accountkey= sharedaccesskey=",
        r"(?i)(?:Account|SharedAccess)Key=([A-Za-z0-9+/=]{40,})",
        needs="key",
    ),
    _kind(
        "stripe key",
        "sk_live_ sk_test_ rk_live_ rk_test_",
        _START + r"((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,})",
        run=18,
    ),
    _kind("stripe webhook secret", "whsec_", _START + r"(whsec_[A-Za-z0-9+/=]{20,})"),
    _kind("twilio key", "SK AC", _WORD_START + r"((?:SK|AC)[0-9a-f]{32})(?![A-Za-z0-9])", run=34),
    _kind("sendgrid key", "SG.", _DOTTED_START + r"(SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,})", run=36),
    _kind("npm token", "npm_", _START + r"(npm_[A-Za-z0-9]{30,})", run=34),
    _kind("pypi token", "pypi-Ag", r"(pypi-Ag[A-Za-z0-9_-]{20,})", run=27),
    _kind("hugging face token", "hf_ api_org_", _START + r"((?:hf_|api_org_)[A-Za-z0-9]{30,})", run=33),
    _kind("shopify token", "shpat_ shpca_ shppa_ shpss_", r"(shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32})", run=38),
    _kind("digitalocean token", "doo_v1_ dop_v1_ dor_v1_", r"(do[opr]_v1_[a-f0-9]{40,})", run=47),
    _kind("vault token", "hvs. hvb.", _WORD_START + r"(hv[sb]\.[A-Za-z0-9_-]{24,})", run=28),
    _kind("age key", "AGE-SECRET-KEY-1", r"(AGE-SECRET-KEY-1[A-Z0-9]{20,})", run=36),
    _kind(
        "json web token",
        "eyJ",
        _DOTTED_START + r"(eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+)",
        run=21,
    ),
    _kind("bearer token", "bearer", r"(?i)(?<![a-z])bearer\s{1,3}((?=[^\s\d]{0,64}\d)[A-Za-z0-9._~+/=-]{16,})"),
    _kind(
        "authorization header",
        "authorization",
        r"(?i)authorization\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?(?:basic|bearer|bot|digest|token)\s{1,3}([^\s\"'\\,\[]{6,})",
    ),
    _kind(
        "password in a sentence",
        "password passphrase passwort",
        rf"(?i)(?:password|passphrase|passwort){_TOLD}",
        needs="pass",
    ),
    _kind(
        "password in a sentence, not in English",
        "contraseña пароль 密码 口令 पासवर्ड",
        rf"(?i)(?:contraseña|пароль|密码|口令|पासवर्ड){_TOLD}",
    ),
    # The user part cannot hold a slash, so two attempts never read the same text.
    _kind("password in a url", "://", r"://[^\s/:@\"'<>]*+:([^\s/\"'<>]+)@", needs="@"),
)
