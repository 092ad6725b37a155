"""Every line of docs/providers.md can be written into config.yaml as it stands."""

import re
from pathlib import Path

import pytest

from gateway.app.config import load_config

PAGE = (Path(__file__).parents[3] / "docs" / "providers.md").read_text(encoding="utf-8")
LINES = re.findall(r"^\| .* \| `(\{provider:.*\})` \|$", PAGE, re.MULTILINE)
KEYS = {name: "k" for line in LINES for name in re.findall(r"\$\{(\w+)\}", line)}


@pytest.mark.parametrize("line", LINES)
def test_the_line_is_a_valid_section(line: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"model: {line}\n", encoding="utf-8")
    assert load_config(path, KEYS).model.name


def test_the_page_names_the_vendors_and_servers_that_people_ask_for() -> None:
    assert len(LINES) >= 9
    assert {"openai", "openai-responses", "anthropic"} <= set(re.findall(r"provider: ([\w-]+)", " ".join(LINES)))
