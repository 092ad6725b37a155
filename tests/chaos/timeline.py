"""A run as it went, to be read: what processes passed, what was sent, asked and done to them, in order."""

from __future__ import annotations

from tests.chaos.findings import Findings


def timeline(findings: Findings) -> list[str]:
    """One line for each event, with the real seconds since the first."""
    trace = findings.trace()
    rows = [(at, f"{process}: {' '.join(words)}") for at, process, words in trace]
    rows += [(hit.begun, f"   {hit.kind} begins {_whom(hit.process)}") for hit in findings.hits]
    rows += [
        (hit.ended, f"   {hit.kind} is over {_whom(hit.process)}") for hit in findings.hits if hit.ended > hit.begun
    ]
    for send in findings.sends:
        fate = f"{'shown' if send.shown else 'not shown'}{f', {send.fault}' if send.fault else ''}"
        what = f"{send.kind} {send.row} to {send.chat} for {send.answers}"
        rows.append((send.at, f"{send.process}: sent {what} ({fate}): {send.text[:50]!r}"))
    for call in findings.calls:
        said = str(call.body["messages"][-1].get("content"))[-40:]
        what = f"asked the model: …{said!r}" if call.is_turn else "asked beside the conversation"
        rows.append((call.begun, f"{call.process}: {what}{f' ({call.fault})' if call.fault else ''}"))
    began = min((at for at, _ in rows), default=0.0)
    return [f"{at - began:7.3f}  {text}" for at, text in sorted(rows)]


def _whom(process: int) -> str:
    return f"for process {process}" if process >= 0 else ""
