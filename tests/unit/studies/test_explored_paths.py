"""Explored paths in a folder: another study begins with them, and a damaged one is refused by its file."""

import base64
from pathlib import Path

import pytest

from cli.__main__ import exit_code_of
from cli.errors import USAGE
from cli.study.command import command
from services.trainer.restarts.explored_path import ExploredPath, check_path, pack_of_path
from services.trainer.rl.session_config import TrainingSessionConfig
from shared.contracts.ids import RunId
from shared.contracts.run import RunConfig
from shared.errors import ContractError
from studies.explored.folder import ExploredPathFolder
from studies.plan import StudyPlan
from tests.unit.studies.invented import plan

TILES_PER_CELL = 16  # one cell a room: what was achieved still makes new cells, and few states are saved
PUBLISHED = sorted((Path(__file__).parents[3] / "docs" / "results" / "explored").glob("*.json"))

FOUND = ExploredPath(
    exploration={"world": "wild:3", "seed": 7, "rollout": {"frame_skip": 4}, "rom": "ab", "explore": 100},
    steps=120,
    seconds=1.5,
    cells=9,
    achieved=2,
    seed=5,
    actions=base64.urlsafe_b64encode(bytes(range(256))),
)


def test_another_study_finds_the_path(tmp_path: Path) -> None:
    ExploredPathFolder(tmp_path / "paths").keep(FOUND)
    found = ExploredPathFolder(tmp_path / "paths").find(FOUND.exploration)
    assert found == FOUND
    assert found.path.actions == bytes(range(256))
    (file,) = (tmp_path / "paths").iterdir()
    assert file.name.startswith("wild-3-7-")


def test_a_path_of_another_exploration_is_not_taken(tmp_path: Path) -> None:
    folder = ExploredPathFolder(tmp_path / "paths")
    assert folder.find(FOUND.exploration) is None
    folder.keep(FOUND)
    assert folder.find({**FOUND.exploration, "rom": "cd"}) is None
    assert folder.find({**FOUND.exploration, "explore": 200}) is None


def test_a_damaged_path_is_refused_by_its_file(tmp_path: Path) -> None:
    folder = ExploredPathFolder(tmp_path)
    folder.keep(FOUND)
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text()[:-20])
    with pytest.raises(ContractError, match=rf"{file.name}: not a valid ExploredPath.*remove it"):
        folder.find(FOUND.exploration)


@pytest.mark.parametrize("file", PUBLISHED, ids=lambda file: file.stem)
def test_a_published_path_leads_where_it_says(file: Path) -> None:
    found = ExploredPath.from_bytes(file.read_bytes())
    assert ExploredPathFolder(file.parent).find(found.exploration) == found, "its name is that of its exploration"
    facts = found.exploration
    run = RunConfig(world=facts["world"], seed=facts["seed"], frame_skip=facts["rollout"]["frame_skip"], epochs=1)
    environment = TrainingSessionConfig(RunId("a"), run).environment()
    check_path(found, pack_of_path(environment, found.path, TILES_PER_CELL))


def test_a_study_may_be_resumed_with_another_folder_of_paths(tmp_path: Path) -> None:
    plan(explored="paths").save_or_extend(tmp_path)
    resumed = plan(explored="published")
    resumed.save_or_extend(tmp_path)
    assert StudyPlan.load(tmp_path).explored == "published"
    assert " --explored published " in command(resumed)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "paths"
    file.touch()
    assert exit_code_of(["study", "garden", "--explored", str(file), "--out", str(tmp_path / "study")]) == USAGE
    assert f"{file} is not a directory" in capsys.readouterr().err
    assert not (tmp_path / "study").exists()
