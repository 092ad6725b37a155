"""Build the wheel and the source archive, install each as people do, and try the program: `make release-check`.

Each installed program has an empty home, and a PATH with nothing but the system's own programs. `--short` takes the
libraries of this environment instead of a registry's, and leaves pipx and uv out.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

from gateway import __version__

ROOT: Final = Path(__file__).parents[2]
PATIENCE: Final = 60.0
PATH: Final = "/usr/bin:/bin"


def ran(*command: str | Path, cwd: Path | None = None, given: str = "", **variables: str) -> str:
    """What a command prints; it must end with 0."""
    done = subprocess.run(
        [str(each) for each in command], cwd=cwd, input=given, text=True, check=False, env=variables or None,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def built(folder: Path) -> tuple[Path, Path]:
    """The wheel and the source archive. The wheel is made from the unpacked archive, so that each proves the other."""
    ran(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=ROOT)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder / "unpacked", filter="data")
    (code,) = (folder / "unpacked").iterdir()
    ran(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=code)
    (wheel,) = folder.glob("*.whl")
    return wheel, archive


def environment(folder: Path, package: Path, *, short: bool) -> Path:
    """A new environment with the package in it; the program's path."""
    ran(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    if short:
        (here,) = (folder / "lib").glob("python*/site-packages")
        (here / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    ran(python, "-m", "pip", "install", "--quiet", *(["--no-deps", "--no-build-isolation"] if short else []), package)
    return folder / "bin" / "legato"


def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def smoke(program: list[str | Path], home: Path) -> None:
    """A newcomer's first steps, in an empty home."""
    home.mkdir()
    bare = {"HOME": str(home), "PATH": PATH, "LC_ALL": "C.UTF-8"}

    def says(wanted: str, *words: str, given: str = "") -> None:
        text = ran(*program, *words, cwd=home, given=given, **bare)
        if not re.search(wanted, text):
            sys.exit(f"legato {' '.join(words)} does not say {wanted!r}:\n{text}")

    says(re.escape(f"legato {__version__}"), "--version")
    says(r"Commands:\n", "--help")
    says(r"\b5\b", "chat", given="What is 2 + 3?\n")
    says(r"offline", "init", "--provider", "offline", "--yes")
    says(r"", "check")
    address = port()
    (home / ".legato" / "config.yaml").write_text(f"adapters: {{web: {{enabled: true, port: {address}}}}}\n")
    page_answers([*map(str, program), "run"], f"http://127.0.0.1:{address}/", home, bare)


def page_answers(command: list[str], url: str, home: Path, bare: dict[str, str]) -> None:
    """Serve, ask for the page until it comes, and stop by SIGTERM, which has to end it with 0."""
    with (home / "run.log").open("w") as log:
        serving = subprocess.Popen(command, cwd=home, env=bare, stdout=log, stderr=log)
    try:
        ends = time.monotonic() + PATIENCE
        while not answered(url):
            if serving.poll() is not None or time.monotonic() > ends:
                sys.exit(f"the page does not answer:\n{(home / 'run.log').read_text()}")
            time.sleep(0.1)
        serving.terminate()
        if status := serving.wait(PATIENCE):
            sys.exit(f"legato run ended with {status}:\n{(home / 'run.log').read_text()}")
    finally:
        serving.kill()
        serving.wait()


def answered(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return b"Legato" in answer.read()
    except urllib.error.HTTPError as error:  # the way in, for who is not logged in
        return b"Legato" in error.read()
    except OSError:
        return False


def by_pipx_and_uv(folder: Path, wheel: Path) -> None:
    """What people type to install programs, with both tools from the registry that pip is set up for."""
    tools = folder / "tools"
    ran(sys.executable, "-m", "venv", tools)
    ran(tools / "bin" / "python", "-m", "pip", "install", "--quiet", "pipx", "uv")
    for name in ("PIPX_HOME", "PIPX_BIN_DIR", "UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "UV_CACHE_DIR"):
        os.environ[name] = str(folder / name.lower())
    environ = {**os.environ, "PATH": f"{tools / 'bin'}:{PATH}"}
    ran(tools / "bin" / "pipx", "install", "--python", sys.executable, wheel, **environ)
    smoke([folder / "pipx_bin_dir" / "legato"], folder / "home-pipx")
    upgrade_says(folder / "pipx_bin_dir" / "legato", folder, r"installed by pipx")
    ran(tools / "bin" / "uv", "tool", "install", "--python", sys.executable, wheel, **environ)
    smoke([folder / "uv_tool_bin_dir" / "legato"], folder / "home-uv")
    upgrade_says(folder / "uv_tool_bin_dir" / "legato", folder, r"installed by uv")
    uvx = [tools / "bin" / "uvx", "--python", sys.executable, "--from", wheel, "legato"]
    home = folder / "home-uvx"
    home.mkdir()
    if "5" not in ran(*uvx, "chat", given="What is 2 + 3?\n", **{**environ, "HOME": str(home)}):
        sys.exit("uvx legato chat does not answer")


def upgrade_says(program: Path, folder: Path, wanted: str) -> None:
    """A file that was installed has no newer one of its name: `legato upgrade` says what to fetch."""
    text = ran(program, "upgrade", cwd=folder, HOME=str(folder), PATH=PATH)
    if not re.search(wanted, text) or "Download the newer file" not in text:
        sys.exit(f"legato upgrade does not say {wanted!r}:\n{text}")


def main(*, short: bool) -> None:
    folder = Path(tempfile.mkdtemp(prefix="legato-release-"))
    try:
        wheel, archive = built(folder)
        print(f"built {wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB) and {archive.name}", flush=True)
        for package in (wheel, archive):
            name = package.name.rpartition(".")[2]
            program = environment(folder / f"venv-{name}", package, short=short)
            smoke([program], folder / f"home-{name}")
            print(f"{package.name}: installs, chats, checks, and serves the page", flush=True)
        if not short:
            by_pipx_and_uv(folder, wheel)
            print("pipx install, uv tool install, uvx: the same", flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(short="--short" in sys.argv[1:])
