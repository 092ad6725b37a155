"""`legato status`: what a running gateway says of itself; where none answers, what the store says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from typing import Any, Final
from urllib.request import ProxyHandler, build_opener

from gateway.app.config import Config
from gateway.app.config.models import MonitorSettings
from gateway.app.health import backlog_report
from gateway.app.problems import SLOWS_ALONE
from gateway.domain.wording import counted, lasting
from gateway.runtime.clock import SystemClock
from gateway.store.port import ReportStore

_PATIENCE: Final = 5.0  # seconds
_MOST_WORKERS: Final = 64
_ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # listening there is heard here


def asked(monitor: MonitorSettings) -> list[dict[str, Any]]:
    """The reports of the gateways that answer at the address: one, or each worker's."""
    reports: list[dict[str, Any]] = []
    for worker in range(_MOST_WORKERS if monitor.address is not None else 0):
        host, port = monitor.place(worker)
        if (report := _report(_ANYWHERE.get(host, host), port)) is None:
            break
        reports.append(report)
    return reports


def _report(host: str, port: int) -> dict[str, Any] | None:
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    with suppress(OSError, HTTPException, ValueError):
        opener = build_opener(ProxyHandler({}))  # none stands before this machine
        with opener.open(f"http://{place}/statusz", timeout=_PATIENCE) as answer:
            report = json.load(answer)
            return report if isinstance(report, dict) and "worker" in report else None
    return None


def is_well(reports: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether there is a gateway, and messages move in each."""
    return bool(reports) and all(
        each["state"] == "serving" and all(problem["kind"] in SLOWS_ALONE for problem in each["problems"])
        for each in reports
    )


async def of_store(store: ReportStore) -> dict[str, Any]:
    """The part of a report that the store alone knows."""
    return backlog_report(await store.backlog(), SystemClock().now())


def nobody(settings: Config) -> str:
    """The sentence that says why there is no report."""
    if settings.monitor.address is None:
        return "monitor.address is not set, so no gateway can be asked. This is what the store says:"
    return f"No gateway answers at {settings.monitor.address}. This is what the store says:"


def status_text(reports: Sequence[Mapping[str, Any]]) -> str:
    """Reports to be read."""
    return "\n\n".join("\n".join(_lines(each)) for each in reports)


def _lines(report: Mapping[str, Any]) -> list[str]:
    lines = []
    if "worker" in report:
        model, store = report["model"], report["store"]
        lines.append(f"{report['state']} for {lasting(report['uptime_seconds'])}, version {report['version']}")
        lines += [
            f"{name:<12} {each['reader']}; heard {_when(each['last_update'])}, answered {_when(each['last_answer'])}"
            for name, each in report["platforms"].items()
        ]
        away = f"; away: {model['away']}" if model["away"] else ""
        lines.append(
            f"{'model':<12} {model['name']}: answered {_when(model['last_answer'])}, "
            f"failed {_when(model['last_failure'])}{away}"
        )
        lines.append(f"{'store':<12} {store['error'] or 'a write takes %.0f ms' % (store['write_seconds'] * 1_000)}")
        lines.append(f"{'loop':<12} {report['event_loop_lag_seconds']:.1f} s late at the last look")
        lines.append(f"{'turns':<12} {counted(report['turns_running'], 'turn')} under way")
    inbox, outbox = report["inbox"], report["outbox"]
    lines.append(f"{'inbox':<12} {_pile(inbox['waiting'], inbox['oldest_seconds'], 'waits', 'wait')}")
    lines.append(f"{'outbox':<12} {_pile(outbox['unsent'], outbox['oldest_seconds'], 'is not shown', 'are not shown')}")
    lines.append(f"{'dead letters':<12} {report['dead_letters']}")
    lines += [
        f"{'PROBLEM':<12} {each['kind']} {each['about']}: ".replace(" :", ":")
        + f"{each['text']} (since {each['since']})"
        for each in report.get("problems", ())
    ]
    return lines


def _pile(count: int, seconds: float, one: str, several: str) -> str:
    if not count:
        return "empty"
    return f"{counted(count, 'message')} {one if count == 1 else several}, the oldest for {lasting(seconds)}"


def _when(at: str | None) -> str:
    return "nothing yet" if at is None else f"{at[:19].replace('T', ' ')} UTC"
