"""150 forms of credentials, each in four variants; almost nothing of an innocent program; places stay right."""

import base64
import html
import json
import sysconfig
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.runtime.redaction import MARK, Redactor
from gateway.runtime.redaction.encodings import decoded, original
from tests.support.credential_forms import FORMS, HELD_BACK, VARIANTS, shows
from tests.unit.runtime.test_redaction import HARMLESS, PARTLY, SAMPLES, pem

redact = Redactor()
KEY = "sk-" + "proj-" + "aB3/dE+6" * 5


def test_there_are_150_forms_and_each_shows_its_secret_before_redaction():
    assert len(FORMS) == 150
    assert len({form.name for form in FORMS}) == 150
    assert all(shows(variant(form), form) for form in FORMS for variant in VARIANTS.values())


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=list(VARIANTS))
@pytest.mark.parametrize(("forms", "least"), [(FORMS, 141), (HELD_BACK, 71)], ids=["all", "held back"])
def test_nearly_every_form_is_known_in_every_variant(forms, least, variant):
    shown = [form.name for form in forms if shows(redact(variant(form)), form)]
    assert len(forms) - len(shown) >= least, shown


@pytest.mark.parametrize(
    "around",
    [
        "\x1b[ {}",
        "\x1b[1 {}",
        "\x1b[2 q{}",
        "\x1b]0;login {}\x07$ ls",
        "\x1b]0;login {}\x1b\\$ ls",
        "\x1b]8;;https://h.example/?key={}\x1b\\a link\x1b]8;;\x1b\\",
        "\x1b]8;;https://h.example/x\x1b\\{}\x1b]8;;\x1b\\",
    ],
)
@pytest.mark.parametrize("secret", ["ghp_abcdefghijklmnopqrstuvwxyz0123456789", f"AGE-SECRET-KEY-1{'QPZRY9X8GF' * 6}"])
def test_titles_and_links_of_a_terminal_hide_no_credential(around: str, secret: str) -> None:
    assert redact(around.format(secret)) == around.format(MARK)


@pytest.mark.parametrize(
    "before", ["\x1b[32m", "x%3D", "%22", "\\u0022", "&quot;", "\u200b", "\\t", "%253D", "\\\\u003d"]
)
def test_a_credential_right_after_an_encoded_sign_goes_alone(before):
    wrong = []
    for name, sample in SAMPLES.items():
        # Digits before a number of Telegram's belong to the number, and letters before a name to the name.
        its_own = {"telegram": "0123456789", "of two parts": "0123456789D"}.get(name, "")
        before_it = before.rstrip(its_own) if its_own else before
        shown = redact(f"a {before}{sample} b").replace(before, before_it)
        if shown != f"a {before_it}{MARK} b":
            wrong.append(f"{name}: {shown!r}")
    assert not wrong, "\n".join(wrong)


def test_what_only_looks_odd_stays_in_every_encoding():
    encoded = [
        spelled
        for text in HARMLESS
        for spelled in (f"\x1b[1m{text}\x1b[0m", quote(text, safe=""), json.dumps(text), html.escape(text))
    ]
    wrong = [f"{shown!r} for {text!r}" for text in encoded if (shown := redact(text)) != text]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "PWD=/home/anna/work\nOLDPWD=/tmp",
        "password_file: /run/secrets/db",
        "docs: npm view http://registry.local:4873/@scope/name",
        "| name | type |\n|---|---|\n| password | string |\n",
        "# pass 12\n# fail 3\npass: 1024",
        "host, password, port = parse(line)",
        "Cookie: theme=dark; lang=en",
        "mysql -port 3306; curl -u $USER:$PASS https://x",
        "use --token TOKEN or --password to sign in",
        "if user or passwd: self.auth_cache[key] = (user, passwd)",
        "print('%s:%s' % (user, password)); password = f'{user}:{host}'",
        "the seed is 42 and the recovery is slow because of the weather in this part of the country today",
    ],
)
def test_what_stands_beside_a_secret_name_and_is_none_stays(text):
    assert redact(text) == text


MIXED = "Ab3dE" * 7


@pytest.mark.parametrize(
    "token",
    [
        f"newvendor_{MIXED}",
        f"tvly-dev-{MIXED}",
        f"apify_api_{MIXED}",
        f"pcsk_4Tz_{MIXED}",
        "sk-lf-" + "0a1b2c3d-" * 4,
        "sk-oh-" + MIXED,
        "csk-" + "a1b2c3d4" * 6,
        "sk_" + "0a1b2c3d" * 6,
        "0a1b2c3d" * 4 + ".Ab3dEf6hIj9lMn2p",
        "access_token$production$" + "a1b2c3d4" * 2 + "$" + "0a1b2c3d" * 4,
    ],
)
def test_a_token_whose_prefix_may_be_new_goes(token):
    assert redact(f"it is {token} here").replace("-" + MARK, MARK) == f"it is {MARK} here"


@pytest.mark.parametrize(
    "token",
    [
        "sm_pat_" + "a1b2C3d4" * 2,
        "cal_live_" + "0a1b2c3d" * 4,
        "pdl_live_apikey_" + "01a2b3c4" * 3 + "_" + "Ab3dEf6h" * 3,
        "growth_secret_user_" + "Ab3dEf6h" * 5,
        "re_Ab3dEf6h_" + "Ab3dEf6hIj9l" * 2,
        "st." + ".".join(["0a1b2c3d" * 3, "0a1b2c3d" * 4, "0a1b2c3d" * 4]),
        "pat." + ".".join(["Ab3dEf6hIj9lMn2pQr5tUv", "0a1b2c3d" * 3, "Ab3dEf6hIj" * 2]),
        "pat-na1-0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f",
        "0a1b2c3d" * 4 + "-us12",
        "A3-AB12CD-EF34GH56IJ7-KL8MN-OP9QR-ST1UV",
        "2/" + "12345678" * 2 + "/" + "87654321" * 2 + ":" + "0a1b2c3d" * 4,
        "squ_" + "0a1b2c3d" * 5,
    ],
)
def test_a_token_goes_by_what_its_prefix_or_its_parts_tell(token):
    assert redact(f"it is {token} here") == f"it is {MARK} here"


@pytest.mark.parametrize(
    "text",
    [
        "live_reloading_of_templates and secret_santa_2026_12_24 and prod-eu-west-1-cluster-20260101",
        "test_live_index_2_after_a_long_name_20 and pat_matching_1234567890123456",
        "chatcmpl-BxKz9Qm3TzvWc8YtR1aPq0LsDfGhJ and toolu_01A09q90qw90lq917835lq9",
        "resp_0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f6071 in commit-0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d",
        "sha512-Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4EfGh7jKl0nOp3rSt6vWx9zAa2cDd5fGg8iJj1lMm4oPp7rSs0uVv3xYy==",
        "SOME_CONSTANT_THAT_IS_VERY_LONG_AND_HAS_2_NUMBERS_IN_IT_42",
        "arn:aws:ec2:us-west-2:123456789012:transit-gateway-multicast-domain/tgw-mcast-domain-0c9e29e2a7",
        "1700000000:0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d and 123456789:this_is_the_name_of_a_long_test_case_42",
    ],
)
def test_ids_with_a_prefix_stay(text):
    assert redact(text) == text


def test_an_innocent_program_loses_next_to_nothing():
    """Half of the standard library, without its tests, whose passwords are real ones: at most one mark a megabyte."""
    files = sorted(
        path
        for path in Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")
        if not {"test", "tests", "site-packages", "dist-packages", "idlelib", "lib2to3"} & set(path.parts)
    )
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in files[::2]]
    megabytes = sum(map(len, texts)) / 1_000_000
    assert megabytes > 5
    assert sum(redact(text).count(MARK) - text.count(MARK) for text in texts) <= megabytes


@pytest.mark.parametrize(
    "spelled",
    [
        KEY,
        quote(KEY, safe=""),
        quote(quote(KEY, safe=""), safe=""),
        html.escape(KEY),
        json.dumps(json.dumps(KEY)),
        KEY.encode().hex(),
        base64.b64encode(KEY.encode()).decode(),
        base64.b64encode(b"user:" + KEY.encode() + b"\n").decode(),
        base64.urlsafe_b64encode(b"u:" + KEY.encode()).decode(),
        "".join(f"\\u{ord(sign):04x}" for sign in KEY),
        "".join(f"&#{ord(sign)};" for sign in KEY),
        "\u200b".join(KEY),
        KEY[: len(KEY) * 2 // 3],
        KEY[len(KEY) // 3 :],
    ],
)
def test_a_configured_secret_goes_in_whatever_way_it_is_quoted(spelled):
    cleaned = Redactor([KEY])(f"Incorrect API key provided: {spelled}. Bye")
    assert cleaned.startswith("Incorrect API key provided: ")
    assert cleaned.endswith("Bye")
    assert MARK in cleaned
    assert len(cleaned) < len("Incorrect API key provided: . Bye") + len(MARK) + 14  # what base64 holds beside the key


pieces = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["%3D", "%25", "%D0%BF", "%FF", "\\n", '\\"', "\\u00e9", "\x1b[0m", "\u200b", "&amp;", "&#65;", "\n"]
    ),
)


def all_are_utf8(text):
    """Say whether the rows of percent signs are UTF-8: else each byte is a character, but a part of the row may be
    UTF-8."""
    try:
        unquote(text, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


@given(st.lists(pieces, max_size=12).map("".join), st.data())
def test_a_place_in_a_decoded_text_leads_back_to_its_origin(text, data):
    levels = decoded(text)
    if not levels or not levels[0].text:
        return
    first = levels[0]
    start = data.draw(st.integers(0, len(first.text) - 1))
    end = data.draw(st.integers(start + 1, len(first.text)))
    begin, stop = original(levels[:1], (start, end))
    assert 0 <= begin < stop <= len(text)
    lines = first.text[start:end].count("\n")
    inner = decoded(text[begin:stop])
    if lines == 0 and all_are_utf8(text):
        alike = inner and inner[0].strips == first.strips
        read = inner[0].text if alike else text[begin:stop]
        # Of bytes that are no UTF-8, each stands for a sign; a part of them may be UTF-8.
        assert first.text[start:end] in (read, unquote(text[begin:stop], encoding="latin-1"))


@pytest.mark.parametrize(
    "glued",
    [
        "AKIA564CSNQEGOHOACW7" + "ghs_ceBaX0huaK0yXFfevlfjXDD60S3gG7",
        "dop_v1_5fa323b84056134679d41439751c99bd037b8847" + "sk-Jt0uSVs7phYZsahnnCOr",
        "SK36369a452d4e1066cd84b7450b039997" + "GOCSPX-1R7juu5QWskuW7AsXBpD",
    ],
)
def test_a_credential_right_beside_another_goes_too(glued):
    assert redact(f"a {glued} b") == f"a {MARK}{MARK} b"


def parts_of(text):
    """Strategy: the text, or a part of it."""
    ends = st.integers(0, len(text))
    return st.one_of(st.just(text), st.tuples(ends, ends).map(lambda each: text[min(each) : max(each)]))


CREDENTIALS = [*map(str, FORMS), *("".join(parts) for parts in PARTLY.values()), *SAMPLES.values(), KEY, MARK]
IN_VARIANTS = st.builds(
    lambda form, variant: variant(form), st.sampled_from(FORMS), st.sampled_from([*VARIANTS.values()])
)


SIGNS = [
    *HARMLESS,
    "password",
    "token",
    "=",
    ": ",
    '"',
    "\\",
    "'",
    "\n",
    "://",
    "@",
    "sk-",
    "KEY=",
    "-----BEGIN",
    pem(),
]


@given(
    st.lists(
        st.one_of(st.sampled_from(CREDENTIALS), IN_VARIANTS).flatmap(parts_of) | pieces | st.sampled_from(SIGNS),
        max_size=6,
    )
)
def test_a_second_pass_changes_nothing(written):
    redactor = Redactor([KEY])
    once = redactor("".join(written))
    assert redactor(once) == once
