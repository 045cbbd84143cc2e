"""Settings of the user reach exactly the services that accept them; invalid ones are reported before the start."""

import hashlib
import os
import socket
from pathlib import Path

import pytest

from cli.client import LOCAL_CONNECTION
from cli.commands.epoch import driver_environment
from cli.commands.up import connection_options
from cli.errors import UNREACHABLE, USAGE, CliError
from cli.service_settings import adopt_local_system
from cli.stack.layout import Connection
from cli.stack.local_stack import LocalStack, StackOptions, build_stack
from cli.stack.ports import PortAllocator
from cli.stack.user_settings import find_start_state, ignored_variables, user_settings
from services.coordinator.settings import Settings
from services.exporter.settings import ExporterSettings
from services.judge.settings import JudgeSettings
from services.rewardmodel.settings import RewardModelSettings
from services.trainer.settings import TrainerSettings
from shared.config.configure import unknown_names
from shared.config.settings import ServiceSettings, StoreSettings
from shared.game.games import oracle

SETTINGS: dict[str, type[ServiceSettings]] = {
    "coordinator": Settings,
    "trainer": TrainerSettings,
    "judge": JudgeSettings,
    "rewardmodel": RewardModelSettings,
    "exporter": ExporterSettings,
}
EVERYTHING = {
    "ZELDA_COORDINATOR__QUIET_S": "5",
    "ZELDA_TRAINER__ATTEMPTS": "2",
    "ZELDA_DRIVER__IDLE_S": "60",
    "ZELDA_JUDGE__SLOTS": "4",
    "ZELDA_REWARDMODEL__MEMBERS": "3",
    "ZELDA_EXPORT__POLICY": "all",
    "ZELDA_LOG__LEVEL": "debug",
    "ZELDA_STORE__URL": "s3://elsewhere",
    "ZELDA_JUDGE__DEFAULT_URL": "http://elsewhere/v1",
    "ZELDA_ROM_FILE": "misspelt.gbc",
    "PATH": "/bin",
}


@pytest.fixture
def rom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that counts as the ROM of the game; the real one is not free."""
    path = tmp_path / "game.gbc"
    path.write_bytes(b"a game")
    monkeypatch.setattr(oracle, "ORACLE_MD5", hashlib.md5(b"a game", usedforsecurity=False).hexdigest())
    return path


@pytest.fixture
def judges(tmp_path: Path) -> Path:
    """A judges file with one judge without a model."""
    path = tmp_path / "judges.yaml"
    path.write_text("judges: [{name: rules, kind: rules, dimensions: [progress], votes: [1]}]")
    return path


def system(root: Path, extra: dict[str, dict[str, str]]) -> LocalStack:
    """A local stack that is not started."""
    return build_stack(StackOptions(root=root / "system", extra=extra), lambda sentence: None, PortAllocator())


def test_every_service_gets_the_variables_of_its_groups() -> None:
    settings = user_settings(EVERYTHING)
    for service, kind in SETTINGS.items():
        assert unknown_names(kind, settings[service]) == []
        assert settings[service]["ZELDA_LOG__LEVEL"] == "debug"
    taken = {name for own in settings.values() for name in own}
    assert EVERYTHING.keys() - taken == {"ZELDA_STORE__URL", "ZELDA_JUDGE__DEFAULT_URL", "ZELDA_ROM_FILE", "PATH"}


def test_ignored_variables_are_named() -> None:
    sentence = "Ignored variables: ZELDA_JUDGE__DEFAULT_URL, ZELDA_ROM_FILE, ZELDA_STORE__URL (reserved"
    assert (ignored_variables(EVERYTHING) or "").startswith(sentence)
    assert ignored_variables({"ZELDACLI_URL": "x", "ZELDA_LOG__LEVEL": "info"}) is None


@pytest.mark.parametrize("name", ["--rom", "ZELDA_ROM__FILE", "ZELDA_DRIVER__ROM"])
def test_trainer_and_exporter_share_one_rom(rom: Path, name: str) -> None:
    settings = user_settings({}, rom) if name == "--rom" else user_settings({name: str(rom)})
    assert settings["trainer"]["ZELDA_DRIVER__ROM"] == settings["exporter"]["ZELDA_ROM__FILE"] == str(rom)


def test_a_missing_rom_is_reported_with_its_variable(tmp_path: Path) -> None:
    with pytest.raises(CliError, match=r"ZELDA_ROM__FILE .*no.gbc: No such file or directory") as refused:
        user_settings({"ZELDA_ROM__FILE": str(tmp_path / "no.gbc")})
    assert refused.value.code == USAGE


def test_services_start_with_user_settings_except_reserved_ones(tmp_path: Path, rom: Path, judges: Path) -> None:
    local = system(tmp_path, user_settings({"ZELDA_JUDGE__DEFAULT_URL": "http://elsewhere/v1"}, rom, judges))
    judge = local.process("judge").spec.environment
    assert judge["ZELDA_JUDGES_FILE"] == str(judges)
    assert judge["ZELDA_JUDGE__DEFAULT_URL"].startswith("http://127.0.0.1:")
    assert local.process("trainer").spec.environment["ZELDA_DRIVER__ROM"] == str(rom)
    assert local.process("exporter").spec.environment["ZELDA_ROM__FILE"] == str(rom)
    assert "ZELDA_ROM__FILE" not in judge


def test_trainer_asks_the_models_of_the_planner_file_or_the_rules_server(tmp_path: Path) -> None:
    file = tmp_path / "planner.yaml"
    file.write_text("routes: {dialog: {url: 'http://models.test/v1', model: m}}")
    trainer = system(tmp_path, user_settings({}, planner=file)).process("trainer").spec.environment
    assert trainer["ZELDA_DRIVER__PLANNER_FILE"] == str(file)
    judge = system(tmp_path / "other", {}).process("judge").spec.environment["ZELDA_JUDGE__DEFAULT_URL"]
    assert trainer["ZELDA_DRIVER__PLANNER_URL"].startswith("http://127.0.0.1:")
    assert judge.endswith("/v1")
    file.write_text("routes: {cooking: {}}")
    with pytest.raises(CliError, match=r"--planner .*cooking") as refused:
        user_settings({}, planner=file)
    assert refused.value.code == USAGE


def test_connection_options_are_printed_for_another_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    elsewhere = system(tmp_path, {})
    assert connection_options(elsewhere) == f" --url {elsewhere.url} --token-file {tmp_path}/system/secrets/operator"
    usual = build_stack(StackOptions(root=Path("runs/.local")), lambda sentence: None, PortAllocator())
    assert connection_options(usual) == ""


def test_other_commands_use_the_rom_and_judges_of_the_system(
    tmp_path: Path, rom: Path, judges: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = system(tmp_path, user_settings({}, rom, judges))
    monkeypatch.chdir(tmp_path)
    LOCAL_CONNECTION.parent.mkdir(parents=True)
    local.connection.save(LOCAL_CONNECTION)
    monkeypatch.setattr(os, "environ", {"ZELDA_JUDGES_FILE": "mine.yaml", "ZELDA_STORE__ENDPOINT": "http://elsewhere"})
    with socket.create_server(("127.0.0.1", local.ports.api)):
        adopt_local_system()
    assert os.environ["ZELDA_ROM__FILE"] == str(rom)
    assert os.environ["ZELDA_JUDGES_FILE"] == "mine.yaml"
    assert os.environ["ZELDA_STORE__ENDPOINT"] == local.settings["ZELDA_STORE__ENDPOINT"]


def test_a_connection_of_a_killed_system_is_not_adopted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = Connection("http://127.0.0.1:9", tmp_path / "token", os.getpid(), {"ZELDA_BUS__URL": "nats://127.0.0.1:9"})
    monkeypatch.chdir(tmp_path)
    LOCAL_CONNECTION.parent.mkdir(parents=True)
    left.save(LOCAL_CONNECTION)
    monkeypatch.setattr(os, "environ", {})
    with pytest.raises(CliError, match="No system runs here: start one with `zelda up`") as refused:
        adopt_local_system()
    assert (refused.value.code, dict(os.environ)) == (UNREACHABLE, {})


def test_a_single_epoch_passes_driver_settings_with_any_store(rom: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZELDA_DRIVER__IDLE_S", "60")
    monkeypatch.setenv("ZELDA_STORE__REGION", "eu")
    passed = driver_environment(StoreSettings(url="file:///here"), rom)
    assert (passed["ZELDA_DRIVER__IDLE_S"], passed["ZELDA_DRIVER__ROM"]) == ("60", str(rom))
    assert (passed["ZELDA_STORE__URL"], "ZELDA_STORE__REGION" in passed) == ("file:///here", False)
    monkeypatch.setenv("ZELDA_STORE__URL", "file:///here")
    assert driver_environment(StoreSettings(url="file:///here"), None)["ZELDA_STORE__REGION"] == "eu"


def test_a_rom_is_a_file_of_a_cartridges_size(tmp_path: Path) -> None:
    huge = tmp_path / "huge.gbc"
    with huge.open("wb") as file:
        file.truncate(4 << 30)
    for path in (huge, Path("/dev/zero")):
        with pytest.raises(CliError, match="a file of at most 8 MB"):
            user_settings({}, rom=path)


def test_play_begins_at_the_start_state_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.state").write_bytes(b"a state")
    monkeypatch.chdir(tmp_path)
    assert find_start_state({"ZELDA_DRIVER__START_STATE": "own.state"}) == tmp_path / "own.state"
    assert find_start_state({"ZELDA_DRIVER__START_STATE": ""}) is None
    for wrong, reason in (("no.state", "No such file or directory"), (str(tmp_path), "Is a directory")):
        with pytest.raises(CliError, match=f"ZELDA_DRIVER__START_STATE {wrong}: {reason}: name a state") as refused:
            find_start_state({"ZELDA_DRIVER__START_STATE": wrong})
        assert refused.value.code == USAGE
