"""A vendor by its name: two lines of YAML and a variable."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.app import plugins
from gateway.app.config import load_config
from gateway.app.models import NoTable, model_spec
from gateway.app.plugins import providers
from gateway.providers.plugin import ServedModel, Vendor
from gateway.providers.vendors import VENDORS
from gateway.runtime.errors import ConfigError

NEEDS_A_KEY = [each for each in VENDORS if not each.own and each.key and "{" not in each.address]


def loaded(tmp_path: Path, model: str, environ: Mapping[str, str]) -> ServedModel:
    path = tmp_path / "config.yaml"
    path.write_text(f"model: {model}\n", encoding="utf-8")
    model_section = load_config(path, environ).model
    assert isinstance(model_section, ServedModel)
    return model_section


def problem(tmp_path: Path, model: str, environ: Mapping[str, str]) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, model, environ)
    return str(caught.value)


@pytest.mark.parametrize("vendor", NEEDS_A_KEY, ids=lambda each: each.name)
def test_a_name_and_a_variable_are_enough(tmp_path: Path, vendor: Vendor) -> None:
    section = loaded(tmp_path, f"{{provider: {vendor.name}, name: m}}", {vendor.key: "the-key"})
    spec = model_spec(section, NoTable())
    assert (spec.base_url, spec.api_key, spec.provider) == (vendor.address, "the-key", vendor.name)
    assert vendor.address.startswith("https://")
    told = problem(tmp_path, f"{{provider: {vendor.name}, name: m}}", {})
    assert f"set the variable {vendor.key}" in told
    assert vendor.keys_at in told


@pytest.mark.parametrize("vendor", [each for each in VENDORS if each.own], ids=lambda each: each.name)
def test_a_server_of_ones_own_needs_no_key(tmp_path: Path, vendor: Vendor) -> None:
    section = loaded(tmp_path, f"{{provider: {vendor.name}, name: m}}", {})
    assert section.base_url == vendor.address
    assert section.api_key is None


def test_a_written_key_counts_more_than_the_vendors_variable(tmp_path: Path) -> None:
    environ = {"GROQ_API_KEY": "usual", "MINE": "mine"}
    section = loaded(tmp_path, '{provider: groq, name: m, api_key: "${MINE}"}', environ)
    assert section.api_key is not None
    assert section.api_key.get_secret_value() == "mine"
    section = loaded(tmp_path, '{provider: groq, name: m, api_keys: ["${MINE}", "${GROQ_API_KEY}"]}', environ)
    assert section.api_key is None
    assert [key.get_secret_value() for key in section.api_keys] == ["mine", "usual"]


def test_another_server_with_the_same_api_is_not_sent_the_vendors_key(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": "theirs", "ANTHROPIC_API_KEY": "theirs"}
    for api in ("openai", "openai-responses", "anthropic"):
        elsewhere = loaded(tmp_path, f'{{provider: {api}, name: m, base_url: "http://127.0.0.1:9/v1"}}', environ)
        assert elsewhere.api_key is None
        assert loaded(tmp_path, f"{{provider: {api}, name: m}}", environ).api_key is not None


def test_an_address_that_is_the_customers_own_must_be_given(tmp_path: Path) -> None:
    told = problem(tmp_path, "{provider: azure, name: m}", {"AZURE_OPENAI_API_KEY": "k"})
    assert 'model.base_url is needed by azure: "https://RESOURCE.openai.azure.com/openai/v1"' in told
    given = '{provider: azure, name: m, base_url: "https://mine.openai.azure.com/openai/v1"}'
    spec = model_spec(loaded(tmp_path, given, {"AZURE_OPENAI_API_KEY": "k"}), NoTable())
    assert (spec.api_key, spec.key_header) == ("k", "api-key")


def test_where_there_are_no_keys_the_vendors_program_gives_out_tokens(tmp_path: Path) -> None:
    address = "https://aiplatform.googleapis.com/v1/projects/p/locations/global/endpoints/openapi"
    section = loaded(tmp_path, f'{{provider: vertex, name: m, base_url: "{address}"}}', {})
    assert section.api_key_command == "gcloud auth print-access-token"


def test_what_a_vendors_models_lack_is_left_out(tmp_path: Path) -> None:
    environ = {"PERPLEXITY_API_KEY": "k"}
    assert loaded(tmp_path, "{provider: perplexity, name: sonar}", environ).tools is False
    assert loaded(tmp_path, "{provider: perplexity, name: sonar, tools: true}", environ).tools is True


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ('{provider: groq, name: m, api_keys: ["${A}"], api_key: "${A}"}', "is one of three ways to name a key"),
        ('{provider: groq, name: m, api_keys: ["${A}"], api_key_command: print}', "is one of three ways"),
        ("{provider: groq, name: m, api_keys: [gsk_literal]}", "must not be written into the file"),
        ('{provider: groq, name: m, api_keys: ["${B}"]}', "needs the variable B"),
    ],
)
def test_keys_that_contradict_or_are_missing_are_told(tmp_path: Path, model: str, said: str) -> None:
    assert said in problem(tmp_path, model, {"A": "a"})


def test_every_key_is_a_secret_of_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text('model: {provider: groq, name: m, api_keys: ["${A}", "${B}"]}\n', encoding="utf-8")
    assert {"first-key", "second-key"} <= set(load_config(path, {"A": "first-key", "B": "second-key"}).secrets())
    path.write_text("model: {provider: groq, name: m}\n", encoding="utf-8")
    assert "the-key" in load_config(path, {"GROQ_API_KEY": "the-key"}).secrets()


def test_the_page_shows_every_vendor() -> None:
    page = (Path(__file__).parents[3] / "docs" / "providers.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"provider: ([\w-]+)", page))
    assert {each.name for each in VENDORS} <= shown


def brought(monkeypatch: pytest.MonkeyPatch, rows: Any) -> Mapping[str, Any]:
    """The providers with another package's rows."""
    monkeypatch.setattr(plugins, "_brought", lambda group: [("legato.vendors: acme of legato-acme 1.0", rows)])
    return providers.__wrapped__()


def test_another_package_brings_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Vendor(name="acme", title="Acme", api="anthropic", address="https://api.acme.example", key="ACME_KEY")
    assert brought(monkeypatch, (row,))["acme"].create == providers()["anthropic"].create


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([Vendor(name="groq", title="Mine")], "two providers are named groq, of Legato and legato.vendors: acme"),
        ([Vendor(name="acme", title="Acme", api="smoke")], "acme speaks 'smoke', which is not a wire format"),
        (["acme"], "legato-acme 1.0 must be a tuple of vendors"),
    ],
)
def test_rows_that_cannot_be_used_are_told(monkeypatch: pytest.MonkeyPatch, rows: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        brought(monkeypatch, rows)
