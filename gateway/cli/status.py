"""`legato status`: what a running gateway says of itself; where none answers, what the store says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from gateway.app.config import Config
from gateway.app.config.models import MonitorSettings
from gateway.app.health import backlog_report
from gateway.app.reload import HELD, OWN, RELOAD
from gateway.domain.wording import counted, lasting
from gateway.runtime.clock import SystemClock
from gateway.store.port import ReportStore

_PATIENCE: Final = 5.0  # seconds; a model's server is asked for its window, for 3 s at most
SILENT: Final = "silent"
_REFUSED: Final = 409
_MOST_WORKERS: Final = 64
_ANYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # listening there is heard here


def asked(monitor: MonitorSettings) -> list[dict[str, Any]]:
    """The reports of the gateways that answer at the address: one, or each worker's; of a worker that hangs beside
    them only the place where it is `silent`."""
    reports = _answers(monitor, partial(Request, method="GET"), "/statusz")
    return [report for report in reports if "worker" in report or SILENT in report]


def reloaded(monitor: MonitorSettings) -> list[dict[str, Any]]:
    """Have the gateways at the address read their settings again, and return the answer of each: the keys that have
    `changed` and those `waiting` for the next start; the `problems`, if nothing has changed; or where it is
    `silent`."""
    return _answers(monitor, partial(Request, method="POST", headers={OWN: "reload"}), RELOAD)


def _answers(monitor: MonitorSettings, request: Callable[[str], Request], path: str) -> list[dict[str, Any]]:
    answers = list(_each(monitor, request, path))
    return [] if all(SILENT in each for each in answers) else answers


def _each(monitor: MonitorSettings, request: Callable[[str], Request], path: str) -> Iterator[dict[str, Any]]:
    opener = build_opener(ProxyHandler({}))  # none stands before this machine
    for worker in range(_MOST_WORKERS if monitor.address is not None else 0):
        host, port = monitor.place(worker)
        host = _ANYWHERE.get(host, host)
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            with opener.open(request(f"http://{place}{path}"), timeout=_PATIENCE) as answer:
                report = json.load(answer)
        except HTTPError as error:  # which is the answer, too
            report = json.load(error) if error.code == _REFUSED else None
        except TimeoutError:  # of who took the question; where nobody listens, there are no more workers
            report = {SILENT: place}
        except (OSError, HTTPException, ValueError):
            return
        if not isinstance(report, dict):
            return
        yield report


def is_well(reports: Sequence[Mapping[str, Any]]) -> bool:
    """Whether there is a gateway, and messages move in each."""
    return bool(reports) and all(each.get("moves") for each in reports)


async def of_store(store: ReportStore) -> dict[str, Any]:
    """The part of a report that the store alone knows."""
    return backlog_report(await store.backlog(), SystemClock().now())


def nobody(settings: Config) -> str:
    """The sentence that says why no gateway answers."""
    if settings.monitor.address is None:
        return "The bot has no monitor address yet. `legato config set monitor.address 127.0.0.1:9464` sets one."
    return f"No gateway answers at {settings.monitor.address}."


def reload_text(answers: Sequence[Mapping[str, Any]]) -> str:
    """Answers of `reloaded` to be read; workers that say the same, once."""
    return "\n".join(dict.fromkeys("\n".join(_reload_lines(each)) for each in answers))


def _reload_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    if SILENT in answer:
        yield _silent(answer)
        return
    if problems := answer.get("problems"):
        yield from ("Nothing has changed:", *problems)
        return
    changed, waiting = answer["changed"], answer["waiting"]
    yield (
        f"These settings apply from now on: {', '.join(changed)}."
        if changed
        else "No settings have changed, apart from any that need a restart."
    )
    if waiting:
        yield f"These settings apply from the next start: {', '.join(waiting)}."
    if held := answer.get("held"):
        yield f"These settings wait: {', '.join(held)}. {HELD}."


def status_text(reports: Sequence[Mapping[str, Any]]) -> str:
    """Reports to be read."""
    return "\n\n".join("\n".join(_lines(each)) for each in reports)


def _lines(report: Mapping[str, Any]) -> list[str]:
    if SILENT in report:
        return [_silent(report)]
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
        if (backup := report["backup"]) is not None:
            lines.append(f"{'backup':<12} made {_when(backup['made_at'])}, the next {_when(backup['next'])}")
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


def _silent(answer: Mapping[str, Any]) -> str:
    return f"The gateway at {answer[SILENT]} does not answer."


def _pile(count: int, seconds: float, one: str, several: str) -> str:
    if not count:
        return "empty"
    return f"{counted(count, 'message')} {one if count == 1 else several}, the oldest for {lasting(seconds)}"


def _when(at: str | None) -> str:
    return "nothing yet" if at is None else f"{at[:19].replace('T', ' ')} UTC"
