"""The packages that are shipped are complete and pinned, and say nothing about the machine that made them."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata

import pytest

import gateway
from tests.support.source_tree import ROOT, name_of, project_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = ("gateway", "adapters", "legato")
LOCKS = ("requirements.lock", "requirements-dev.lock")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The names inside a freshly built wheel, and its metadata. Nothing is downloaded."""
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        texts = {
            name: archive.read(name).decode() for name in names if ".dist-info/" in name and "licenses" not in name
        }
    return names, texts


def test_the_wheel_holds_every_file_of_the_packages_and_nothing_else(wheel):
    names, _ = wheel
    shipped = {name for name in names if ".dist-info/" not in name}
    wanted = {name_of(path) for path in project_files() if name_of(path).split("/")[0] in PACKAGES}
    assert wanted - shipped == set()
    assert {name for name in shipped if name.split("/")[0] not in PACKAGES} == set()
    assert {name for name in shipped if name.endswith((".db", ".env", ".log", ".pyc"))} == set()


def test_the_source_archive_holds_every_file_of_the_project_and_nothing_else(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {name for path in project_files() if not (name := name_of(path)).startswith(".")}
    assert shipped - {"PKG-INFO", ".gitignore"} == wanted


def test_the_wheel_installs_the_program(wheel):
    _, texts = wheel
    entry_points = next(text for name, text in texts.items() if name.endswith("entry_points.txt"))
    assert "legato = gateway.__main__:main" in entry_points


@pytest.mark.slow
def test_what_people_install_works_in_an_empty_home():
    """`make release-check` does it with a registry's libraries, with pipx and with uv."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.release", "--short"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_notice_names_every_part_whose_licence_asks_for_more():
    locked = re.findall(r"^([A-Za-z0-9_.-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    installed = {name: metadata.metadata(name) for name in locked if list(metadata.distributions(name=name))}
    assert len(installed) > 40
    said = {
        name: " ".join(
            [info.get("License-Expression", ""), info.get("License", "")[:80], *info.get_all("Classifier", [])]
        )
        for name, info in installed.items()
    }
    named = {name for name, licences in said.items() if re.search(r"GPL|MPL|Mozilla|General Public", licences)}
    assert named == set(re.findall(r"^([a-z-]+)  +\S+  ", (ROOT / "NOTICE").read_text(), re.MULTILINE))


def test_there_is_one_version(wheel):
    _, texts = wheel
    info = next(text for name, text in texts.items() if name.endswith("METADATA"))
    assert f"\nVersion: {gateway.__version__}\n" in info
    assert metadata.version("legato") == gateway.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", gateway.__version__)
    changes = (ROOT / "CHANGELOG.md").read_text()
    parts = re.findall(r"^## ([\w.]+)(?: \((\d{4}-\d\d-\d\d)\))?$", changes, re.MULTILINE)
    version, day = next(each for each in parts if each[0] != "Unreleased")
    assert (version, bool(day)) == (gateway.__version__, True)


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(lock):
    """Version and number of hashes of every package in a lock file; asserts that it holds nothing else."""
    found = {}
    for line in (ROOT / lock).read_text().replace("\\\n", "").splitlines():
        if not line or line.lstrip().startswith("#"):
            continue
        match = re.fullmatch(
            r"([A-Za-z0-9._-]+)(?:\[[a-z,]+\])?==(\S+)( ; [^#]*?)?((?:\s+--hash=sha256:[0-9a-f]{64})+)\s*", line
        )
        assert match, f"{lock}: {line[:80]}"
        found[normal(match[1])] = (match[2], match[4].count("--hash"))
    return found


def test_every_dependency_is_locked_by_hash():
    run, dev = (locked(lock) for lock in LOCKS)
    wanted = [normal(re.split(r"[\[<>=!~; ]", text)[0]) for text in PROJECT["project"]["dependencies"]]
    extras = [normal(re.split(r"[\[<>=!~; ]", text)[0]) for text in PROJECT["project"]["optional-dependencies"]["dev"]]
    assert set(wanted) - set(run) == set()
    assert set(wanted + extras) - set(dev) == set()
    assert {name: dev[name] for name in run} == run
    # Packages with compiled parts are pinned for every common platform, not for one machine.
    for name in ("aiohttp", "apsw", "pydantic-core", "tiktoken", "hiredis"):
        assert run[name][1] >= 20, name


def test_no_file_names_a_registry_or_a_machine():
    forbidden = re.compile(
        "|".join(
            [
                r"pypi" + r"\.org",
                r"python" + r"hosted\.org",
                r"--(?:extra-)?index" + r"-url\b",
                r"--find" + r"-links\b",
                r"(?<![\w./~-])/(?:work|root|opt/pypi[\w-]*|opt/wheels)" + r"/\w",
                r"file:///opt/",
            ]
        )
    )
    found = []
    for path in project_files():
        if (
            path.suffix in (".tiktoken", ".png", ".jpg", ".xz", ".bpf")
            or path == ROOT / "tests/architecture/test_packaging.py"
        ):
            continue
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if match := forbidden.search(line):
                found.append(f"{name_of(path)}:{number} {match[0]}")
    assert found == []


def test_there_is_one_kind_of_lock_file():
    assert [
        name_of(path) for path in project_files() if path.name in ("uv" + ".lock", "poetry.lock", "Pipfile.lock")
    ] == []


def test_no_database_or_environment_file_is_kept():
    kept = [
        name_of(path)
        for path in project_files()
        if path.suffix in (".db", ".env", ".sqlite", ".pem") or path.name == ".env"
    ]
    assert kept == []


def test_every_dependency_is_imported():
    """But sniffio, which is there for httpcore, and ddgs, which is imported by its name."""
    modules = {}
    for module, distributions in metadata.packages_distributions().items():
        for name in distributions:
            modules.setdefault(re.sub(r"[-_.]+", "-", name).lower(), set()).add(module)
    named = {re.split(r"[\[<>=]", each)[0].lower().replace(".", "-") for each in PROJECT["project"]["dependencies"]}
    ours = [path for path in project_files() if re.match(r"(gateway|adapters)/.*\.py$", name_of(path))]
    texts = [path.read_text() for path in ours]
    pattern = re.compile(r"^\s*(?:from|import) (\w+)|import_module\(\"(\w+)", re.MULTILINE)
    imported = {module for pair in pattern.findall("\n".join(texts)) for module in pair if module}
    assert {name for name in named if not modules.get(name, set()) & imported} == {"ddgs", "sniffio"}
