"""Carry out deploy/Dockerfile without Docker, try what comes out, and print its size: `make image-size`.

It needs root, bubblewrap, debootstrap and a Debian mirror. The base is Debian's own minimal system without its
documentation, as in Debian's image. Of the instructions only those that make files are carried out; the trial reads
the others.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
WORK: Final = ROOT / "build" / "image"
PATH: Final = "/usr/local/bin:/usr/bin:/bin"
DOCUMENTS: Final = ("doc", "info", "locale", "man")
UNKEPT: Final = 'Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache ""; APT::Keep-Downloaded-Packages "false";\n'
OF_THE_HOST: Final = ("etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt")  # the network, as this machine reaches it


def ran(*command: str | Path, given: str = "") -> str:
    """What a command prints; it must end with 0."""
    done = subprocess.run(
        command, input=given, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def inside(tree: Path, command: str) -> None:
    """Let a shell run a command in a tree, as root."""
    mounts = [(("-t", "proc", "proc"), tree / "proc"), (("--bind", "/dev"), tree / "dev")]
    for what, where in mounts:
        ran("mount", *what, where)
    try:
        ran("chroot", tree, "/bin/sh", "-c", command)
    finally:
        for _, where in mounts:
            ran("umount", where)


def base(suite: str) -> Path:
    """Debian's minimal system, made once."""
    tree = WORK / suite
    if not tree.exists():
        ran("debootstrap", "--variant=minbase", suite, WORK / "half")
        half = WORK / "half"
        excluded = "".join(f"path-exclude /usr/share/{each}/*\n" for each in DOCUMENTS)
        (half / "etc/dpkg/dpkg.cfg.d/docker").write_text(excluded)
        (half / "etc/apt/apt.conf.d/docker-clean").write_text(UNKEPT)
        for each in (
            *(half / "usr/share" / name for name in DOCUMENTS),
            half / "var/cache/apt",
            half / "var/lib/apt/lists",
        ):
            shutil.rmtree(each)
            each.mkdir()
        half.rename(tree)
    return tree


def instructions() -> Iterator[tuple[str, str]]:
    lines = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8").splitlines()
    for line in "\n".join(each for each in lines if not each.startswith("#")).replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        if word:
            yield word, rest.strip()


def copied(source: Path, target: Path) -> None:
    """As COPY does: a file goes into a folder, a folder's content into the folder that is named."""
    if source.is_relative_to(WORK):
        target.mkdir(parents=True, exist_ok=True)
        ran("cp", "-a", f"{source}/.", target)
    elif source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def begun(stage: Path, suite: str | None) -> Path:
    """A new stage; without a suite it is empty."""
    shutil.rmtree(stage, ignore_errors=True)
    if suite is None:
        stage.mkdir()
    else:
        ran("cp", "-a", base(suite), stage)
    return stage


def built() -> Path:
    """The tree of the last stage."""
    stage, folder, suite = WORK, "/", ""
    for word, rest in instructions():
        if word == "ARG" and rest.startswith("BASE="):
            suite = rest.removeprefix("BASE=debian:").removesuffix("-slim")
        elif word == "FROM":
            name = rest.partition(" AS ")[2] or "last"
            stage, folder = begun(WORK / f"stage-{name}", None if rest == "scratch" else suite), "/"
        elif word == "WORKDIR":
            folder = rest
            (stage / folder[1:]).mkdir(parents=True, exist_ok=True)
        elif word == "COPY":
            *sources, target = rest.split()
            from_stage = sources.pop(0).removeprefix("--from=") if sources[0].startswith("--from=") else ""
            for each in sources:
                source = WORK / f"stage-{from_stage}" / each[1:] if from_stage else ROOT / each
                copied(source, stage / (Path(folder) / target).as_posix()[1:])
        elif word == "RUN":
            for each in OF_THE_HOST:  # the installation of a package may have written it anew
                (stage / each).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path("/") / each, stage / each)
            inside(stage, f"cd {folder} && {rest}")
    return stage


def size(*paths: Path) -> int:
    """The bytes of the files in some folders; a file with two names counts once."""
    files = {
        (found.st_dev, found.st_ino): found.st_size
        for path in paths
        for each in path.rglob("*")
        if each.is_file() and not each.is_symlink()
        for found in [each.stat()]
    }
    return sum(files.values())


def contained(tree: Path, *command: str, given: str = "") -> str:
    """What the image prints for a command, as its own user, who can write to /data and /tmp only."""
    said = dict(instructions())
    user, _, group = said["USER"].partition(":")
    variables = dict(each.split("=", 1) for each in said["ENV"].split()) | {"PATH": PATH}
    return ran(
        *("setpriv", "--reuid", user, "--regid", group, "--clear-groups"),
        *("bwrap", "--ro-bind", tree, "/", "--bind", WORK / "data", "/data", "--tmpfs", "/tmp", "--chdir", "/data"),
        *("--dev", "/dev", "--proc", "/proc", "--unshare-all", "--as-pid-1", "--die-with-parent", "--clearenv"),
        *(word for name, value in variables.items() for word in ("--setenv", name, value)),
        *(*json.loads(said["ENTRYPOINT"])[:-1], *command),
        given=given,
    )


def tried(tree: Path) -> None:
    """A newcomer's first steps; a command in the sandbox; the bot, until it is healthy and is told to stop."""
    data = WORK / "data"
    shutil.rmtree(data, ignore_errors=True)
    shutil.copytree(tree / "data", data)
    ran("chown", "-R", dict(instructions())["USER"], data)
    print(contained(tree, "legato", "--version").strip())
    contained(tree, "legato", "init", "--provider", "offline", "--yes")
    asked = "run: expr 2 + 3; printf 'b\\na\\n' | sort | sed s/a/first/; python3 -c 'import ssl; print(ssl.__name__)'"
    answer = contained(tree, "legato", "chat", given=f"{asked}\n")
    if not all(word in answer.split() for word in ("5", "first", "ssl")):
        sys.exit(f"The command did not run in the image:\n{answer}")
    with (data / "config.yaml").open("a") as settings:
        settings.write("adapters: {web: {enabled: true}}\n")
    healthy = " ".join(json.loads(dict(instructions())["HEALTHCHECK"].partition("CMD ")[2]))
    serving = f"legato run & until {healthy} >/dev/null 2>&1; do sleep 1; done; kill $! && wait $!"
    contained(tree, "timeout", "60", "sh", "-c", serving)
    print("set up, asked, ran a command in its sandbox, was healthy, and stopped when it was told to")


def listed(tree: Path) -> int:
    """How many packages of Debian and of Python a scanner finds."""
    lines = (tree / "var/lib/dpkg/status").read_text(encoding="utf-8").splitlines()
    return lines.count("Status: install ok installed") + len(
        list(tree.glob("usr/local/legato/lib/*/*/*.dist-info/METADATA"))
    )


def main() -> None:
    tree = built()
    tried(tree)
    print(f"{listed(tree)} packages can be found by scanners")
    environment, python = tree / "usr/local/legato", size(*tree.glob("usr/lib/python3*"))
    ours = size(*environment.glob("lib/*/site-packages/gateway"), *environment.glob("lib/*/site-packages/adapters"))
    libraries, whole = size(environment) - ours, size(tree)
    parts = {"Legato": ours, "its libraries": libraries, "Python": python, "Debian": whole - python - libraries - ours}
    for name, many in {**parts, "all": whole}.items():
        print(f"{name:14} {many / 1e6:6.1f} MB")


if __name__ == "__main__":
    main()
