"""The files of `deploy/monitoring`: they name numbers that there are, and Prometheus itself takes them."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import ClientSession

from gateway.app.config.models import MonitorSettings
from gateway.app.monitor import answering
from gateway.app.problems import KINDS
from gateway.runtime.metrics import Counter, Gauge, Histogram
from tests.docs.tables import all_metrics
from tests.support.gateway import running
from tests.support.model import PATIENCE
from tests.support.redis_server import free_port
from tests.support.source_tree import ROOT

FOLDER = ROOT / "deploy/monitoring"
NAMES = sorted(each.name for each in FOLDER.iterdir())
PORT = 9464


def known() -> set[str]:
    """Every series that a gateway may show, by name."""
    endings = {Counter: ("_total",), Gauge: ("",), Histogram: ("_count", "_sum", "_bucket")}
    return {f"legato_{metric.name}{ending}" for metric in all_metrics() for ending in endings[type(metric)]}


def installed(program: str) -> list[str]:
    """Where the program is, which Debian's package prometheus brings; nowhere: nothing can be tried with it."""
    return [path for path in [shutil.which(program)] if path]


def alert_rules() -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"][0]["rules"]
    return rules


@pytest.mark.parametrize("name", NAMES)
def test_every_number_that_a_file_names_is_there(name: str) -> None:
    named = set(re.findall(r"\blegato_\w+", (FOLDER / name).read_text(encoding="utf-8")))
    assert named <= known()
    assert named or name == "prometheus.yml"


def test_the_scrape_asks_where_the_settings_say() -> None:
    scraped = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    (job,) = scraped["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"127.0.0.1:{PORT}"]}]
    assert scraped["rule_files"] == ["alerts.yml"]
    assert MonitorSettings(address=job["static_configs"][0]["targets"][0]).place(0) == ("127.0.0.1", PORT)


def test_every_alert_is_tried_twice() -> None:
    """Once where it must be silent, once where it must fire."""
    well, wrong = yaml.safe_load((FOLDER / "alerts_test.yml").read_text())["tests"]
    names = [rule["alert"] for rule in alert_rules()]
    assert [each["alertname"] for each in well["alert_rule_test"]] == names
    assert [each["alertname"] for each in wrong["alert_rule_test"]] == names
    assert not any("exp_alerts" in each for each in well["alert_rule_test"])
    assert all(each["exp_alerts"] for each in wrong["alert_rule_test"])
    assert all(rule["annotations"]["summary"] and rule["labels"]["severity"] for rule in alert_rules())


def test_the_dashboard_is_whole() -> None:
    board = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
    numbers = [panel["id"] for panel in board["panels"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert all(panel["title"] and panel["targets"] for panel in board["panels"])
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(set(places)) == len(places)


def test_every_kind_of_problem_is_told_in_the_docs() -> None:
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    _, _, table = page.partition("| Kind | Meaning |")
    assert re.findall(r"^\| `(\w+)`", table.partition("\n\n")[0], re.MULTILINE) == list(KINDS)


@pytest.mark.slow
@pytest.mark.parametrize("promtool", installed("promtool"))
def test_prometheus_itself_takes_the_rules_and_fires_each(promtool: str) -> None:
    for asked in (["check", "config", "prometheus.yml"], ["test", "rules", "alerts_test.yml"]):
        done = subprocess.run([promtool, *asked], cwd=FOLDER, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("prometheus", installed("prometheus"))
async def test_prometheus_scrapes_a_gateway_and_evaluates_the_rules(prometheus: str, tmp_path: Path) -> None:
    gateway, own = free_port(), free_port()
    text = (FOLDER / "prometheus.yml").read_text().replace(f":{PORT}", f":{gateway}").replace("15s", "1s")
    (tmp_path / "prometheus.yml").write_text(text)
    shutil.copy(FOLDER / "alerts.yml", tmp_path)
    options = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    async with running(tmp_path) as live, answering(MonitorSettings(address=f"127.0.0.1:{gateway}"), 0, live.gateway):
        server = await asyncio.create_subprocess_exec(
            prometheus,
            *options,
            f"--web.listen-address=127.0.0.1:{own}",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(PATIENCE), ClientSession() as http:

                async def ask(path: str) -> Any:
                    async with http.get(f"http://127.0.0.1:{own}/api/v1/{path}") as answer:
                        return (await answer.json())["data"]

                found: Any = None
                while not found:
                    await asyncio.sleep(0.2)
                    try:
                        found = (await ask("query?query=legato_platform_up"))["result"]
                    except OSError:  # it starts
                        continue
                assert found[0]["metric"]["platform"] == "fake"
                assert found[0]["value"][1] == "1"
                health: set[str] = set()
                while health != {"ok"}:
                    await asyncio.sleep(0.2)
                    health = {rule["health"] for rule in (await ask("rules"))["groups"][0]["rules"]}
        finally:
            server.terminate()
            await server.wait()
