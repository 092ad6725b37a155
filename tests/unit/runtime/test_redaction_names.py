"""Names of words and numbers stay, whatever prefix they have; what a machine mixed goes."""

import json
import random
import string

import pytest

from gateway.runtime.redaction import MARK, Redactor

redact = Redactor()
LETTERS, SMALL, CAPITALS = string.ascii_letters, string.ascii_lowercase, string.ascii_uppercase
NAMES = [
    "prod-deployment2024build12",
    "live-stream2024session1080p",
    "tk-us-east-1-cluster-production-node-group-07",
    "tk-eu-west-3-analytics-cluster2024-node12-standby",
    "voyage-context-3-embedding-2025-07",
    "sk-learn_pipeline_2024_v12_final",
    "sk-admin-dashboard-frontend-v2",
    "xapp-framework-demo-2024",
    "live-concert2023tour11berlin",
    "prod-frontend20241123build7",
    "prod-db2024backup11full",
    "live_photos2023part2export",
    "acme-prod-gateway2025q1release3",
    "secret-santa2024list12final",
    "live-user-profile2024photo12small",
    "prod-dev-server2024node12rack",
    "ms-live-dashboard2024panel12",
    "api-prod-harness2024run15",
    "apikey-rotation2024guide12steps",
    "vercel_deployments2024archive1",
    "prod-eu-kafka01broker2024",
    "live-scores2024week11nfl",
    "prod_k8s2024cluster12nodes",
    "live-blog20241123part2election",
    "prod-payments3replica2024b",
    "e2b_sandbox2024templates12",
    "rnd_experiment2024results12run3",
    "aio_benchmark2024nightly12",
    "live-atlanta1996olympics100m",
    "prod-release1042hotfix7",
    "live-session12recording2024-11-23",
    "prod-mysql8primary2024snapshot1",
    "secret-garden1993remaster1080p",
    "my-prod-loadbalancer2024a1b",
    "prod-ubuntu2204node20image7",
    "live-match2024round16highlights",
    "prod-20241123t184502-canary",
    "EAAA-conference-2024-proceedings-volume-12-part-3",
    "prod-9f2c41e7b1d04c5a8e63f7720b9d1c4e5a6f7081",
    "ip-10-0-142-87.eu-central-1.compute.internal",
    "gke-prod-europe-west4-pool2024a-7c9f4b6d-xk2lp",
    "checkout-service-canary2024w47-6bdf5",
    "feature/JIRA-4821-payment-retry-2025q1-rework",
    "release/2024.11.3-rc2-hotfix-build8812",
    "dependabot/npm_and_yarn/vite-5.4.11-security2024",
    "api-gateway:2024-11-23-build4417-arm64",
    "how-i-built-a-24-hour-livestream-with-3-cameras-in-2024",
    "01932c07-209c-7401-8f8d-dc9b4e8fb6a1",
    "v2.14.0-187-gdeadbee",
    "PO-2024-118273-EU-0042",
    "ORD20241123A7788120045",
    "INV-2025-Q1-000482-REV3",
    "IMG_20241123_184502_HDR~2.jpg",
    "python3.12-manylinux_2_28_x86_64-cp312-abi3.whl",
    "com.example.mobile.release2024build118.aab",
    "test_user_can_login_with_2fa_after_30_days_2024",
    "season2024episode12-finale-directors-cut1080p",
]


@pytest.mark.parametrize("said", ["{}", "Look at {} please.", "name: {}\n", "https://example.org/{}?page=2"])
def test_a_name_of_words_and_numbers_stays(said: str) -> None:
    texts = [said.format(name) for name in NAMES]
    wrong = [redact(text) for text in texts if redact(text) != text or redact(json.dumps(text)) != json.dumps(text)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("letters", [LETTERS, SMALL, CAPITALS, "abcdef"])
@pytest.mark.parametrize("prefix", ["acme_live_", "prod-", "zz_pat_", "secret_"])
def test_what_a_machine_mixed_goes_behind_a_prefix_that_tells(prefix: str, letters: str) -> None:
    """At least 95 of 100, of 24 characters; a few have no digit."""
    rng = random.Random(prefix + letters)
    tokens = [prefix + "".join(rng.choices(letters + string.digits, k=24)) for _ in range(300)]
    stayed = [token for token in tokens if redact(f"this one: {token}") != f"this one: {MARK}"]
    assert len(stayed) <= 15, stayed


@pytest.mark.parametrize("prefix", ["dapi", "key-", "sqp_", "fc-", "e2b_", "sk_"])
def test_hexadecimal_behind_a_vendors_prefix_goes(prefix: str) -> None:
    rng = random.Random(prefix)
    tokens = [prefix + "".join(rng.choices("0123456789abcdef", k=48)) for _ in range(300)]
    assert [token for token in tokens if redact(token) != MARK] == []


def test_long_numbers_make_no_words_of_a_token() -> None:
    rng = random.Random("slack")
    ends = ["".join(rng.choices(LETTERS + string.digits, k=24)) for _ in range(300)]
    tokens = [f"xoxb-{rng.randrange(10**11, 10**12)}-{rng.randrange(10**11, 10**12)}-{end}" for end in ends]
    assert [token for token in tokens if redact(f"this one: {token}") != f"this one: {MARK}"] == []


@pytest.mark.parametrize(
    "token",
    [
        "snyk_uat."
        + "917d3fd3."
        + "gdZHUywlBugURf4QLImCQpkFZKVtC5KXSB5KDJrdYyQmz3kP0aTe8wLx"
        + ".Qm2ZkP0aTe8wLxV4Rb7N",
        "pat." + "EesvO8muLhleCGd4MKfky9." + "f8d3813bb6f658e8949cadbc." + "vZWqvJLFbTyhKwRnXe3u",
        "t1." + "Ms47VWF." + "yQwEz5z2IP3OLJSfeJAq" * 4 + "jMbYJ5",
        "xaat-" + "1315beb1-2b8e-495f-a164-c4265125d887",
        "persona_production_" + "a3559ba5-06ca-4992-aa01-94e6639fe6f1",
        "sqp_" + "8b3a6ffd13b19ebee3aa90e385a2dded3b588b37",
        "sk-" + "63551175-5931-4c0e-802f-bdb3aa45d237",
    ],
    ids=["snyk", "harness", "yandex", "axiom", "persona", "sonarqube", "uuid"],
)
def test_tokens_of_further_vendors_go(token: str) -> None:
    assert redact(f"this one: {token} and") == f"this one: {MARK} and"
