"""What a person brings reaches the services that can use it, and only those; what does not fit is told at once."""

import hashlib
import os
from pathlib import Path

import pytest

from cli.commands.epoch import environment
from cli.commands.up import connection_options
from cli.errors import USAGE, CliError
from cli.service_settings import adopt_local_system
from cli.stack.local_stack import LocalStack, StackOptions, build_stack
from cli.stack.user_settings import ignored_variables, user_settings
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
    "ZELDA_DRIVER__ENTROPY": "0.1",
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
    """A file that is taken for the game; the true one belongs to its owner."""
    path = tmp_path / "game.gbc"
    path.write_bytes(b"a game")
    monkeypatch.setattr(oracle, "ORACLE_MD5", hashlib.md5(b"a game", usedforsecurity=False).hexdigest())
    return path


@pytest.fixture
def judges(tmp_path: Path) -> Path:
    """A judges file with one judge that needs no model."""
    path = tmp_path / "judges.yaml"
    path.write_text("judges: [{name: rules, kind: rules, dimensions: [progress], votes: [1]}]")
    return path


def system(root: Path, extra: dict[str, dict[str, str]]) -> LocalStack:
    """A local system that does not run."""
    return build_stack(StackOptions(root=root / "system", extra=extra), lambda sentence: None)


def test_every_service_gets_its_own_groups_and_refuses_none_of_them() -> None:
    settings = user_settings(EVERYTHING)
    for service, kind in SETTINGS.items():
        assert unknown_names(kind, settings[service]) == []
        assert settings[service]["ZELDA_LOG__LEVEL"] == "debug"
    taken = {name for own in settings.values() for name in own}
    assert EVERYTHING.keys() - taken == {"ZELDA_STORE__URL", "ZELDA_JUDGE__DEFAULT_URL", "ZELDA_ROM_FILE", "PATH"}


def test_what_reaches_no_service_is_told() -> None:
    sentence = "Not passed on: ZELDA_JUDGE__DEFAULT_URL, ZELDA_ROM_FILE, ZELDA_STORE__URL (a local"
    assert (ignored_variables(EVERYTHING) or "").startswith(sentence)
    assert ignored_variables({"ZELDACLI_URL": "x", "ZELDA_LOG__LEVEL": "info"}) is None


@pytest.mark.parametrize("name", ["--rom", "ZELDA_ROM__FILE", "ZELDA_DRIVER__ROM"])
def test_one_rom_serves_the_trainer_and_the_exporter(rom: Path, name: str) -> None:
    settings = user_settings({}, rom) if name == "--rom" else user_settings({name: str(rom)})
    assert settings["trainer"]["ZELDA_DRIVER__ROM"] == settings["exporter"]["ZELDA_ROM__FILE"] == str(rom)


def test_a_wrong_rom_of_the_environment_is_told_with_its_variable(tmp_path: Path) -> None:
    with pytest.raises(CliError, match=r"ZELDA_ROM__FILE .*no.gbc: No such file or directory") as refused:
        user_settings({"ZELDA_ROM__FILE": str(tmp_path / "no.gbc")})
    assert refused.value.code == USAGE


def test_services_are_started_with_what_was_brought_except_where_the_system_knows_better(
    tmp_path: Path, rom: Path, judges: Path
) -> None:
    local = system(tmp_path, user_settings({"ZELDA_JUDGE__DEFAULT_URL": "http://elsewhere/v1"}, rom, judges))
    judge = local.process("judge").spec.environment
    assert judge["ZELDA_JUDGES_FILE"] == str(judges)
    assert judge["ZELDA_JUDGE__DEFAULT_URL"].startswith("http://127.0.0.1:")
    assert local.process("trainer").spec.environment["ZELDA_DRIVER__ROM"] == str(rom)
    assert local.process("exporter").spec.environment["ZELDA_ROM__FILE"] == str(rom)
    assert "ZELDA_ROM__FILE" not in judge


def test_the_way_to_a_system_is_told_where_commands_would_not_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    elsewhere = system(tmp_path, {})
    assert connection_options(elsewhere) == f" --url {elsewhere.url} --token-file {tmp_path}/system/secrets/operator"
    assert connection_options(build_stack(StackOptions(root=Path("runs/.local")), lambda sentence: None)) == ""


def test_commands_beside_the_system_use_its_rom_and_judges_unless_told_otherwise(
    tmp_path: Path, rom: Path, judges: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = system(tmp_path, user_settings({}, rom, judges))
    local.connection.save(local.layout.connection)
    monkeypatch.setattr(os, "environ", {"ZELDA_JUDGES_FILE": "mine.yaml", "ZELDA_STORE__ENDPOINT": "http://elsewhere"})
    adopt_local_system(local.layout.connection)
    assert os.environ["ZELDA_ROM__FILE"] == str(rom)
    assert os.environ["ZELDA_JUDGES_FILE"] == "mine.yaml"
    assert os.environ["ZELDA_STORE__ENDPOINT"] == local.settings["ZELDA_STORE__ENDPOINT"]


def test_a_single_epoch_gets_the_settings_of_drivers_whichever_store_it_works_in(
    rom: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ZELDA_DRIVER__ENTROPY", "0.1")
    monkeypatch.setenv("ZELDA_STORE__REGION", "eu")
    told = environment(StoreSettings(url="file:///here"), rom)
    assert (told["ZELDA_DRIVER__ENTROPY"], told["ZELDA_DRIVER__ROM"]) == ("0.1", str(rom))
    assert (told["ZELDA_STORE__URL"], "ZELDA_STORE__REGION" in told) == ("file:///here", False)
    monkeypatch.setenv("ZELDA_STORE__URL", "file:///here")
    assert environment(StoreSettings(url="file:///here"), None)["ZELDA_STORE__REGION"] == "eu"
