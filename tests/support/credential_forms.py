"""150 forms in which a credential is seen in the wild, made when a test runs: no scanner takes this file for a leak.

Which forms there are is taken from the field's scanners, as facts: the rules of gitleaks (config/gitleaks.toml,
2025) name the vendors' prefixes, lengths and `curl` options; the plug-ins of detect-secrets (keyword, basic_auth,
private_key, azure, npm, 2025) name the words of assignments. Every secret is made up here.

Each second form, `HELD_BACK`, was left out while the patterns were written.
"""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

ALNUM: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
HEX: Final = "0123456789abcdef"
LOWER: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
BASE64: Final = ALNUM + "+/"
UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
WORDS: Final = [
    *("velvet", "orbit", "canyon", "maple", "thunder", "lantern"),
    *("pepper", "gravity", "ribbon", "copper", "window", "saddle"),
]


@dataclass(frozen=True, slots=True)
class Form:
    """A credential and what stands around it."""

    name: str
    before: str
    secret: str
    after: str = ""

    def __str__(self) -> str:
        return self.before + self.secret + self.after


def noise(length: int, alphabet: str = ALNUM, seed: str = "") -> str:
    """Characters as a generator of keys makes them: the same in every run, with a digit among them."""
    return "".join(random.Random(f"{seed}{length}").choices(alphabet, k=length - 1)) + "7"


# name, prefix (its parts joined by `~` in this file alone), length of the rest, its alphabet
_PREFIXED: Final = (
    ("1password service account", "ops_~eyJ", 250, ALNUM),
    ("adobe client secret", "p8e~-", 32, LOWER),
    ("alibaba access key", "LT~AI", 20, LOWER),
    ("atlassian token", "ATA~TT3", 186, ALNUM),
    ("clojars token", "CLO~JARS_", 60, LOWER),
    ("databricks token", "da~pi", 32, HEX),
    ("doppler token", "dp.~pt.", 43, LOWER),
    ("duffel token", "duffel_~test_", 43, LOWER),
    ("dynatrace token", "dt0c~01.", 24, UPPER),
    ("easypost key", "EZ~AK", 54, LOWER),
    ("facebook page token", "EA~AC", 110, LOWER),
    ("flutterwave key", "FLWSECK~_TEST-", 32, "abcdefgh0123456789"),
    ("fly.io token", "fo1~_", 43, ALNUM),
    ("frame.io token", "fio-~u-", 64, LOWER),
    ("grafana cloud token", "gl~c_", 60, ALNUM),
    ("grafana service account", "gl~sa_", 41, ALNUM),
    ("heroku key", "HRKU~-AA", 58, ALNUM),
    ("infracost key", "ico~-", 32, ALNUM),
    ("jfrog key", "AKC~p", 69, ALNUM),
    ("linear key", "lin_~api_", 40, LOWER),
    ("mailgun key", "key~-", 32, HEX),
    ("new relic user key", "NRAK~-", 27, UPPER),
    ("notion token", "ntn~_", 46, ALNUM),
    ("openshift token", "sha256~~", 43, ALNUM),
    ("planetscale token", "pscale_~tkn_", 43, ALNUM),
    ("postman key", "PMAK~-", 24, HEX),
    ("prefect key", "pnu~_", 36, LOWER),
    ("pulumi token", "pul~-", 40, HEX),
    ("readme key", "rdme~_", 70, LOWER),
    ("rubygems key", "rubygems~_", 48, HEX),
    ("sendinblue key", "xkeysib~-", 64, HEX),
    ("sentry user token", "sntryu~_", 64, HEX),
    ("shippo key", "shippo_~live_", 40, HEX),
    ("sourcegraph token", "sgp~_", 40, HEX),
    ("square token", "sq0~atp-", 22, ALNUM),
    ("typeform token", "tfp~_", 59, ALNUM),
    ("figma token", "fig~d_", 40, ALNUM),
    ("docker access token", "dckr~_pat_", 27, ALNUM),
    ("supabase key", "sbp~_", 40, HEX),
    ("tailscale key", "tskey-~auth-", 30, ALNUM),
    ("nvidia key", "nvapi~-", 64, ALNUM),
    ("langsmith key", "lsv2_~pt_", 44, HEX),
    ("tavily key", "tvly~-", 32, ALNUM),
    ("netlify token", "nfp~_", 40, ALNUM),
    ("airtable token", "pat" + "Ab1Cd2Ef3Gh4Ij~.", 64, HEX),
    ("cloudflare origin key", "v1.~0-" + "0a1b2c3d4e5f6a7b8c9d0e1f-", 146, HEX),
    ("yandex key", "AQ~VN", 38, ALNUM),
    ("amazon mws token", "amzn.~mws.", 36, HEX),
    ("plaid token", "access-~sandbox-", 36, HEX),
    ("google refresh token", "1//~0g", 60, ALNUM),
    ("github app token", "gh~u_", 36, ALNUM),
    ("azure ad secret", "aB38~Q~", 34, ALNUM),
    ("terraform cloud token", "Ab1Cd2Ef3Gh4Ij.~atlasv1.", 64, ALNUM),
)

_PEOPLE: Final = noise(9, LOWER) + "!x"  # as a person would choose one
_BASIC: Final = base64.b64encode(b"anna:" + noise(14).encode()).decode()
_WORD: Final = "sunflower" + "fields"

# name, before, secret, after
_AROUND: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("azure sas", "https://x.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig=", quote(noise(43, BASE64) + "="), "&se=2"),
    ("aws presigned url", "https://b.s3.amazonaws.com/k?X-Amz-Expires=900&X-Amz-Signature=", noise(64, HEX), ""),
    ("google signed url", "https://storage.googleapis.com/b/o?X-Goog-Signature=", noise(128, HEX), " expires soon"),
    ("refresh token", '{"refresh_token": "', noise(64), '", "expires_in": 3600}'),
    ("id token", "id_token=", noise(80), "&state=1"),
    ("cookie header", "GET / HTTP/1.1\nCookie: theme=dark; session=", noise(32, HEX), "\nHost: example.org"),
    ("set-cookie", "Set-Cookie: connect.sid=s%3A", noise(40), "; Path=/; HttpOnly"),
    ("php session", "PHPSESSID=", noise(26, LOWER), ""),
    ("java session", "JSESSIONID=", noise(32, HEX).upper(), ""),
    ("session id in yaml", "session_id: ", noise(40, HEX), "\nuser: anna"),
    ("query key", "https://maps.example.org/api?key=", noise(39), "&q=berlin"),
    ("query apikey", "https://api.example.org/v1?apikey=", noise(32, HEX), ""),
    ("query sign in", "https://example.org/login?user=anna&password=", _PEOPLE, "&next=1"),
    ("url with a raw slash", "postgres://app:", "aB3/" + noise(8) + "/x", "@db.internal:5432/app"),
    ("url, mongodb", "mongodb+srv://admin:", noise(16), "@cluster0.example.net/test"),
    ("url, token as user", "git clone https://", noise(40, HEX), "@git.example.org/team/app.git"),
    ("sentry dsn", "SENTRY_DSN=https://", noise(32, HEX), "@o123.ingest.sentry.io/456"),
    ("db_pass", "DB_PASS=", _PEOPLE, "\nDB_HOST=db"),
    ("smtp_pass with a word", "SMTP_PASS=", _WORD, "\n"),
    ("pgpassword", "PGPASSWORD=", _WORD, " psql -h db"),
    ("mysql_pwd", "export MYSQL_PWD=", _PEOPLE, ""),
    ("ini", "[database]\nhost = db\npassword = ", _WORD, "\nport = 5432"),
    ("ini with a digit", "[smtp]\nuser = me\npass = ", _PEOPLE, "\n"),
    ("toml", '[db]\nuser = "me"\npass = "', _WORD, '"\n'),
    ("properties", "spring.datasource.password=", _WORD, "\n"),
    ("yaml pass", "smtp:\n  user: me\n  pass: ", _PEOPLE, "\n"),
    ("yaml quoted", "db:\n  passwd: '", "four plain words here", "'\n"),
    ("netrc", "machine api.example.org login anna password ", _PEOPLE, "\n"),
    ("netrc over lines", "machine api.example.org\n  login anna\n  password ", _WORD, "\nmachine other"),
    ("pgpass", "db.internal:5432:app:anna:", _PEOPLE, "\n"),
    ("docker config", '{"auths": {"registry.example.org": {"auth": "', _BASIC, '"}}}'),
    ("npmrc", "//registry.example.org/:_authToken=", noise(36), "\n"),
    ("npmrc basic", "//registry.example.org/:_auth=", base64.b64encode(b"anna:" + noise(11).encode()).decode(), "\n"),
    ("kubernetes secret", "kind: Secret\nmetadata: {}\ndata:\n  database: ", noise(24, BASE64), "\ntype: Opaque"),
    ("kubernetes string data", "kind: Secret\nstringData:\n  connection: ", noise(20), "\n"),
    ("kubernetes in json", '{"kind": "Secret", "data": {"config": "', noise(40, BASE64), '"}}'),
    ("xml element", "<server><id>x</id><password>", _WORD, "</password></server>"),
    ("xml api key", "<apiKey>", noise(32, HEX), "</apiKey>"),
    ("xml attribute", '<add name="x" password="', _PEOPLE, '" />'),
    ("xml key and value", '<add key="SmtpPassword" value="', _WORD, '" />'),
    ("xml property", '<property name="connection.password">', _PEOPLE, "</property>"),
    ("markdown table row", "| user | anna |\n| password | ", _PEOPLE, " |\n"),
    ("markdown table column", "| user | password |\n|---|---|\n| anna | ", _PEOPLE, " |\n"),
    ("box table row", "│ password │ ", _PEOPLE, " │"),
    ("tab table row", "user\tanna\npassword\t", _PEOPLE, "\n"),
    ("csv header", "user,password\nanna,", _PEOPLE, "\n"),
    ("curl -u", "curl -s -u anna:", _PEOPLE, " https://api.example.org/"),
    ("curl cookie", "curl -b 'session=", noise(32, HEX), "' https://example.org/"),
    ("mysql -p", "mysql -u root -p", _PEOPLE, " app"),
    ("mysqldump --password", "mysqldump --user=root --password=", _WORD, " app"),
    ("--password x", "tool login --user anna --password ", _PEOPLE, " --quiet"),
    ("--password word", "tool login --password ", _WORD, "\n"),
    ("--token x", "tool deploy --token ", noise(32, HEX), " --prod"),
    ("--api-key x", "tool --api-key ", noise(40), "\n"),
    ("sshpass", "sshpass -p ", _PEOPLE, " ssh root@host"),
    ("sshpass quoted", "sshpass -p '", "two words" + "9", "' ssh root@host"),
    ("docker login", "docker login -u anna -p ", _PEOPLE, " registry.example.org"),
    ("redis-cli", "redis-cli -h cache -a ", _PEOPLE, " ping"),
    ("ldapsearch", "ldapsearch -D cn=admin -w ", _PEOPLE, " -b dc=x"),
    ("smbclient", "smbclient //host/share -U anna%", _PEOPLE, ""),
    ("openssl", "openssl rsa -in k.pem -passin pass:", _PEOPLE, " -out o.pem"),
    ("gpg", "gpg --batch --passphrase ", _PEOPLE, " -d f.gpg"),
    ("zip", "zip -P ", _PEOPLE, " out.zip f"),
    ("russian", "пароль: ", _PEOPLE, "\n"),
    ("chinese", "密码：", _PEOPLE, "\n"),
    ("chinese, equals", "数据库密码=", _PEOPLE, "\n"),
    ("french", "mot de passe : ", _PEOPLE, "\n"),
    ("spanish", "contraseña: ", _PEOPLE, "\n"),
    ("portuguese", "senha: ", _PEOPLE, "\n"),
    ("japanese", "パスワード: ", _PEOPLE, "\n"),
    ("korean", "비밀번호: ", _PEOPLE, "\n"),
    ("turkish", "şifre: ", _PEOPLE, "\n"),
    ("polish", "hasło: ", _PEOPLE, "\n"),
    ("seed phrase", "seed phrase: ", " ".join(WORDS), "\n"),
    ("mnemonic in json", '{"mnemonic": "', " ".join(WORDS), '"}'),
    ("recovery phrase", "My recovery phrase is ", " ".join(reversed(WORDS)), "."),
    ("passphrase in words", "passphrase: ", "velvet orbit canyon maple", "\n"),
    ("zero width inside", "gh" + "p_", noise(12) + "\u200b" + noise(24), ""),
    ("zero width before", "token \u200b", "gh" + "p_" + noise(36), ""),
    ("token over two lines", "gh" + "p_", noise(14) + "\n" + noise(22), "\n"),
    ("token put together", 'x = "gh" + "p_' + '', noise(10) + '" + "' + noise(26), '"'),
    ("bcrypt", "anna:$2b$12$", noise(53), ":1001"),
    ("shadow", "root:$6$", noise(16) + "$" + noise(86), ":19000:0:99999:7:::"),
    ("putty key", "Private-Lines: 2\n", noise(64, BASE64) + "\n" + noise(64, BASE64), "\nPrivate-MAC: x"),
    ("wireguard", "[Interface]\nPrivateKey = ", noise(43, BASE64) + "=", "\nAddress = 10.0.0.1"),
    ("wireguard, shared", "PresharedKey = ", noise(43, BASE64) + "=", "\n"),
    ("otpauth", "otpauth://totp/x:anna?secret=", noise(32, UPPER), "&issuer=x"),
    ("jdbc thin", "jdbc:oracle:thin:scott/", _PEOPLE, "@//db:1521/x"),
    ("connection string", "Server=db;User Id=sa;Pwd=", _PEOPLE, ";Encrypt=yes"),
    ("authorization, api key", "Authorization: ApiKey ", noise(40), "\n"),
    ("proxy authorization", "Proxy-Authorization: Basic ", base64.b64encode(b"anna:secretly").decode(), "\r\n"),
    ("teams webhook", "https://x.webhook.office.com/webhookb2/", noise(36, HEX) + "@" + noise(36, HEX), "/1"),
    ("terraform variable", 'variable "db_password" {\n  default = "', _WORD, '"\n}'),
    ("javascript object", "const config = { apiSecret: '", noise(24), "' };"),
    ("php array", "'db_password' => '", _WORD, "',"),
    ("powershell", 'ConvertTo-SecureString "', _PEOPLE, '" -AsPlainText -Force'),
    ("said in a sentence", "my password is ", _PEOPLE, ", please sign in"),
)  # fmt: skip


def _forms() -> Iterator[Form]:
    for name, prefix, length, alphabet in _PREFIXED:
        first, second = prefix.split("~", 1)
        yield Form(name, f"see {first}", second + noise(length, alphabet, name), " there")
    for name, before, secret, after in _AROUND:
        yield Form(name, before, secret, after)


FORMS: Final = tuple(_forms())
HELD_BACK: Final = FORMS[1::2]


def plain(form: Form) -> str:
    """As it is."""
    return str(form)


def coloured(form: Form) -> str:
    """As a program shows it that colours what it found."""
    return f"{form.before}\x1b[1;31m{form.secret}\x1b[0m{form.after}"


def url_encoded(form: Form) -> str:
    """As a part of an address."""
    return "https://example.org/?q=" + quote(str(form), safe="")


def json_escaped(form: Form) -> str:
    """As a part of a JSON document."""
    return json.dumps({"output": str(form)})


VARIANTS: Final[dict[str, Callable[[Form], str]]] = {
    "plain": plain,
    "coloured": coloured,
    "url-encoded": url_encoded,
    "json-escaped": json_escaped,
}

_UNSEEN = re.compile(r"\x1b\[[0-9;]*m|[\u200b\u200c\u200d\ufeff]")
_LONGEST_LEFT: Final = 8  # characters of a secret that may be seen


def shows(text: str, form: Form) -> bool:
    """Say whether `text`, read in any of the variants, shows a piece of the form's secret."""
    readings = {text, unquote(text), unquote(unquote(text)), text.replace("\\n", "\n").replace('\\"', '"')}
    secret = _UNSEEN.sub("", form.secret)
    pieces = {secret[at : at + _LONGEST_LEFT] for at in range(max(1, len(secret) - _LONGEST_LEFT + 1))}
    return any(piece in _UNSEEN.sub("", reading) for reading in readings for piece in pieces)
