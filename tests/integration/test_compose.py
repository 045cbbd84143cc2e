"""docker-compose.yaml is valid, is closed to the network, and has settings that each service accepts."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.helm.rendering import named, profile, render

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yaml"
SERVICES = ("coordinator", "trainer", "judge", "rewardmodel", "exporter")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The parsed file, with anchors and merges resolved."""
    loaded: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())
    return loaded


def test_the_file_is_valid_under_the_compose_schema() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_ports_are_published_on_localhost_only(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_images_are_pinned_and_targets_exist(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert not service["image"].endswith(":latest"), name
        assert ":" in service["image"], name
        if "build" in service:
            target = service["build"]["target"]
            assert f" AS {target}\n" in (ROOT / "deploy/Containerfile").read_text(), target


def test_servers_have_the_versions_of_the_chart(compose: dict[str, Any]) -> None:
    objects = render(profile("dev"))
    for name, owner in (("bus", "zelda-nats"), ("store", "zelda-s3")):
        wanted = named(objects, "StatefulSet", owner)["spec"]["template"]["spec"]["containers"][0]["image"]
        version = wanted.rpartition(":")[2]
        assert re.search(rf":{re.escape(version)}(-alpine)?$", compose["services"][name]["image"]), name


def test_every_container_has_a_memory_limit(compose: dict[str, Any]) -> None:
    assert [name for name, service in compose["services"].items() if "mem_limit" not in service] == []


def test_our_containers_are_read_only_and_unprivileged(compose: dict[str, Any]) -> None:
    for name in (*SERVICES, "rules-judge"):
        service = compose["services"][name]
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["user"] != "0:0"


def test_the_file_contains_no_secret() -> None:
    text = COMPOSE.read_text().lower()
    assert "secret_access_key" not in text
    assert "password:" not in text.replace('password: "{bus}"', "")


def test_the_documented_command_prints_the_operator_token(compose: dict[str, Any], tmp_path: Path) -> None:
    (command,) = re.findall(r"docker compose exec coordinator (.+) /run/secrets/tokens", COMPOSE.read_text())
    tokens = make_secrets(compose, tmp_path) / "tokens"
    printed = subprocess.run([*shlex.split(command), str(tokens)], capture_output=True, text=True, check=True).stdout
    assert f"operator:{printed}" in tokens.read_text().splitlines(keepends=True)


def test_compose_and_chart_run_the_same_store(compose: dict[str, Any]) -> None:
    store = compose["services"]["store"]
    (charts,) = named(render(profile("dev")), "StatefulSet", "zelda-s3")["spec"]["template"]["spec"]["containers"]
    assert f"docker.io/{store['image']}" == charts["image"]
    keys = ["-s3.config=/run/secrets/s3.json"]  # replaces the two environment variables of a pod
    assert sorted(store["entrypoint"] + store["command"]) == sorted(charts["command"] + keys)


def test_scraped_jobs_are_named_after_the_services(compose: dict[str, Any]) -> None:
    (scrape,) = yaml.safe_load(compose["configs"]["prometheus"]["content"])["scrape_configs"]
    (rule,) = scrape["relabel_configs"]
    assert (rule["source_labels"], rule["target_label"]) == (["__address__"], "job")  # the label that the panels query
    (targets,) = (one["targets"] for one in scrape["static_configs"])
    assert {re.fullmatch(rule["regex"], target)[1] for target in targets} == set(SERVICES)  # type: ignore[index]


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_accepts_its_settings(compose: dict[str, Any], tmp_path: Path, name: str) -> None:
    secrets = make_secrets(compose, tmp_path)
    given = {
        key: value.replace("/run/secrets", str(secrets))
        for key, value in compose["services"][name]["environment"].items()
        if value is not None  # else compose takes it from its own environment, if it is there
    }
    environment = {"PATH": os.environ["PATH"], **given}
    command = [sys.executable, "-m", f"services.{name}", "--check-config"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, f"{name}: the configuration is valid\n"), done.stderr


def make_secrets(compose: dict[str, Any], tmp_path: Path) -> Path:
    """Run the program of the `secrets` service twice on a directory; the second run keeps the files."""
    (program,) = compose["services"]["secrets"]["command"]
    directory = tmp_path / "secrets"
    directory.mkdir()
    for _ in range(2):
        subprocess.run([sys.executable, "-c", program.replace("/run/secrets", str(directory))], check=True)
    assert {path.name for path in directory.iterdir()} == {
        "bus",
        "s3-access",
        "s3-secret",
        "tokens",
        "nats.conf",
        "s3.json",
        "security.toml",
    }
    return directory


def test_interrupted_secrets_are_completed(compose: dict[str, Any], tmp_path: Path) -> None:
    """The bus starts only with all files: a run that ended after any of them must not keep the others missing."""
    (program,) = compose["services"]["secrets"]["command"]
    for written in range(6):
        directory = tmp_path / str(written)
        directory.mkdir()
        own = program.replace("/run/secrets", str(directory))
        stop = f"import pathlib\nkept, left = pathlib.Path.chmod, [{written}]\n"
        stop += "def chmod(*given):\n    if not left[0]: raise SystemExit\n    left[0] -= 1\n    kept(*given)\n"
        subprocess.run([sys.executable, "-c", f"{stop}pathlib.Path.chmod = chmod\n{own}"], check=True)
        subprocess.run([sys.executable, "-c", own], check=True)
        made = {path.name: path.read_text() for path in directory.iterdir() if path.name != ".part"}
        assert set(made) == {"bus", "s3-access", "s3-secret", "tokens", "nats.conf", "s3.json", "security.toml"}
        assert made["bus"].partition(":")[2] in made["nats.conf"], written
        assert made["s3-secret"] in made["s3.json"], written
