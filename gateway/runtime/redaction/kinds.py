"""Credentials that have a form of their own."""

from __future__ import annotations

import re
from typing import Final

from gateway.runtime.redaction.places import Kind
from gateway.runtime.redaction.plausible import (
    ends_mixed,
    ends_random,
    holds_cookies,
    holds_mixed,
    is_mixed_twice,
    is_strewn,
    names_nothing,
)

# (alphabet, least characters after the prefix, prefixes); a prefix is a literal
_PREFIXES: Final = (
    (r"[0-9a-f]", 32, "dapi key- shippo_live_ shippo_test_ lsv2_pt_ lsv2_sk_ access-sandbox- access-production-"),
    (r"[0-9a-f_]", 50, "sgp_"),
    (r"[0-9a-f]", 32, "fc-"),
    (r"[0-9a-f]", 48, "sk_ key_"),
    (r"[a-z0-9]", 44, "csk- napi_ hcaik_"),
    (r"[A-Z0-9]", 40, "rpa_"),
    (r"[0-9a-f]", 40, "pul- sgp_ sbp_ xkeysib- sntryu_ sntrys_ rubygems_ phc_ phx_"),
    (r"[A-Za-z0-9]", 20, "tr_dev_ tr_prod_ LTAI AQVN nfp_ tgp_v1_ pcsk_ e2b_ sbv_ ddp_ PMAK- vercel_ CFPAT-"),
    (r"[A-Za-z0-9]", 30, "tvly- ico- EZAK EZTK EAAC EAAM EAAG AKCp pnu_ lin_api_ lin_oauth_"),
    (r"[A-Za-z0-9]", 30, "ntn_ p8e- dp.pt. dp.st. dp.ct."),
    (r"[A-Za-z0-9_-]", 24, "sb_secret_ bb_live_ wandb_v1_ CCIPAT_"),
    (r"[A-Za-z0-9]", 32, "AKID"),
    (r"[A-Za-z0-9_-]", 24, "figd_ dckr_pat_ dckr_oat_ tskey- nvapi-"),
    (r"[A-Za-z0-9_-]", 24, "glsa_ glc_ HRKU- rdme_ tfp_ NRAK- NRII- NRJS-"),
    (r"[A-Za-z0-9_=-]", 30, "ATATT3 ATCTT3 CLOJARS_ duffel_test_ duffel_live_ fio-u- fo1_"),
    (r"[A-Za-z0-9_=-]", 30, "pscale_tkn_ pscale_oauth_ pscale_pw_"),
    (r"[A-Za-z0-9_-]", 22, "dt0c01. dt0s01. sq0atp- sq0csp- FLWSECK_TEST- FLWSECK- amzn.mws."),
    (r"[0-9a-f]", 40, "squ_ sqp_ sqa_ rootly_ s-s4t2ud- s-s4t2af-"),
    (r"[0-9a-f_]", 40, "zpka_"),
    (r"[a-z0-9]", 43, "oy2"),
    (r"[A-Z0-9]", 26, "API-"),
    (r"[A-Za-z0-9]", 22, "rnd_ aio_ esecret_"),
    (r"[A-Za-z0-9]", 40, "cmVmdGtu"),
    (r"[A-Za-z0-9_-]", 40, "tk-us- tk-eu- EAAA sl."),
    (r"[A-Za-z0-9-]", 20, "sk_prod_ bkua_ voyage- key_live_ key_test_ whsk_"),
)  # fmt: skip


PREFIXES: Final = " ".join(names for _, _, names in _PREFIXES)
_ALTERNATIVES: Final = [
    f"(?:{'|'.join(map(re.escape, names.split()))}){alphabet}{{{least},}}" for alphabet, least, names in _PREFIXES
]
PREFIXED: Final = f"({'|'.join(_ALTERNATIVES)})"
SHORTEST: Final = 24  # characters of the shortest of these tokens that count as a run

# Where a token may begin: not inside a word, but right after an escaped line break of JSON text, and after the
# underscores with which Markdown begins an emphasis.
_EMPHASIS = r"(?<=(?<![A-Za-z0-9_.-])_)|(?<=(?<![A-Za-z0-9_.-])__)"
_START = rf"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt])|{_EMPHASIS})"
_FRESH_START = rf"(?:(?<![A-Za-z0-9_\\-])|(?<=\\[nrt])|{_EMPHASIS})"  # nor at the letter of that line break
_WORD_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_DOTTED_START = rf"(?:(?<![A-Za-z0-9_.-])|(?<=\\[nrt])|{_EMPHASIS})"
_TOLD = (
    r"(?:\s{1,3}(?:is|ist|lautet|es|est|è|é|—|–)(?:\s?:)?\s{1,3}|\s{0,3}[是为：]\s{0,3})[\"'`“]?"
    r"((?=[^\s]{0,64}\d)[^\s\"'`”，。,;]{6,})"
)
_TOLD_ABROAD = (
    r"(?:\s{1,3}(?:is|ist|lautet|es|est|è|é|er|är|on|je|to|là|היא|هي|—|–)(?:\s?:)?\s{1,3}|\s{0,3}[:=]\s{0,3})"
    r"[\"'`“«]?((?=[^\s]{0,64}\d)[^\s\"'`”»，。,;&<]{6,})"
)
# In the scripts of East Asia words have no blanks between them, and a password is of ASCII.
_TOLD_IN_EAST_ASIA = (
    r"\s{0,3}(?:是|为|為|は|는|은|[：:=＝])\s{0,3}[\"'`“「]?((?=[!-~]{0,64}\d)[!#-%(-+\--:=?-_a-~]{6,})"
)
_OF_WHAT = r"(?:\s{1,3}(?:(?:d(?:el|ella|i|o|a|e|u|es)|per|pour|para|fürs?|do|от)\s{1,3}|dell')[\w-]{2,12}+)"
_OF_A_NETWORK = (
    r"\s{1,3}(?:(?:d[a-zé]{1,4}|per|pour|para|fürs?|do|от)\s{1,3}(?:la\s|il\s|le\s|das\s)?|dell')?"
    r"(?:wi-?fi|wlan|wpa2?|rete|rede|router|modem|internet|réseau|вайфа[йя])"
)

KINDS: Final[tuple[Kind, ...]] = (
    # A block whose end was cut off loses the lines that look like its body.
    Kind(
        "private key",
        "-----BEGIN",
        r"-----BEGIN[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"((?:[^-]|-(?!----))*+(?=-----END)|(?:(?:\s|\\[nr])++(?:Proc-Type|DEK-Info|Version|Comment):[^\n\\]{0,100}+)*+"
        r"(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)*+)",
        needs="key",
    ),
    Kind(
        "openai key",
        "sk-",
        _START + r"(sk-(?:(?:proj|svcacct|admin|lf|oh)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,}"
        r"|(?=[A-Za-z_]{0,64}\d)[A-Za-z0-9_]{20,}))",
        run=22,
        plausible=names_nothing,
    ),
    Kind("anthropic key", "sk-ant-", _START + r"(sk-ant-[A-Za-z0-9_-]{16,})", run=23),
    Kind("openrouter key", "sk-or-", _START + r"(sk-or-[A-Za-z0-9_-]{16,})", run=22),
    Kind(
        "model provider key",
        "gsk_ xai- pplx- r8_ fw_",
        _START + r"((?:gsk_|xai-|pplx-|r8_|fw_)[A-Za-z0-9]{20,})",
        run=23,
    ),
    Kind("github token", "ghp_ gho_ ghu_ ghs_ ghr_", r"(gh[pousr]_[A-Za-z0-9]{30,})", run=34),
    Kind("github fine-grained token", "github_pat_", r"(github_pat_[A-Za-z0-9_]{22,})", run=33),
    Kind(
        "gitlab token",
        "glpat- glptt- gldt- glrt- glsoat- glft- glimt- gloas- glcbt- glagent- glffct-",
        _START + r"(gl(?:pat|ptt|dt|rt|soat|ft|imt|oas|cbt|agent|ffct)-[A-Za-z0-9_.=-]{20,})",
        run=25,
    ),
    Kind("slack token", "xox xapp-", r"((?:xox[a-z][.-]|xapp-)[A-Za-z0-9.-]{10,})", run=15, plausible=names_nothing),
    Kind("slack webhook", "hooks.slack.com/", r"(?i)hooks\.slack\.com/[a-z]{1,20}/([A-Za-z0-9/_-]{10,})", run=15),
    # A time stamp before a hash has the same form, and so has the number of an account before a name ("arn:aws:…"):
    # what has no capital is left alone; of a hundred million tokens one has none.
    Kind(
        "telegram bot token",
        "",
        r"(?<!\d)(\d{6,12}:(?=[a-z0-9_-]{0,49}[A-Z])[A-Za-z0-9_-]{30,50})",
        run=30,
        probe=r":[A-Za-z0-9_-]{30}",
    ),
    Kind(
        "discord token",
        "",
        _DOTTED_START + r"([MNO][A-Za-z0-9_-]{22,28}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,})",
        run=58,
        probe=r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",
    ),
    Kind(
        "discord webhook",
        "discord",
        r"(?i)discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{5,25}/([A-Za-z0-9_-]{20,})",
        run=20,
        needs="hook",
    ),
    Kind(
        "aws key id",
        "AKIA ASIA ABIA ACCA",
        _WORD_START + r"((?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})(?![A-Za-z0-9])",
        run=20,
    ),
    Kind(
        "aws secret",
        "aws",
        r"(?i)aws[a-z0-9_ -]{0,20}(?:secret|access)[a-z0-9_ -]{0,20}key\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?"
        r"([A-Za-z0-9/+=]{40})(?![A-Za-z0-9/+=])",
        needs="key",
    ),
    Kind("google api key", "AIza", r"(AIza[A-Za-z0-9_-]{30,})", run=34),
    Kind("google oauth", "GOCSPX- ya29.", r"(GOCSPX-[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{20,})", run=25),
    Kind(
        "azure key",
        "accountkey= sharedaccesskey=",
        r"(?i)(?:Account|SharedAccess)Key=([A-Za-z0-9+/=]{40,})",
        needs="key",
    ),
    Kind(
        "stripe key",
        "sk_live_ sk_test_ rk_live_ rk_test_",
        _START + r"((?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,})",
        run=18,
    ),
    Kind("stripe webhook secret", "whsec_", _START + r"(whsec_[A-Za-z0-9+/=]{20,})"),
    Kind("twilio key", "SK AC", _WORD_START + r"((?:SK|AC)[0-9a-f]{32})(?![A-Za-z0-9])", run=34),
    Kind("sendgrid key", "SG.", _DOTTED_START + r"(SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,})", run=36),
    Kind("npm token", "npm_", _START + r"(npm_[A-Za-z0-9]{30,})", run=34),
    Kind("pypi token", "pypi-Ag", r"(pypi-Ag[A-Za-z0-9_-]{20,})", run=27),
    Kind("hugging face token", "hf_ api_org_", _START + r"((?:hf_|api_org_)[A-Za-z0-9]{30,})", run=33),
    Kind("shopify token", "shpat_ shpca_ shppa_ shpss_", r"(shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32})", run=38),
    Kind("digitalocean token", "doo_v1_ dop_v1_ dor_v1_", r"(do[opr]_v1_[a-f0-9]{40,})", run=47),
    Kind("vault token", "hvs. hvb.", _WORD_START + r"(hv[sb]\.[A-Za-z0-9_-]{24,})", run=28),
    Kind("age key", "AGE-SECRET-KEY-1", r"(AGE-SECRET-KEY-1[A-Z0-9]{20,})", run=36),
    Kind(
        "json web token", "eyJ", _DOTTED_START + r"(eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+)", run=21
    ),
    Kind("bearer token", "bearer", r"(?i)(?<![a-z])bearer\s{1,3}((?=[^\s\d]{0,64}\d)[A-Za-z0-9._~+/=-]{16,})"),
    Kind(
        "authorization header",
        "auth",
        r"(?i)authorization\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?(?:basic|bearer|bot|digest|token)\s{1,3}((?!\$\{)[^\s\"'\\,\[]{6,})",
    ),
    Kind(
        "password in a sentence",
        "password passphrase passwort",
        rf"(?i)(?:password|passphrase|passwort){_TOLD}",
        needs="pass",
    ),
    Kind(
        "password in a sentence, not in English",
        "contraseña пароль पासवर्ड şifre hasło lösenord jelszó mật كلمة סיסמה κωδικός รหัสผ่าน",
        rf"(?i)(?:contraseña|пароль|पासवर्ड|şifre(?:si)?|hasło|lösenord(?:et)?"
        rf"|jelszó|mật khẩu|كلمة (?:المرور|السر)|סיסמה|κωδικός|รหัสผ่าน)(?:{_OF_A_NETWORK})?{_TOLD_ABROAD}",
    ),
    Kind(
        "password in a sentence, in the scripts of East Asia",
        "密码 密碼 口令 パスワード 비밀번호",
        rf"(?:密码|密碼|口令|パスワード|비밀번호){_TOLD_IN_EAST_ASIA}",
    ),
    Kind(
        "password in a sentence, in other languages of Latin letters",
        "wachtwoord salasana adgangskode heslo parola sandi",
        rf"(?i)(?:wachtwoord|salasana|adgangskoden?|heslo|parola|(?<=kata )sandi){_TOLD_ABROAD}",
    ),
    Kind(
        "password of something, and in more words",
        "password passwort kennwort senha palavra mot mdp",
        rf"(?i)(?<![a-z])(?:(?:password|passwort)(?!\s{{0,3}}[:=])|kennwort|senha|palavra[ -]passe|mot de passe|mdp)"
        rf"(?:{_OF_A_NETWORK}|{_OF_WHAT}){{0,2}}{_TOLD_ABROAD}",
    ),
    Kind(
        "key of a network",
        "chiave chave codice clave wifi wi-fi wlan",
        rf"(?i)(?:(?<![a-z])(?:chiave|chave|codice|clave){_OF_A_NETWORK}{_OF_WHAT}?"
        rf"|(?:(?<=clé )|(?<=clé du )|(?<=clé de ))(?:wi-?fi|wlan)|(?:wi-?fi|wlan)-(?:schlüssel|key)){_TOLD_ABROAD}",
    ),
    Kind(
        "pin in a sentence",
        "pin",
        r"(?i)(?<![a-z])(?:pin(?:\s{1,3}d(?:el|ella|i|o|a|e)\s{1,3}(?:m(?:io|ia|eu|inha)\s{1,3})?[\w-]{2,12}+)?\s{1,3}[èé]"
        r"|(?:(?<=my )|(?<=mein )|(?<=meine )|(?<=mon )|(?<=mi ))pin(?:[ -]?(?:code|nummer))?\s{1,3}(?:is|ist|est|es)"
        r"|(?:(?<=codice )|(?<=código ))pin\s{0,3}:)\s{1,3}(\d{4,8}+)(?![\d.,:])",
    ),
    Kind(
        "key of an api in a sentence",
        "api",
        r"(?i)(?<![a-z])api[ -]key\s{0,3}(?:is|ist|est|es|è|é|:|=)\s{0,3}[\"'`“]?"
        r"((?=[^\s\d]{0,64}\d)[A-Za-z0-9._~+/=-]{16,})",
        needs="key",
        plausible=holds_mixed,
    ),
    Kind(
        "password of chpasswd",
        "echo printf",
        r"\b(?:echo|printf)\s{1,3}[\"']?[\w.-]{1,32}:((?!\$)[^\s\"'|]{3,200}+)[\"']?\s{0,3}\|\s{0,3}(?:sudo\s{1,3})?chpasswd",
        needs="pass",
    ),
    Kind(
        "password given to chpasswd",
        "chpasswd",
        r"\bchpasswd\s{1,3}<<<\s{0,3}[\"']?[\w.-]{1,32}:((?!\$)[^\s\"'|]{3,200}+)",
    ),
    Kind(
        "cookie of a browser",
        '"name"',
        r"(?i)\"name\"\s{0,3}:\s{0,3}\"[^\"\n]{0,64}?(?:sess|sid|auth|token|jwt)[^\"\n]{0,64}+\"\s{0,3},"
        r"\s{0,3}\"value\"\s{0,3}:\s{0,3}\"([^\"\n]{12,4096}+)\"",
        plausible=holds_mixed,
    ),
    # The user part cannot hold a slash, so two attempts never read the same text.
    Kind("password in a url", "://", r"://[^\s/:@\"'<>]*+:((?!\[|\$\{)[^\s/\"'<>]+)@", needs="@"),
    # With a slash inside it must not be a port and a path: `http://localhost:4873/@scope/name`.
    Kind(
        "password in a url, with a slash",
        "://",
        r"://[^\s/:@\[\"'<>]{0,128}+:((?!\d{1,5}[/?#]|\$\{)[^\s\"'<>@]{1,256}+)@(?=[A-Za-z0-9.-]{1,253}+[:/?\s\"'#]|[A-Za-z0-9.-]{1,253}+\Z)",
        needs="@",
    ),
    Kind(
        "token in a url",
        "://",
        r"://((?=[^\s/:@]{0,64}\d)[A-Za-z0-9_-]{20,256}+)(?::x-oauth-basic)?@",
        run=20,
        needs="@",
    ),
    Kind("oracle's url", ":thin:", r"(?i):thin:[^\s/@\"']{1,64}/([^\s@\"']{3,128}+)@", needs="@"),
    Kind("vendor's token", PREFIXES, _DOTTED_START + PREFIXED, run=SHORTEST, heads=True, plausible=names_nothing),
    # Prefixes nobody knows yet. Ids have such prefixes, too, but are shorter or in one case.
    Kind(
        "token with a prefix",
        "",
        _FRESH_START + r"([A-Za-z][A-Za-z0-9]{1,11}(?:_[A-Za-z0-9]{1,8}){0,2}_[A-Za-z0-9]{32,}+)(?![.(])",
        run=33,
        probe=r"_[A-Za-z0-9]{32}",
        plausible=ends_mixed,
    ),
    Kind(
        "token with a prefix and a hyphen",
        "",
        _FRESH_START + r"((?!sha\d)[A-Za-z][A-Za-z0-9]{1,11}(?:-[A-Za-z0-9]{1,8}){0,2}-[A-Za-z0-9]{32,}+)(?![.(])",
        run=33,
        probe=r"-[A-Za-z0-9]{32}",
        plausible=ends_mixed,
    ),
    Kind(
        "token of two parts with a prefix",
        "",
        _FRESH_START
        + r"([A-Za-z0-9]{2,8}_[A-Za-z0-9]{6,29}_[A-Za-z0-9]{20,64}+|[A-Za-z0-9]{27}_[A-Za-z0-9]{20,64}+)(?![.(])",
        run=30,
        probe=r"_[A-Za-z0-9]{20}",
        plausible=is_mixed_twice,
    ),
    # The prefix says that it is a secret, whosever it is.
    Kind(
        "token whose prefix tells",
        "",
        _FRESH_START + r"((?:[a-z][a-z0-9]{1,9}[_-]){0,2}(?:sk|rk|pat|oat|secret|apikey|live|prod)"
        r"(?:[_-](?:live|test|prod|dev|user|apikey))?[_-][A-Za-z0-9]{16,}+(?:[_-][A-Za-z0-9]{1,64}+){0,8})(?![.(])",
        run=17,
        probe=r"[_-](?=[A-Za-z0-9]{16})(?:(?<=[sr]k.)|(?<=[po]at.)|(?<=dev.)|(?<=live.|prod.|user.|test.)"
        r"|(?<=secret.|apikey.))",
        plausible=is_strewn,
    ),
    Kind(
        "dotted token",
        "",
        _DOTTED_START
        + r"([a-z][a-z0-9_]{0,9}\.(?:[A-Za-z0-9]{8}\.)?(?:[A-Za-z0-9_-]{20,}+\.){1,3}[A-Za-z0-9_-]{20,}+)(?![.(])",
        run=21,
        probe=r"\.[A-Za-z0-9_-]{20,}+\.[A-Za-z0-9_-]{20}",
        plausible=ends_random,
    ),
    Kind(
        "uuid that is a key",
        "pat- pat_ sdk- sdk_ sk- sk_ waka- waka_ xaat- xaat_ xapt- xapt_ persona- persona_",
        _START + r"((?:pat|sdk|sk|waka|xaat|xapt|persona)(?:[-_][a-z0-9]{2,10})?[-_]"
        r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})",
        run=39,
    ),
    Kind("yandex token", "t1.", _DOTTED_START + r"(t1\.[A-Za-z0-9_=-]{4,64}+\.[A-Za-z0-9_-]{80,}+={0,2})", run=80),
    Kind("fly token", "fm1a_ fm1r_ fm2_", _START + r"(fm(?:1a|1r|2)_[A-Za-z0-9+/=]{80,})"),
    Kind("mailchimp key", "", r"(?<![A-Za-z0-9])([0-9a-f]{32}-us\d{1,2})(?![A-Za-z0-9])", run=35, probe=r"-us"),
    Kind(
        "1password secret key",
        "A3-",
        _START + r"(A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3})",
        run=39,
    ),
    Kind("asana token", "", r"(?<![\d/])([12]/\d{13,20}/\d{13,20}:[0-9a-f]{32})", run=32, probe=r":[0-9a-f]{32}"),
    Kind(
        "bitwarden token",
        "0.",
        _DOTTED_START + r"(0\.[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\.[A-Za-z0-9]{30}:[A-Za-z0-9+/]{20,}={0,2})",
    ),
    Kind(
        "rapidapi key",
        "",
        r"(?<![A-Za-z0-9])([0-9a-f]{10}msh[0-9a-f]{15}p1[0-9a-f]{6}jsn[0-9a-f]{12})(?![A-Za-z0-9])",
        run=50,
        probe=r"msh[0-9a-f]{15}",
    ),
    Kind(
        "zhipu key",
        "",
        r"(?<![A-Za-z0-9.])([0-9a-f]{32}\.[A-Za-z0-9]{16})(?![A-Za-z0-9.])",
        run=49,
        probe=r"\.[A-Za-z0-9]{16}(?![A-Za-z0-9.])",
        plausible=ends_mixed,
    ),
    Kind("braintree token", "access_token$", r"(access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[0-9a-f]{32})"),
    Kind(
        "okta token alone",
        "okta",
        r"(?i)okta[^\n]{0,80}?(?<![a-z0-9_-])(00[a-z0-9_-]{40})(?![a-z0-9_-])",
        run=42,
        plausible=holds_mixed,
    ),
    Kind("okta token", "SSWS", r"SSWS\s{1,3}([A-Za-z0-9_-]{20,}+)", plausible=holds_mixed),
    Kind("service account token", "ops_eyJ", r"(ops_eyJ[A-Za-z0-9+/]{100,}={0,3})"),
    Kind(
        "azure secret",
        "",
        r"(?<![A-Za-z0-9_~.-])([A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34})(?![A-Za-z0-9_~.-])",
        needs="~",
        probe=r"Q~[A-Za-z0-9_~.-]{31}",
    ),
    Kind(
        "terraform token",
        "",
        r"(?<![A-Za-z0-9])([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{50,})",
        run=73,
        probe=r"atlasv1\.",
    ),
    Kind("airtable token", "pat", _DOTTED_START + r"(pat[A-Za-z0-9]{14}\.[0-9a-f]{64})", run=82),
    Kind("cloudflare key", "v1.0-", _DOTTED_START + r"(v1\.0-[0-9a-f]{24}-[0-9a-f]{100,})", run=130),
    Kind("google refresh token", "1//0", r"(?<![A-Za-z0-9/])(1//0[A-Za-z0-9_-]{30,})", run=31),
    Kind("openshift token", "sha256~", r"(?<![A-Za-z0-9])(sha256~[A-Za-z0-9_-]{40,})", run=40),
    Kind("clickhouse key", "4b1d", _START + r"(4b1d[A-Za-z0-9]{38})(?![A-Za-z0-9])", run=42),
    Kind("teams webhook", "webhook.office.com/", r"(?i)webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{30,}+)"),
    Kind(
        "signature of a url",
        "sig= signature=",
        r"(?i)(?<![a-z])(?:sig|signature)=([A-Za-z0-9%+/_~=-]{20,}+)",
        plausible=holds_mixed,
    ),
    Kind("key in a query", "?key= &key=", r"[?&]key=([A-Za-z0-9_-]{16,}+)", run=20, plausible=holds_mixed),
    Kind(
        "cookie",
        "cookie:",
        r"(?i)cookie:\s{0,3}((?=[^\s=;,]{1,64}+=)(?:[^\s\"'\\;]"
        r"|;[ ](?=[^\s=;,]{1,64}+=)(?!(?:path|domain|expires|max-age|samesite)=)){8,4096}+)",
        plausible=holds_cookies,
    ),
    Kind(
        "session",
        "sess",
        r"(?i)sess(?:ion)?[_-]?id\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?((?:s%3A|s:)?[A-Za-z0-9._~+/=-]{20,}+)",
        plausible=holds_mixed,
    ),
    Kind(
        "authorization header, other schemes",
        "auth",
        r"(?i)authorization\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?(?:api-?key|key|negotiate|ntlm|hawk|splunk|snowflake)\s{1,3}([^\s\"'\\,\[]{6,})",
    ),
    Kind("secure string", "SecureString", r"SecureString\s{1,3}(?:-String\s{1,3})?[\"']([^\"'$\n]{4,200}+)[\"']"),
    # Separators here are those of the file, or of the file as a text of JSON.
    Kind(
        "netrc",
        ("machine", "default login"),
        r"\b(?:machine\s{1,20}[^\s\"']{1,128}|default(?= login))"
        r"\s{1,20}login\s{1,20}[^\s\"']{1,128}\s{1,20}password\s{1,20}([^\s\"'\\]{3,200}+)",
        needs="pass",
    ),
    Kind(
        "pgpass",
        "",
        r"(?<![A-Za-z0-9.*:-])[A-Za-z0-9.*-]{1,128}+:(?:\d{2,5}|\*):[A-Za-z_*][\w-]{0,63}+:[A-Za-z_][\w.-]{0,63}+:([^\s:/\"'\\]{4,128}+)(?![:/])",
        needs=":",
        probe=r":(?:\d{2,5}|\*):[A-Za-z_*][\w-]{0,63}+:[A-Za-z_]",
        plausible=holds_mixed,
    ),
    Kind("docker's auth", "auth", r"(?i)\bauth\\?[\"']\s{0,3}:\s{0,3}\\?[\"']([A-Za-z0-9+/]{12,}+={0,2})"),
    Kind("npm's auth", "auth", r"(?i)(?<=_)auth\s{0,3}=\s{0,3}[\"']?([A-Za-z0-9+/]{8,}+={0,2})"),
    Kind(
        "hash of a password",
        "",
        r"\$(?:2[aby]|1|5|6|y|argon2(?:id|i|d))\$([A-Za-z0-9./$,=+]{30,}+)",
        needs="$",
        probe=r"\$(?:2[aby]|1|5|6|y|argon2(?:id|i|d))\$",
    ),
    Kind("putty key", "Private-Lines:", r"Private-Lines:\s{0,3}\d{1,4}((?:(?:\s|\\[nr])++[A-Za-z0-9+/=]{16,}+)++)"),
    Kind(
        "words of a wallet",
        "mnemonic seed recovery",
        r"(?i)(?:mnemonic|seed|recovery)(?:[ _-](?:phrase|words?|key|seed)){0,2}"
        r"\\?[\"']?\s{0,3}(?:[:=]|is|are)\s{0,3}\\?[\"']?((?:[a-z]{3,8}[ ,]{1,2}){11,23}+[a-z]{3,8})",
    ),
)
