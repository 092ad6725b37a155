"""Carry out deploy/Dockerfile without Docker, try what comes out, and print its size: `make image-size`.

It needs root, debootstrap and a Debian mirror. The base is Debian's own minimal system without its documentation, as in
Debian's image. Only the instructions that make files are carried out.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
WORK: Final = ROOT / "build" / "image"
USER: Final = "10001:10001"
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


def inside(tree: Path, command: str, *, user: str = "0:0", given: str = "") -> str:
    """What a shell prints that runs a command in a tree."""
    mounts = [(("-t", "proc", "proc"), tree / "proc"), (("--bind", "/dev"), tree / "dev")]
    for what, where in mounts:
        ran("mount", *what, where)
    try:
        return ran("chroot", f"--userspec={user}", tree, "/bin/sh", "-c", command, given=given)
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


def main() -> None:
    tree = built()
    print(inside(tree, "/usr/local/bin/legato --version", user=USER).strip())
    answer = inside(
        tree, "HOME=/data LEGATO_HOME=/data /usr/local/bin/legato chat 2>&1", user=USER, given="What is 2 + 3?\n"
    )
    if "5" not in answer:
        sys.exit(f"The program in the image did not answer:\n{answer}")
    environment, python = tree / "usr/local/legato", size(*tree.glob("usr/lib/python3*"))
    ours = size(*environment.glob("lib/*/site-packages/gateway"), *environment.glob("lib/*/site-packages/adapters"))
    libraries, whole = size(environment) - ours, size(tree)
    parts = {"Legato": ours, "its libraries": libraries, "Python": python, "Debian": whole - python - libraries - ours}
    for name, many in {**parts, "all": whole}.items():
        print(f"{name:14} {many / 1e6:6.1f} MB")


if __name__ == "__main__":
    main()
