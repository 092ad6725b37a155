"""The files of `deploy/` fit one another and the program: ports, paths, users, variables, times and what is copied. The
slow tests ask the tools and the schemas of others; `make slow` installs these."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from gateway.app.config import load_config
from gateway.app.gateway import DRAIN_SECONDS
from gateway.app.problems import HOPELESS, LOOK_SECONDS
from gateway.runtime.redaction import Redactor
from tests.support.source_tree import ROOT, name_of, project_files

DEPLOY: Final = ROOT / "deploy"
DOCKERFILE: Final = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
UNIT: Final = (DEPLOY / "systemd/legato.service").read_text(encoding="utf-8")
COMPOSED: Final = [DEPLOY / "compose.yaml", DEPLOY / "compose.redis.yaml"]
OVERLAYS: Final = sorted((DEPLOY / "kubernetes/overlays").iterdir())
PROGRAMS: Final = ROOT / "build/deploy/bin"
PORT: Final = 9464
USER: Final = 10_001
MOST_EXPOSED: Final = 2.0  # of ten, as systemd-analyze rates it
Tree = Mapping[str, Any]


def installed(program: str) -> list[str]:
    """Where the program is; nowhere: nothing can be tried with it."""
    return [path for path in [shutil.which(program)] if path]


def asked(*command: str | Path, text: str | None = None) -> str:
    """Run a program of others, which must not complain; what it prints."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# -- secrets, everywhere ------------------------------------------------------------------------


@pytest.mark.parametrize("path", [each for each in project_files() if each.is_relative_to(DEPLOY)], ids=name_of)
def test_no_file_holds_a_secret(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert Redactor()(text) == text
    assert not re.search(r"^kind: Secret$", text, re.MULTILINE)


# -- the image ----------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their words, on one line each."""
    lines = "\n".join(line for line in DOCKERFILE.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    return [
        (word, " ".join(rest.split())) for word, _, rest in (line.partition(" ") for line in lines.splitlines()) if word
    ]


def said_of_the_image() -> dict[str, list[str]]:
    """What is said by instruction, where the system is made that the image consists of, and of the image itself."""
    said: dict[str, list[str]] = {}
    for word, rest in instructions():
        if rest.endswith(" AS system"):
            said.clear()
        said.setdefault(word, []).append(rest)
    return said


def test_every_base_is_the_one_that_an_argument_names() -> None:
    assert instructions()[0] == ("ARG", "BASE=debian:trixie-slim")
    assert [rest.split()[0] for word, rest in instructions() if word == "FROM"] == ["${BASE}", "${BASE}", "scratch"]


def test_what_the_image_copies_is_there_and_reaches_the_builder() -> None:
    """And nothing else does: neither settings nor stores."""
    copied = [
        source
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    ]
    assert [each for each in copied if not (ROOT / each).exists()] == []
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split("\n")[1:]
    assert ignored[0] == "*"
    assert {each.removeprefix("!") for each in ignored if each.startswith("!")} == set(copied)


def test_the_image_runs_as_a_number_and_can_do_without_a_writable_root() -> None:
    said = said_of_the_image()
    assert said["USER"] == [f"{USER}:{USER}"]
    assert f"--uid {USER} --gid {USER}" in said["RUN"][1]
    assert said["VOLUME"] == said["WORKDIR"] == ["/data"]
    (variables,) = said["ENV"]
    assert "LEGATO_HOME=/data" in variables.split()
    assert f"LEGATO__MONITOR__ADDRESS=127.0.0.1:{PORT}" in variables.split()


def test_the_image_is_watched_described_and_ends_well() -> None:
    said = said_of_the_image()
    assert re.fullmatch(r'--interval=\S+ --timeout=\S+ .* CMD \["legato", "status"\]', said["HEALTHCHECK"][0])
    assert said["ENTRYPOINT"] + said["CMD"] == ['["tini", "--", "legato"]', '["run"]']
    assert re.search(r"apt-get install [^&]*\btini\b", said["RUN"][0])
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', said["LABEL"][0]))
    project = (ROOT / "pyproject.toml").read_text()
    assert {"title", "description", "licenses", "revision"} == set(labels)
    assert f'description = "{labels["description"]}"' in project
    assert f'license = "{labels["licenses"]}"' in project


# -- containers that are composed ---------------------------------------------------------------


def composed(path: Path) -> Tree:
    """A compose file with the variables that it gives a default."""
    text = re.sub(r"\$\{\w+:-([^}]+)\}", r"\1", path.read_text(encoding="utf-8"))
    tree: Tree = yaml.safe_load(text)
    return tree


def legatos(path: Path) -> list[Tree]:
    return [each for each in composed(path)["services"].values() if each["image"] == "legato"]


@pytest.mark.parametrize("path", COMPOSED, ids=name_of)
def test_a_compose_file_names_only_what_is_there(path: Path) -> None:
    tree = composed(path)
    (legato,) = legatos(path)
    assert (path.parent / legato["build"]["context"] / legato["build"]["dockerfile"]).samefile(DEPLOY / "Dockerfile")
    for service in tree["services"].values():
        assert set(service.get("networks", ())) <= set(tree.get("networks", {}))
        assert {each["source"] for each in service.get("configs", ())} <= set(tree.get("configs", {}))
        for source in (volume.split(":")[0] for volume in service["volumes"]):
            assert (path.parent / source).is_file() if source.startswith(".") else source in tree["volumes"]
        assert set(service.get("depends_on", ())) <= set(tree["services"])


@pytest.mark.parametrize("path", COMPOSED, ids=name_of)
def test_composed_containers_have_no_more_rights_than_they_need(path: Path) -> None:
    for service in composed(path)["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    (legato,) = legatos(path)
    assert legato["volumes"] == ["legato:/data"]
    assert legato["tmpfs"] == ["/tmp"]
    assert 30 < DRAIN_SECONDS + 5 < int(legato["stop_grace_period"].removesuffix("s"))


def test_two_gateways_share_a_server_that_keeps_all_and_are_watched() -> None:
    services = composed(COMPOSED[1])["services"]
    gateway, valkey, monitor = services["gateway"], services["valkey"], services["monitor"]
    assert gateway["deploy"]["replicas"] == 2
    check_settings(gateway["environment"], store="redis://valkey:6379/0")
    assert dict(zip(valkey["command"][1::2], valkey["command"][2::2], strict=True)) == {
        "--appendonly": "yes",
        "--appendfsync": "always",
        "--maxmemory-policy": "noeviction",
    }
    assert valkey["networks"] == ["inside"]
    assert composed(COMPOSED[1])["networks"]["inside"]["internal"] is True
    scraped = yaml.safe_load(composed(COMPOSED[1])["configs"]["prometheus"]["content"])
    assert scraped["scrape_configs"][0]["dns_sd_configs"] == [{"names": ["gateway"], "type": "A", "port": PORT}]
    own = yaml.safe_load((DEPLOY / "monitoring/prometheus.yml").read_text())
    assert (scraped["rule_files"], scraped["global"]) == (own["rule_files"], own["global"])
    assert monitor["volumes"][0] == "./monitoring/alerts.yml:/etc/prometheus/alerts.yml:ro"


def check_settings(environment: Mapping[str, str], *, store: str) -> None:
    """The variables are those of the program, and say where the store is and who may ask for health."""
    settings = load_config(None, environment)
    assert settings.store.url == store
    assert settings.monitor.place(0) == ("0.0.0.0", PORT)
    assert settings.monitor.public


# -- Kubernetes ---------------------------------------------------------------------------------


def resources(folder: Path) -> Iterator[Tree]:
    """The resources of a kustomization, with those below it, as the files have them. Nothing is patched."""
    said = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    assert set(said) <= {"apiVersion", "kind", "namespace", "resources", "configMapGenerator"}
    assert said["namespace"] == "legato"
    for name in said["resources"]:
        if (folder / name).is_dir():
            yield from resources(folder / name)
        else:
            yield from yaml.safe_load_all((folder / name).read_text(encoding="utf-8"))


def of_kind(folder: Path, *kinds: str) -> list[Tree]:
    return [each for each in resources(folder) if each["kind"] in kinds]


def workload(folder: Path, name: str = "legato") -> Tree:
    (found,) = (each for each in of_kind(folder, "StatefulSet", "Deployment") if each["metadata"]["name"] == name)
    return found


def test_every_manifest_is_used() -> None:
    """No file lies about that no kustomization names."""
    named = {DEPLOY / "kubernetes/base/config.yaml"}
    for path in DEPLOY.glob("kubernetes/**/kustomization.yaml"):
        named |= {path, *(path.parent / name for name in yaml.safe_load(path.read_text())["resources"])}
    assert {each for each in project_files() if each.is_relative_to(DEPLOY / "kubernetes")} == {
        each for each in named if each.is_file()
    }


@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda each: each.name)
def test_names_labels_and_ports_meet(folder: Path) -> None:
    workloads = of_kind(folder, "StatefulSet", "Deployment")
    pods = {each["metadata"]["name"]: each["spec"]["template"] for each in workloads}
    labels = {tuple(pod["metadata"]["labels"].items()) for pod in pods.values()}
    for each in workloads:
        assert each["spec"]["selector"]["matchLabels"] == pods[each["metadata"]["name"]]["metadata"]["labels"]
    services = {each["metadata"]["name"]: each["spec"] for each in of_kind(folder, "Service")}
    for name, service in services.items():
        pod = pods[name]
        assert service["selector"] == pod["metadata"]["labels"]
        (port,), (own,) = service["ports"], pod["spec"]["containers"][0]["ports"]
        assert (port["targetPort"], port["port"]) == (own["name"], own["containerPort"])
    for each in of_kind(folder, "StatefulSet"):
        assert each["spec"]["serviceName"] in services
    selected = [each["spec"]["selector"] for each in of_kind(folder, "PodDisruptionBudget")]
    selected += [each["spec"]["podSelector"] for each in of_kind(folder, "NetworkPolicy")]
    assert {tuple(each["matchLabels"].items()) for each in selected} == labels  # each pod has a policy


@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda each: each.name)
def test_every_pod_keeps_to_the_restricted_standard(folder: Path) -> None:
    (namespace,) = of_kind(folder, "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    for each in of_kind(folder, "StatefulSet", "Deployment"):
        pod = each["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            made = {volume["name"] for volume in pod.get("volumes", ())}
            made |= {volume["metadata"]["name"] for volume in each["spec"].get("volumeClaimTemplates", ())}
            assert {mount["name"] for mount in container["volumeMounts"]} == made


@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda each: each.name)
def test_a_pod_of_legato_is_what_the_image_and_the_program_expect(folder: Path) -> None:
    pod = workload(folder)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {pod["securityContext"][key] for key in ("runAsUser", "runAsGroup", "fsGroup")} == {USER}
    assert container["image"] == "legato"
    assert container["args"] == json.loads(said_of_the_image()["CMD"][0])
    variables = {each["name"]: each["value"] for each in container["env"]}
    store = "redis://valkey:6379/0" if folder.name == "redis" else "sqlite:///legato.db"
    check_settings(variables, store=store)
    assert container["ports"] == [{"name": "monitor", "containerPort": PORT}]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "monitor"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "monitor"}
    probe = container["livenessProbe"]
    assert LOOK_SECONDS < probe["periodSeconds"] * probe["failureThreshold"] < HOPELESS
    assert pod["terminationGracePeriodSeconds"] > DRAIN_SECONDS + 5
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    assert mounts == {"/data": "data", "/data/config.yaml": "settings", "/tmp": "tmp"}


def test_both_kinds_of_pods_differ_by_their_store_alone() -> None:
    def common(folder: Path) -> Tree:
        pod = workload(folder)["spec"]["template"]
        pod["spec"]["volumes"] = [each for each in pod["spec"]["volumes"] if each["name"] != "data"]
        (container,) = pod["spec"]["containers"]
        container["env"] = [each for each in container["env"] if each["name"] != "LEGATO__STORE__URL"]
        return dict(pod)

    redis, sqlite = OVERLAYS
    assert common(redis) == common(sqlite)
    assert workload(sqlite)["spec"]["replicas"] == 1  # a file has one owner
    assert workload(sqlite)["spec"]["volumeClaimTemplates"][0]["spec"]["accessModes"] == ["ReadWriteOncePod"]
    assert (workload(redis)["kind"], workload(redis)["spec"]["replicas"]) == ("Deployment", 2)


def test_the_settings_of_the_pods_load() -> None:
    path = DEPLOY / "kubernetes/base/config.yaml"
    written = "\n".join(line.removeprefix("# ") for line in path.read_text().splitlines()[1:])
    assert load_config(path, {"TELEGRAM_BOT_TOKEN": "1:x"}).adapters["telegram"].enabled
    assert yaml.safe_load(written).keys() == {"model", "access", "adapters", "log"}
    secret = workload(OVERLAYS[0])["spec"]["template"]["spec"]["containers"][0]["envFrom"]
    assert secret == [{"secretRef": {"name": "legato"}}]


@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda each: each.name)
@pytest.mark.parametrize("kubectl", installed("kubectl"))
def test_kustomize_builds_an_overlay(kubectl: str, folder: Path) -> None:
    built = list(yaml.safe_load_all(asked(kubectl, "kustomize", folder)))
    (settings,) = (each["metadata"]["name"] for each in built if each["kind"] == "ConfigMap")
    (pod,) = (
        each["spec"]["template"]["spec"]
        for each in built
        if each["kind"] in ("StatefulSet", "Deployment") and each["metadata"]["name"] == "legato"
    )
    assert settings in {volume.get("configMap", {}).get("name") for volume in pod["volumes"]}
    assert sorted(each["kind"] for each in built) == sorted(
        [*(each["kind"] for each in resources(folder)), "ConfigMap"]
    )
    assert {each["metadata"].get("namespace", "legato") for each in built} == {"legato"}


@pytest.mark.slow
@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda each: each.name)
@pytest.mark.parametrize("kubectl", installed("kubectl"))
def test_the_schemas_of_kubernetes_take_an_overlay(kubectl: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "built.yaml").write_text(asked(kubectl, "kustomize", folder))
    asked(PROGRAMS / "kubernetes-validate", "--strict", tmp_path / "built.yaml")


@pytest.mark.slow
@pytest.mark.parametrize("path", COMPOSED, ids=name_of)
def test_the_schema_of_compose_takes_a_file(path: Path) -> None:
    read = "import compose_spec, sys; file = compose_spec.PyCompose.from_yaml(sys.stdin.read()); file.validate()"
    asked(PROGRAMS / "python", "-c", read, text=json.dumps(composed(path)))


# -- systemd ------------------------------------------------------------------------------------


def said(key: str) -> list[str]:
    """The values of a key of the unit."""
    return re.findall(rf"^{key}=(.*)$", UNIT, re.MULTILINE)


def test_the_unit_serves_the_platforms_and_ends_well() -> None:
    assert [each.partition("/legato ")[2] for each in said("ExecStart")] == ["run"]
    assert said("ExecReload") == ["/bin/kill -HUP $MAINPID"]
    assert said("Type") == ["notify"]
    assert 3 * LOOK_SECONDS < int(said("WatchdogSec")[0]) < HOPELESS
    assert int(said("TimeoutStopSec")[0]) > DRAIN_SECONDS + 5
    assert said("StateDirectoryMode") == ["0700"]
    assert said("StandardInput") == said("Requires") == []


def test_every_line_of_the_sandbox_is_reasoned() -> None:
    sandbox = UNIT[UNIT.index("# Nobody becomes root") : UNIT.index("[Install]")].strip()
    assert [each for each in sandbox.split("\n\n") if not re.fullmatch(r"(# .+\n)+(\w+=.*(\n|$))+", each)] == []


@pytest.mark.parametrize("program", installed("systemd-analyze"))
def test_systemd_rates_the_unit_as_hardly_exposed(program: str, tmp_path: Path) -> None:
    rated = asked(program, "security", "--offline=yes", "--no-pager", DEPLOY / "systemd/legato.service")
    found = re.search(r"Overall exposure level for legato\.service: (\S+)", rated)
    assert found
    assert float(found[1]) <= MOST_EXPOSED
    stand_in = tmp_path / "legato"  # what it starts has to be there
    stand_in.symlink_to(shutil.which("true") or os.devnull)
    unit = tmp_path / "legato.service"
    unit.write_text(UNIT.replace("/opt/legato/bin/legato", f'"{stand_in}"'))
    assert asked(program, "verify", unit) == ""
