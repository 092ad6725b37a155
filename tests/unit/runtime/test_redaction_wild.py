"""What strangers wrote: credentials in Markdown, in further languages and commands; and ordinary texts, which stay."""

from pathlib import Path

import pytest

from gateway.runtime.redaction import MARK, Redactor
from tests.support.every_pattern import by_patterns

redact = Redactor()
ROOT = Path(__file__).parents[3]
TOKENS = [
    "sk-ant-api03-abcdefghijklmnop1234567890",
    "sk-proj-abcdEFGHijklmnop1234567890ABCD",
    "gsk_abcdefghijklmnop1234567890ABCD",
    "xai-abcdefghijklmnop1234567890ABCD",
    "glpat-abcdefghijklmn123456",
    "hf_abcdefghijklmnopqrstuvwxyz012345",
    "npm_abcdefghijklmnopqrstuvwxyz012345",
    "SG.abcdefghijklmnop1234.abcdefghijklmnop1234",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "sk_live_abcdefghijklmnop1234",
    "dapi0123456789abcdef0123456789abcdef",
    "lin_api_abcdefghijklmnop1234567890ABCD",
    "acmecorp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY",
]


@pytest.mark.parametrize("around", ["_{}_", "__{}__", "*{}*", "**{}**", "`{}`", "~~{}~~", "*_{}_*", "[_{}_](x)"])
def test_no_emphasis_hides_a_token(around: str) -> None:
    hidden = [token for token in TOKENS if token.strip("_") in redact(f"It is {around.format(token)} for now.")]
    assert hidden == []


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("**Password:** hunter2secret", "hunter2secret"),
        ("**Password**: hunter2secret", "hunter2secret"),
        ("_password_: `hunter2secret`", "hunter2secret"),
        ("- `password`: `hunter2secret`", "hunter2secret"),
        ("*Passwort:* geheim123", "geheim123"),
        ("echo 'anna:S3cretPw' | chpasswd", "S3cretPw"),
        ("echo root:S3cretPw|sudo chpasswd", "S3cretPw"),
        ("chpasswd <<< 'anna:S3cretPw'", "S3cretPw"),
        ("etcdctl --user root:S3cretPw get /x", "S3cretPw"),
        ("etcdctl --user=root:S3cretPw get /x", "S3cretPw"),
        ('[{"name":"session","value":"abcDEF123456ghiJKL7890","path":"/"}]', "abcDEF123456ghiJKL7890"),
        ('{"domain": "x.org", "name": "auth_token", "value": "9f2c41e7b1d04c5a8e63"}', "9f2c41e7b1d04c5a8e63"),
        ("wachtwoord: geheim123", "geheim123"),
        ("Salasana on kissa1234", "kissa1234"),
        ("adgangskode er hemmelig1", "hemmelig1"),
        ("heslo je tajne1234", "tajne1234"),
        ("La password del Wi-Fi è Casa2024!", "Casa2024!"),
        ("la chiave della rete: Casa-2024", "Casa-2024"),
        ("a senha do wifi é Praia2024", "Praia2024"),
        ("O PIN do cartão é 482193", "482193"),
        ("o pin do meu cartão é 4821", "4821"),
        ("my PIN is 4821", "4821"),
        ("mein PIN-Code ist 48215", "48215"),
        ("La password è Gatto2024!", "Gatto2024!"),
        ("la password di casa è: Gatto2024!", "Gatto2024!"),
        ("password wifi: Gatto2024!", "Gatto2024!"),
        ("la password per entrare è Gatto2024!", "Gatto2024!"),
        ("la chiave WPA è 8f3kd92hs1", "8f3kd92hs1"),
        ("a senha do Wi-Fi da casa é Gato2024!", "Gato2024!"),
        ("a palavra-passe do router é Gato2024", "Gato2024"),
        ("la clé du wifi est 8F3KD92HS1", "8F3KD92HS1"),
        ("le mot de passe est Chat2024!", "Chat2024!"),
        ("mot de passe wifi : Chat2024!", "Chat2024!"),
        ("la clave del wifi es Gato2024!", "Gato2024!"),
        ("das Kennwort lautet: Katze2024!", "Katze2024!"),
        ("Passwort fürs WLAN: Katze2024!", "Katze2024!"),
        ("WLAN-Schlüssel: 12345678901234567890", "12345678901234567890"),
        ("the password is: Cat2024!", "Cat2024!"),
        ("my API key is 3f9d8a7b6c5d4e3f2a1b", "3f9d8a7b6c5d4e3f2a1b"),
        ("пароль от wifi: Kot2024!", "Kot2024!"),
        ("hasło do wifi to Kot2024!", "Kot2024!"),
        ("wifi şifresi: Kedi2024!", "Kedi2024!"),
        ("パスワードは neko2024! です", "neko2024!"),
        ("비밀번호는 goyangi2024 입니다", "goyangi2024"),
        ("wifi密码是mao20241234，请记住", "mao20241234"),
        ("il PIN è 4821", "4821"),
        ("redis://:p/ss9@host:6379/0", "p/ss9"),
        ("okta: " + "00abcDEFghij" + "KLMNopqrSTUVwx1234567890_-aBcd", "KLMNopqr"),
        ("jelszó: titkos12", "titkos12"),
        ("parola è segreta12", "segreta12"),
        ("mật khẩu là matkhau12", "matkhau12"),
        ("كلمة المرور: sirri1234", "sirri1234"),
        ("הסיסמה היא sodi1234", "sodi1234"),
        ("κωδικός: mystiko12", "mystiko12"),
        ("kata sandi: rahasia12", "rahasia12"),
        ("รหัสผ่าน: lap12345", "lap12345"),
        ("пароль: sekret12", "sekret12"),
    ],
)
def test_a_password_goes_in_the_forms_that_people_use(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in redact(text)
    assert secret not in by_patterns(text)


@pytest.mark.parametrize(
    "text",
    [
        "PASS: test_login\nFAIL: test_logout2",
        "PASS: tests/unit/test_login2.py::test_works[1]",
        "Pass :obj:`True` to go on.",
        "Pass :class:`~asyncio.Task2` here.",
        "pass: 12 files3 were read",
        "PASS: TestLogin/with_token2 (0.01s)",
        "| Key | Meaning |\n|---|---|\n| F12 | opens |\n| Ctrl+Shift+P2 | more |",
        "| Token | Example |\n|---|---|\n| INT4 | a number |\n| T_STRING2 | a string |",
        "Token | Meaning\n--- | ---\nIDENT1 | a name",
        "| Secret | Where |\n|---|---|\n| `db-credentials` | the vault |",
        "**Password:** required",
        "**Token:** see below",
        '{"name": "session", "value": "dark"}',
        '{"name": "theme", "value": "abcDEF123456ghiJKL7890"}',
        "echo 'done: 12' | tee log",
        "Het wachtwoord is vergeten.",
        "La password del Wi-Fi è cambiata ieri.",
        "Il codice di sconto è SALE2024 e la chiave di casa è sotto il vaso 12.",
        "A senha foi alterada em 2024.",
        "il pin è il numero 4 del connettore, il pin è 12",
        "Questa parola è lunga.",
        "密码是8位以上的字符",
        "密码：至少8个字符",
        "パスワードは8文字以上で入力してください",
        "la password di accesso è scaduta da 30 giorni",
        "il codice del prodotto è AB12345 e la chiave di riserva è sotto il vaso12",
        "le mot de passe est obligatoire, 8 caractères au moins",
        "the PIN is 1234567890 characters away; the pin is 13",
        "das Passwort für Kunde2024 ist falsch",
        "password for user2: required",
        "| Key | Value |\n|---|---|\n| `token` | the key of the bot |\n| `base_url` | an address |",
        'CREDENTIAL = "That seems to hold a credential, and memory goes to the model: leave it out."',
        "redis://legato:${REDIS_PASSWORD}@10.0.0.5:6379/0",
        "redis://[[username]:[password]]@localhost:6379/0",
    ],
)
def test_what_ordinary_texts_say_stays(text: str) -> None:
    assert redact(text) == text


def test_the_projects_own_texts_lose_nothing_but_their_examples() -> None:
    """Its documents, its changelog and its source, whose only credentials are examples."""
    files = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("gateway/**/*.py"),
        *ROOT.glob("adapters/**/*.py"),
    ]
    texts = [file.read_text(encoding="utf-8") for file in files]
    hits = sum(redact(text).count(MARK) - text.count(MARK) for text in texts)
    assert hits <= 5 * sum(map(len, texts)) / 1_000_000
