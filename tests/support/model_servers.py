"""llama.cpp's own server with a real, tiny model, and a LiteLLM proxy: programs of others, in environments of their own
that `make slow` makes."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx

from tests.support.forks import ROOT

LLAMACPP: Final = ROOT / "build" / "llamacpp" / "bin"
LITELLM: Final = ROOT / "build" / "litellm" / "bin"
HERE: Final = Path(__file__).parents[1] / "real"
PROXY_KEY: Final = "sk-proxy-of-a-test-0123456789abcdef"
_BEGIN: Final = 90.0  # seconds that the proxy may take to begin


def installed(folder: Path) -> Path:
    """The environment's folder. Fails where it is not there."""
    assert folder.exists(), f"{folder} is missing: `make slow` makes it"
    return folder


def tiny_model(folder: Path) -> Path:
    """Write the file of the model."""
    path = folder / "tiny.gguf"
    subprocess.run([installed(LLAMACPP) / "python", HERE / "tiny_gguf.py", path], check=True, capture_output=True)
    return path


@contextmanager
def llamacpp(model: Path, window: int, port: int) -> Iterator[str]:
    """llama.cpp's server with this window; gives its address."""
    command = [f"{LLAMACPP}/python", f"{HERE}/llamacpp_server.py", f"{model}", str(port), str(window)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            address = server.stdout.readline().decode().strip()
            assert address.startswith("http"), "the server did not begin"
            yield f"{address}/v1"
        finally:
            server.stdin.close()
            server.kill()


@contextmanager
def litellm(behind: str, folder: Path, port: int) -> Iterator[str]:
    """A LiteLLM proxy in front of a server, which is its model "tiny"; gives its address."""
    config = folder / "litellm.yaml"
    parameters = f'{{model: openai/any, api_base: "{behind}", api_key: none}}'
    config.write_text(f"model_list:\n  - model_name: tiny\n    litellm_params: {parameters}\n", encoding="utf-8")
    command = [f"{installed(LITELLM)}/litellm", "--config", f"{config}", "--port", str(port), "--host", "127.0.0.1"]
    environment = {**os.environ, "LITELLM_MASTER_KEY": PROXY_KEY}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as proxy:
        try:
            _wait_for(f"http://127.0.0.1:{port}/health/liveliness", proxy)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            proxy.kill()


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _BEGIN
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(address, timeout=1).is_success:
                return
        except httpx.HTTPError:
            process.poll()
        time.sleep(0.2)
    raise AssertionError("the proxy did not begin")
