"""A small MCP server that starts in 20 ms: `python -I -S raw.py HABIT…`. Each habit is one that servers have.

It writes its process id into the file named by RAW_PIDS, if there is one, and those of what it starts.
"""

import json
import os
import subprocess
import sys
import time
from typing import Any

HABITS = sys.argv[1:]
NAMES = ["echo"]
WANTED = {"messages": [], "maxTokens": 1, "message": "?", "requestedSchema": {"type": "object", "properties": {}}}


def note(pid: int) -> None:
    if "RAW_PIDS" in os.environ:
        with open(os.environ["RAW_PIDS"], "a") as file:
            file.write(f"{pid}\n")


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tool(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"The tool {name}.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "annotations": {"readOnlyHint": True, "idempotentHint": True},
    }


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
    if name == "echo":
        return text(arguments.get("text", ""))
    if name == "picture":
        head = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
        return {
            "content": [{"type": "text", "text": "a dot"}, {"type": "image", "data": head, "mimeType": "image/png"}]
        }
    if name == "environment":
        return text(json.dumps(dict(os.environ)))
    if name == "run":
        done = subprocess.run(arguments["text"], shell=True, capture_output=True, text=True)
        return text(done.stdout + done.stderr)
    if name == "heard":
        return text(json.dumps(HEARD))
    if name == "more":
        NAMES.append("late")
        send({"method": "notifications/tools/list_changed"})
        return text("done")
    if name == "exit":
        sys.stderr.write("out of memory\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "much":
        for _ in range(int(arguments["mb"])):
            sys.stdout.write("x" * 1024 * 1024)
        sys.stdout.write("\n")
        sys.stdout.flush()
        return None
    if name == "hang":
        time.sleep(1_000)
    if name == "never":
        return None
    if name == "news":
        for number in range(20_000):
            send({"method": "notifications/message", "params": {"level": "info", "data": f"step {number}"}})
        sys.stdout.write("\n" * 2_000_000)
        return text("done")
    if name == "asks_on":
        for number in range(5_000):
            send({"id": f"s{number}", "method": "ping"})
    if name == "asks":
        for number, method in enumerate(("sampling/createMessage", "roots/list", "elicitation/create", "no/such")):
            send({"id": f"s{number}", "method": method, "params": dict(WANTED)})
        return text("asked")
    return text(f"there is no {name}", isError=True)


def starts_others() -> None:
    code = "import os,time\nif os.fork() == 0:\n os.setsid()\nprint(os.getpid(), flush=True)\ntime.sleep(1000)"
    other = subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE, start_new_session=True)
    assert other.stdout is not None
    for _ in range(2):
        note(int(other.stdout.readline()))


HEARD: list[str | None] = []
note(os.getpid())
if "exits" in HABITS:
    sys.stderr.write("no licence, with the key sk-raw-1234567890\n")
    sys.exit(9)
if "forks" in HABITS:
    starts_others()
if "deaf" in HABITS:
    os.close(0)
    note(os.getpid())
    time.sleep(1_000)
if "prints" in HABITS:
    print("Welcome to my server!\n{\n{}\n[1,2]\n" + "\\x00", flush=True)
if "floods" in HABITS:
    for _ in range(100_000):
        print("noise", flush=True)
if "complains" in HABITS:
    sys.stderr.write("key sk-raw-1234567890\n" + "y" * 100_000 + "\n" * 1_000)
    sys.stderr.flush()
NAMES += [habit[5:] for habit in HABITS if habit.startswith("tool:")]
if "stays" in HABITS:
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    message = json.loads(line)
    HEARD.append(message.get("method", message.get("error", {}).get("message")))
    method = message.get("method")
    if "mute" in HABITS or "id" not in message or method is None:
        continue
    answer: dict[str, Any] | None = None
    if method == "initialize":
        abilities = {"tools": {"listChanged": True}}
        info = {"name": "raw", "version": "1"}
        answer = {"protocolVersion": "2025-06-18", "capabilities": abilities, "serverInfo": info}
    elif method == "tools/list":
        answer = {"tools": [tool(name) for name in NAMES]}
        if "endless" in HABITS:
            answer = {"tools": [tool(f"t{number}") for number in range(50)], "nextCursor": "more"}
        if "lies" in HABITS:
            answer["tools"].append({"name": "bad name!", "inputSchema": {"type": "object", "properties": {"a b": {}}}})
        if "breaks" in HABITS:
            answer = {"tools": "none"}
        for habit in HABITS:
            if habit.startswith("bad:"):
                answer["tools"].insert(0, json.loads(habit[4:]))
        if "pages" in HABITS:
            page = int(message.get("params", {}).get("cursor", "0"))
            answer = {"tools": [tool(f"t{page}-{number}") for number in range(3)]}
            if page + 1 < int(HABITS[-1]):
                answer["nextCursor"] = str(page + 1)
    elif method == "tools/call":
        answer = call(message["params"]["name"], message["params"].get("arguments", {}))
    elif method == "ping":
        answer = {}
    if answer is not None:
        send({"id": message["id"], "result": answer})
if "stays" in HABITS:
    time.sleep(1_000)
