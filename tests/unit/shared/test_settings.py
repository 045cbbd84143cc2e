"""Twenty wrong configurations: each gives one clear sentence and exit code 2 in under a second."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from services.coordinator.settings import Settings as CoordinatorSettings
from services.exporter.settings import ExporterSettings
from services.judge.settings import JudgeSettings
from services.rewardmodel.settings import RewardModelSettings
from services.trainer.settings import DriverSettings, TrainerSettings
from shared.config.configure import configure, known_names, read_settings, redacted, unknown_names
from shared.config.settings import BusSettings, ServiceSettings, StoreSettings, read_secret

ROOT = Path(__file__).parents[3]
GOOD = {"ZELDA_STORE__URL": "file:///tmp/zelda-store"}
S3 = {"ZELDA_STORE__URL": "s3://zelda", "ZELDA_STORE__ENDPOINT": "http://127.0.0.1:8333"}

WRONG: list[tuple[dict[str, str], str]] = [
    ({"ZELDA_BUS__URLL": "x"}, "ZELDA_BUS__URLL: no such setting; did you mean ZELDA_BUS__URL?"),
    ({"ZELDA_HTP__PORT": "1"}, "ZELDA_HTP__PORT: no such setting; did you mean ZELDA_HTTP__PORT?"),
    ({"ZELDA_HTTP_PORT": "8080"}, "ZELDA_HTTP_PORT: no such setting; did you mean ZELDA_HTTP__PORT?"),
    ({"ZELDA_XYZZY_PLUGH": "1"}, "ZELDA_XYZZY_PLUGH: no such setting; unset it; --print-config lists the names"),
    (
        {"ZELDA_BUS__URL": "http://x"},
        "ZELDA_BUS__URL: 'http://x' is not a bus: use nats://HOST:PORT, tls://HOST:PORT or memory://",
    ),
    ({"ZELDA_BUS__URL": "nats://"}, "ZELDA_BUS__URL: 'nats://' is not a bus: use nats://HOST:PORT, tls://HOST:PORT"),
    (
        {"ZELDA_BUS__URL": "nats://judge:hunter2@bus:4222"},
        "ZELDA_BUS__URL: the address must not contain a password: use credentials_file",
    ),
    ({"ZELDA_BUS__URL": "nats://bus:42222222"}, "ZELDA_BUS__URL: the port must be a number up to 65535"),
    (
        {"ZELDA_BUS__CREDENTIALS_FILE": "/no/such/file"},
        "ZELDA_BUS__CREDENTIALS_FILE: no file '/no/such/file': name a readable file (a mounted secret or certificate)",
    ),
    ({"ZELDA_BUS__CA_FILE": "/tmp"}, "ZELDA_BUS__CA_FILE: no file '/tmp': name a readable file"),
    (
        {"ZELDA_BUS__CA_FILE": f"{ROOT}/pyproject.toml"},
        f"ZELDA_BUS__CA_FILE: no certificate in '{ROOT}/pyproject.toml': name a file in PEM, with BEGIN CERTIFICATE",
    ),
    ({"ZELDA_STORE__URL": "minio"}, "ZELDA_STORE__URL: 'minio' is not a store: use s3://PREFIX"),
    (
        {"ZELDA_STORE__URL": "file://relative"},
        "ZELDA_STORE__URL: 'file://relative': the directory must be absolute, e.g. file:///var/lib/zelda",
    ),
    (
        {"ZELDA_STORE__URL": "s3://No_Good"},
        "ZELDA_STORE__URL: 's3://No_Good': the prefix must be 3-54 lower-case letters, digits or inner hyphens",
    ),
    (
        {"ZELDA_STORE__URL": "s3://zelda"},
        "ZELDA_STORE: endpoint, access_key_file, secret_key_file must be set for an S3 store; or set url to file:///DIR",
    ),
    (S3, "ZELDA_STORE: access_key_file, secret_key_file must be set for an S3 store"),
    (
        {**S3, "ZELDA_STORE__ENDPOINT": "127.0.0.1:8333"},
        "ZELDA_STORE__ENDPOINT: '127.0.0.1:8333' is not an address: use http://HOST:PORT or https://HOST:PORT",
    ),
    (
        {**S3, "ZELDA_STORE__ENDPOINT": "http://key:hunter2/x@s3"},
        "ZELDA_STORE__ENDPOINT: the port must be a number up to 65535",
    ),
    (
        {**S3, "ZELDA_STORE__ENDPOINT": "http://169.254.169.254/latest"},
        "ZELDA_STORE__ENDPOINT: '169.254.169.254' is a link-local metadata address: name the real server",
    ),
    (
        {**S3, "ZELDA_STORE__ENDPOINT": "http://key:hunter2@s3:9000"},
        "ZELDA_STORE__ENDPOINT: the address must not contain a password: put it into a file and name that file",
    ),
    ({"ZELDA_HTTP__PORT": "99999"}, "ZELDA_HTTP__PORT: input should be less than or equal to 65535"),
    ({"ZELDA_HTTP__PORT": "http"}, "ZELDA_HTTP__PORT: input should be a valid integer"),
    ({"ZELDA_HTTP__HOST": ""}, "ZELDA_HTTP__HOST: string should have at least 1 character"),
    ({"ZELDA_LOG__LEVEL": "loud"}, "ZELDA_LOG__LEVEL: input should be 'debug', 'info', 'warning' or 'error'"),
    ({"ZELDA_LOG__FORMAT": "xml"}, "ZELDA_LOG__FORMAT: input should be 'json' or 'console'"),
    ({"ZELDA_LOG": "info"}, 'error parsing value for field "log"'),
]


def start(settings: dict[str, str], *argv: str) -> "subprocess.CompletedProcess[str]":
    """A service's start with only these settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ZELDA_")}
    command = [sys.executable, "-m", "tests.integration.stub_service", *argv]
    return subprocess.run(
        command, env={**environment, **settings}, cwd=ROOT, capture_output=True, text=True, timeout=20, check=False
    )


def refusal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], settings: dict[str, str]) -> str:
    """What a start with these settings says before it ends with exit code 2."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as caught:
        configure("judge", ServiceSettings, [])
    assert caught.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(("settings", "sentence"), WRONG, ids=[sentence[:40] for _, sentence in WRONG])
def test_wrong_configuration_is_reported_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], settings: dict[str, str], sentence: str
) -> None:
    said = refusal(monkeypatch, capsys, {**GOOD, **settings})
    assert said.startswith(f"judge: {sentence}")
    assert len(said.splitlines()) == 1
    assert "hunter2" not in said


def test_all_problems_are_reported_together(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refusal(
        monkeypatch,
        capsys,
        {"ZELDA_BUS__URL": "x", "ZELDA_STORE__URL": "y", "ZELDA_HTTP__PORT": "z", "ZELDA_TYPO": "1"},
    )
    assert [line.split(": ")[1] for line in said.splitlines()] == [
        "ZELDA_TYPO", "ZELDA_BUS__URL", "ZELDA_STORE__URL", "ZELDA_HTTP__PORT",
    ]  # fmt: skip


def test_a_real_process_refuses_in_under_a_second() -> None:
    """Seconds of processor time, because a busy machine makes others of them wait."""
    start(GOOD, "--check-config")  # the first start may have to compile modules
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = start({**GOOD, "ZELDA_BUS__URL": "http://x"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.0
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("judge: ZELDA_BUS__URL: 'http://x' is not a bus")


def test_check_config_prints_a_sentence_and_starts_nothing() -> None:
    ended = start(GOOD, "--check-config")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "judge: the configuration is valid\n", "")


def test_print_config_names_the_files_of_secrets_and_never_the_secrets(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("canary-4711\n")
    s3 = {
        **S3,
        "ZELDA_STORE__ACCESS_KEY_FILE": f"{tmp_path}/secret",
        "ZELDA_STORE__SECRET_KEY_FILE": f"{tmp_path}/secret",
    }
    ended = start(s3, "--print-config")
    assert ended.returncode == 0
    assert "canary" not in ended.stdout + ended.stderr
    assert f'"secret_key_file": "{tmp_path}/secret"' in ended.stdout


def test_help_lists_every_variable_with_default_and_description() -> None:
    text = start({}, "--help").stdout
    for name in ("ZELDA_BUS__URL", "ZELDA_STORE__SECRET_KEY_FILE", "ZELDA_HTTP__PORT", "ZELDA_STUB__WORK_S"):
        assert name in text
    assert "  ZELDA_HTTP__PORT=8080\n      port to listen on; 0 takes a free port and logs it\n" in text
    assert "  ZELDA_BUS__CREDENTIALS_FILE=\n" in text


OF_SERVICES = (
    CoordinatorSettings,
    TrainerSettings,
    DriverSettings,
    JudgeSettings,
    RewardModelSettings,
    ExporterSettings,
)


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (RewardModelSettings, "ZELDA_REWARDMODEL__MASKED", "x,y"),
        (DriverSettings, "ZELDA_DRIVER__CURRICULUM", "0.1,0.2"),
    ],
)
def test_malformed_list_is_named_with_an_example(
    owner: type[ServiceSettings], name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, text in {**GOOD, name: value}.items():
        monkeypatch.setenv(variable, text)
    assert read_settings(owner) == (None, [f'{name}: write the list as JSON: [] or [1, 2] or ["a", "b"]'])


@pytest.mark.parametrize("owner", OF_SERVICES)
def test_other_services_groups_are_ignored(owner: type[ServiceSettings]) -> None:
    names = {*known_names(owner)} - {*known_names(ServiceSettings)}
    shared = {name: "x" for name in names if "__" in name}
    assert shared
    assert unknown_names(ServiceSettings, shared) == []


def test_misspelt_group_of_another_service_is_reported() -> None:
    assert unknown_names(ServiceSettings, {"ZELDA_JUGDE__SLOTS": "3"})


def test_names_injected_by_kubernetes_are_ignored() -> None:
    links = {
        "ZELDA_NATS_SERVICE_HOST": "10.0.0.1",
        "ZELDA_NATS_SERVICE_PORT": "4222",
        "ZELDA_NATS_PORT": "tcp://10.0.0.1:4222",
        "ZELDA_NATS_PORT_4222_TCP_ADDR": "10.0.0.1",
    }
    assert unknown_names(ServiceSettings, links) == []


def test_the_known_names_are_the_leaves_and_the_groups() -> None:
    names = set(known_names(ServiceSettings))
    assert {"ZELDA_BUS", "ZELDA_BUS__URL", "ZELDA_STORE__REGION", "ZELDA_LOG__FORMAT"} <= names


def test_secret_is_read_without_its_final_newline(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("abc\n")
    assert read_secret(tmp_path / "key") == "abc"


def test_settings_cannot_change_after_the_start() -> None:
    settings = ServiceSettings(bus=BusSettings(), store=StoreSettings(url="memory://"))
    with pytest.raises(ValueError, match="frozen"):
        setattr(settings.http, "port", 1)  # noqa: B010 - what a type checker would refuse
    assert redacted(settings)["store"]["url"] == "memory://"
