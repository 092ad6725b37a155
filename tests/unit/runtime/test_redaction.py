"""Every kind of credential goes, everything else stays, and no text can make it slow.

Samples are put together when the test runs, so that no scanner mistakes this file for a leak.
"""

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtime.redaction import MARK, Redactor, cut_keys, encodings, plausible
from gateway.runtime.redaction.assignments import ASSIGNMENT
from tests.support.every_pattern import ALL_KINDS
from tests.support.hostile import LONGEST

redact = Redactor()

ALNUM = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
HEX = "0123456789abcdef"


def noise(length, alphabet=ALNUM, seed=7):
    """Characters as a key generator makes them: the same in every run, with a digit among them."""
    return "".join(random.Random(seed + length).choices(alphabet, k=length - 1)) + "7"


def pem(label="RSA "):
    body = "\n".join(noise(64, seed=line) for line in range(6))
    return f"{'-' * 5}BEGIN {label}PRIVATE KEY{'-' * 5}\n{body}\n{'-' * 5}END {label}PRIVATE KEY{'-' * 5}"


def jwt():
    return ".".join(["ey" + "J" + noise(30), noise(60), noise(43)])


SAMPLES = {
    "openai, old": "sk" + "-" + noise(48),
    "openai, project": "sk" + "-proj-" + noise(60) + "_" + noise(30) + "-x",
    "openai, service account": "sk" + "-svcacct-" + noise(60),
    "anthropic": "sk" + "-ant-api03-" + noise(80) + "-" + noise(8) + "AA",
    "openrouter": "sk" + "-or-v1-" + noise(64, HEX),
    "groq": "gs" + "k_" + noise(52),
    "xai": "xa" + "i-" + noise(80),
    "github, classic": "gh" + "p_" + noise(36),
    "github, oauth": "gh" + "o_" + noise(36),
    "github, app": "gh" + "s_" + noise(36),
    "github, fine-grained": "github" + "_pat_" + noise(22) + "_" + noise(59),
    "gitlab": "gl" + "pat-" + noise(20),
    "slack, bot": "xo" + "xb-" + noise(12, "0123456789") + "-" + noise(12, "0123456789") + "-" + noise(24),
    "slack, user": "xo" + "xp-" + noise(12, "0123456789") + "-" + noise(32, HEX),
    "slack, app": "xa" + "pp-1-A" + noise(10) + "-" + noise(13, "0123456789") + "-" + noise(64, HEX),
    "telegram": noise(10, "123456789") + ":AA" + noise(33),
    "discord": "M" + noise(23) + "." + noise(6) + "." + noise(38),
    "aws key id": "AK" + "IA" + noise(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
    "google": "AI" + "za" + noise(35),
    "google oauth": "GOC" + "SPX-" + noise(28),
    "stripe": "sk" + "_live_" + noise(24),
    "stripe, restricted": "rk" + "_test_" + noise(24),
    "stripe, webhook": "whs" + "ec_" + noise(32),
    "twilio": "S" + "K" + noise(32, HEX),
    "sendgrid": "S" + "G." + noise(22) + "." + noise(43),
    "npm": "np" + "m_" + noise(36),
    "pypi": "py" + "pi-AgEIcHlwaS5vcmc" + noise(80),
    "hugging face": "h" + "f_" + noise(34),
    "shopify": "sh" + "pat_" + noise(32, HEX),
    "digitalocean": "do" + "p_v1_" + noise(64, HEX),
    "vault": "hv" + "s." + noise(40),
    "age": "AGE-SECRET" + "-KEY-1" + noise(58, "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"),
    "json web token": jwt(),
    "of two parts": "xy" + "_" + noise(12) + "_" + noise(32),
}

# Only the part in the middle goes: what stands around it says what it was.
PARTLY = {
    "slack webhook": ("https://hooks.slack.com/services/", "T" + noise(8) + "/B" + noise(8) + "/" + noise(24), ""),
    "discord webhook": ("https://discord.com/api/webhooks/123456789012345678/", noise(68), ""),
    "bearer": ("Authorization: Bearer ", noise(40), ""),
    "basic header": ("authorization: Basic ", noise(23) + "=", "\r\nHost: x"),
    "json header": ('{"Authorization": "Bearer ', noise(40), '", "Accept": "*/*"}'),
    "url": ("postgres://app:", noise(12), "@db.internal:5432/app"),
    "url without a name": ("redis://:", noise(12), "@cache:6379/0"),
    "url, at sign in the password": ("https://me:", "p@ss" + noise(8), "@example.org/"),
    "aws secret": ("aws_secret_access_key = ", noise(38) + "/+", ""),
    "azure": ("AccountName=x;AccountKey=", noise(86) + "==", ";EndpointSuffix=y"),
    "env": ("OPENWEATHER_API_KEY=", noise(32, HEX), "\nDEBUG=1"),
    "env, any key": ("SOME_SERVICE_KEY=", noise(24), ""),
    "env, nothing but key": ("export KEY=", noise(24), ""),
    "env, password": ("export DB_PASSWORD=", "hunter" + "two", "\n"),
    "yaml": ("  password: ", "hunter" + "2!", "\n  user: me"),
    "yaml, plain word": ("password: ", "correct" + "horse", "\nuser: me"),
    "json": ('{"user": "me", "password": "', "correct horse" + " battery", '"}'),
    "passphrase": ("the password: '", "correct horse battery staple of Anna", "'"),
    "json in json": ('{"body": "{\\"client_secret\\": \\"', noise(20), '\\"}"}'),
    "json in json in json": ('{"run": "{\\"body\\": \\"{\\\\\\"password\\\\\\": \\\\\\"', noise(20), '\\\\\\"}\\"}"}'),
    "escaped quote": ('{"password": "', 'a\\"b' + noise(6), '"}'),
    "single quotes": ("{'api_key': '", noise(30), "'}"),
    "python": ("token = '", noise(30), "'"),
    "query": ("GET /v1/x?access_token=", noise(30), "&page=2"),
    "in a sentence": ("The database password is ", "hunter" + "-048b0f", ", keep it"),
    "yaml, as short as can be": ("password: ", "ab" + "c1", "\nuser: me"),
    "in brackets": ("(password: ", "hunter" + "2", ")"),
    "after an escaped line break": ('"first\\n', "sk" + "-proj-" + noise(40), '\\nlast"'),
}

HARMLESS = [
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 fixed it",
    "id 550e8400-e29b-41d4-a716-446655440000, sha256:" + noise(64, HEX),
    "1700000000:" + noise(40, HEX),
    "/home/anna/projects/very-long-folder-name-2024/src/module_name/file-12345.py",
    "C:\\new\\task-management-application-2024\\readme.txt",
    "https://example.org/a/b?id=123456789012&page=2#section-12345",
    "http://localhost:8080/path and then me@example.org",
    "see https://example.org:8443/x, mail me@example.org",
    "max_tokens: 4096, prompt_tokens=15250, token_count = 1234567890123, tokens: 12",
    "The password: it must have eight characters and a digit",
    "the password is 8 characters long and the passphrase is wrong; 密码是错的",
    "The token: a small piece of text. The secret is patience. Passwords expire.",
    "password: 'correct horse battery staple of dear Anna'",
    "def login(user: str, password: str, token: str | None = None) -> bool:",
    "password = getpass(prompt)",
    "self.password = password",
    "secret = os.environ['APP_SECRET']",
    "api_key: ${OPENAI_API_KEY}",
    'token: "${TELEGRAM_BOT_TOKEN}"',
    "password: abc",
    "password: <your password>",
    "token=[REDACTED]",
    "the bearer of this letter-writing-competition-announcement",
    "task-ant-colony-optimisation-problem risk-proj-management-fundamentals-course",
    "primary_key=identifier sort_key=created_at keyboard=qwertz monkey=business",
    "sk-learn is not scikit-learn",
    "pypi-attestations is a package; npm_config_registry is a setting",
    "eyJust.kidding.around is no token",
    "from 10:30:45 to 11:15:00, 192.168.0.1:8080, version 1.2.3-rc.1+build.20240101",
    "MacBook.Pro12.arrived-with-the-usual-cables-and-papers",
    "数据库密码由管理员保管，请勿外传。",
    "cache_Entry77_" + noise(32, HEX) + " MY_Entry77_" + noise(32, HEX).upper(),
    "-----BEGIN PUBLIC KEY-----\n" + noise(64) + "\n-----END PUBLIC KEY-----",
    "data:image/png;base64," + noise(400),
]


def test_there_are_at_least_eighteen_kinds():
    assert len({kind.name for kind in ALL_KINDS}) >= 18


@pytest.mark.parametrize("said", ["пароль — {}", "数据库密码是 {}，请记住", "口令：{}", "Das Passwort ist “{}”."])
def test_a_password_goes_in_whatever_language_it_is_told(said):
    secret = "hunter" + "-048b0f"
    assert redact(said.format(secret)) == said.format(MARK)


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "before {} after",
        "x={}\n",
        '{{"a":"{}"}}',
        "({})",
        "`{}`",
        "text\\n{}\\nmore",
        "它是{}。",
        "<{}>",
        "key:{},",
    ],
)
def test_a_credential_goes_and_the_text_around_it_stays(around):
    shown = {name: redact(around.format(sample)) for name, sample in SAMPLES.items()}
    wrong = [f"{name}: {text!r}" for name, text in shown.items() if text != around.format(MARK)]
    assert not wrong, "\n".join(wrong)


def test_only_the_secret_part_goes():
    shown = {name: redact("".join(parts)) for name, parts in PARTLY.items()}
    wanted = {name: before + MARK + after for name, (before, _, after) in PARTLY.items()}
    wrong = [f"{name}: {text!r} for {wanted[name]!r}" for name, text in shown.items() if text != wanted[name]]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("label", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("escaped", [False, True])
def test_a_private_key_goes_whole(label, escaped):
    block = json.dumps(pem(label))[1:-1] if escaped else pem(label)
    cleaned = redact(f"before\n{block}\nafter")
    assert cleaned.startswith("before\n-----BEGIN ")
    assert cleaned.endswith("-----\nafter")
    assert cleaned.count(MARK) == 1
    assert noise(64, seed=3) not in cleaned


def test_a_private_key_whose_end_is_missing_loses_what_is_there():
    half = pem()[: len(pem()) // 2]
    assert redact(half) == f"{'-' * 5}BEGIN RSA PRIVATE KEY{'-' * 5}{MARK}"
    assert "Then prose follows." in redact(half + "\n\nThen prose follows.")


@pytest.mark.parametrize("escaped", [False, True])
def test_a_private_key_whose_beginning_is_missing_loses_what_is_there(escaped):
    block = json.dumps(pem())[1:-1] if escaped else pem()
    end = block[block.index(f"{'-' * 5}END") :]
    assert redact(block[60:]) == MARK + end
    assert redact("some words before\n" + block[-120:] + " after") == f"some words before\n{MARK}{end} after"
    assert redact("words only\n" + end) == "words only\n" + end


def test_what_only_looks_odd_stays():
    wrong = [f"{shown!r} for {text!r}" for text in HARMLESS if (shown := redact(text)) != text]
    assert not wrong, "\n".join(wrong)


def test_a_name_of_words_has_so_many_letters():
    assert plausible.is_worded("reference")
    assert not plausible.is_worded("download")


def test_configured_secrets_go_wherever_they_are():
    cleaned = Redactor(["swordfish", "swordfish-and-more", "kurz", "päss wörd/1"])
    assert cleaned("xswordfishx swordfish-and-more kurz") == f"x{MARK}x {MARK} kurz"
    assert cleaned("päss wörd/1") == MARK
    assert cleaned("?q=p%C3%A4ss%20w%C3%B6rd%2F1&x") == f"?q={MARK}&x"
    assert cleaned(json.dumps({"q": "päss wörd/1"})) == json.dumps({"q": MARK})
    assert cleaned(json.dumps({"q": "päss wörd/1"}, ensure_ascii=False)) == json.dumps({"q": MARK})


@pytest.mark.parametrize("secret", ["", "12345", "REDACTED", "[REDAC", "\ud800abcdef"])
def test_odd_configured_secrets_do_no_harm(secret):
    cleaned = Redactor([secret])
    assert cleaned("12345 [REDACTED] text") == "12345 [REDACTED] text"


@given(st.sampled_from(sorted(SAMPLES)), st.text(max_size=30), st.text(max_size=30))
def test_no_surroundings_protect_a_credential(name, before, after):
    secret = SAMPLES[name]
    assert secret not in redact(f"{before} {secret} {after}")


# Linear time: by design of the patterns, and by texts on which a quadratic one would run for hours.

PATTERNS = {
    **{kind.name: kind.pattern for kind in ALL_KINDS},
    **{f"probe of {kind.name}": kind.probe for kind in ALL_KINDS if kind.probe is not None},
    "assignment": ASSIGNMENT,
    **{
        f"{module.__name__}{name}": pattern
        for module in (cut_keys, encodings, plausible)
        for name, pattern in vars(module).items()
        if isinstance(pattern, re.Pattern)
    },
}


def unbounded_repeats(parsed, inside=False):
    """Every backtracking repeat without an upper bound, and whether it stands inside another one."""
    parser = re._parser
    for operation, argument in parsed:
        if operation in (parser.MAX_REPEAT, parser.MIN_REPEAT, parser.POSSESSIVE_REPEAT):
            _, most, body = argument
            backtracks = operation is not parser.POSSESSIVE_REPEAT and most is parser.MAXREPEAT
            if backtracks:
                yield inside
            yield from unbounded_repeats(body, inside or backtracks)
        elif operation is parser.BRANCH:
            for branch in argument[1]:
                yield from unbounded_repeats(branch, inside)
        elif operation is parser.SUBPATTERN:
            yield from unbounded_repeats(argument[3], inside)
        elif operation in (parser.ASSERT, parser.ASSERT_NOT):
            yield from unbounded_repeats(argument[1], inside)
        elif operation is parser.ATOMIC_GROUP:
            yield from unbounded_repeats(argument, inside)


def test_no_pattern_backtracks_over_unbounded_text_twice():
    parsed = {name: re._parser.parse(pattern.pattern) for name, pattern in PATTERNS.items()}
    wrong = [name for name, pattern in parsed.items() if any(unbounded_repeats(pattern))]
    assert not wrong, "\n".join(wrong)


def test_the_check_of_the_patterns_sees_what_it_must():
    assert list(unbounded_repeats(re._parser.parse(r"(?:a+)+"))) == [False, True]
    assert list(unbounded_repeats(re._parser.parse(r"(?:a++)++b*+"))) == []


def hostile_units():
    hints = sorted({start for kind in ALL_KINDS for start in (kind.starts[:3] if kind.heads else kind.starts)})
    yield from (spelling for hint in hints for spelling in (hint, hint.upper(), hint + "a", hint + " ", f'"{hint}="'))
    yield from ("eyJ", "eyJaaaaaaaa.", "-eyJ", "SG.", "SG.aaaaaaaaaaaaaaaa", "AKIA", "://a:", "://", "://a:b:", "a@")
    yield from (
        'password="',
        "password='a\\",
        "token=",
        "token: ",
        "KEY=",
        "secret\\",
        '\\"',
        "-----BEGIN PRIVATE KEY-----",
    )
    yield from (
        "-----BEGIN PRIVATE KEY-----\n" + "A" * 20 + "\n",
        "-----BEGIN A",
        "1",
        "1:",
        "123456:",
        "M",
        "M" * 24 + ".",
    )
    yield from ("-----END PRIVATE KEY-----", "A" * 20 + " -----END PRIVATE KEY-----", "A\\n")
    yield from (
        "%",
        "%25",
        "%3D",
        "\\",
        "\\u0041",
        "\x1b[",
        "\x1b]a",
        "&#",
        "\u200b",
        "\n1a2",
        "ghp_aaaa\n1a2",
        '"+"1a2',
    )
    yield from ("curl -u a", "mysql ", "login ' ", "ldapsearch ", "--password")
    yield from (
        "[a]\nb=c\npass = d\n",
        "seed: abcd efgh ",
        "password|",
        "pass>aaaa<",
    )
    yield from ("bearer ", "authorization: ", "authorization: basic ", "aws secret key", "a", " ", "=", "\u0130", "-")


@pytest.mark.parametrize("size", [1_500, pytest.param(40_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("share", range(8))
def test_a_hostile_text_is_only_read_once(share, size):
    for unit in sorted(set(hostile_units()))[share::8]:
        redact(unit * (size // len(unit)))
        redact(unit + "a" * size)
        redact(unit + "-" * size + unit)
        redact("A" * 30 + unit * (size // len(unit)) + "-----END PRIVATE KEY-----")


def test_as_much_of_everything_as_the_program_lets_in_at_once():
    text = "\n".join([*SAMPLES.values(), *HARMLESS, ""])
    times = LONGEST // len(text) + 1
    assert redact(text * times) == redact(text) * times
