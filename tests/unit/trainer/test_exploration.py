"""Exploration is repeatable, continues where it stopped, and each of its paths can be played again."""

import os
import signal
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bramble.registration import bramble_game
from services.trainer.exploration.archive_file import ArchiveFile
from services.trainer.exploration.exploration import Exploration, ExplorationPlan, Known
from services.trainer.exploration.replay import replay
from services.trainer.exploration.result import ExplorationResults, result_of
from services.trainer.exploration.rollout import PlayedRollout, RolloutPlan, RolloutPlayer, RolloutTask
from services.trainer.exploration.workers import RolloutWorkers
from services.trainer.state_archive.archive import PathQuality
from services.trainer.state_archive.cell import ArchiveCell
from shared.errors import DigestMismatch, Fatal, Permanent
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import true_start
from shared.game.recording.segment import unpack_state

pytestmark = pytest.mark.filterwarnings("ignore:Using SDL2 binaries")
PLAN = ExplorationPlan("garden", seed=3, rollouts=4, rollout=RolloutPlan(patience=40, longest=120))
STEPS = 700


class InThisProcess:
    """Plays rollouts one after another."""

    def __init__(self, plan: ExplorationPlan) -> None:
        self._player = RolloutPlayer(plan.open_game(), plan.rollout)
        self._known: dict[ArchiveCell, PathQuality] = {}

    def play(self, tasks: Sequence[RolloutTask], news: Known) -> list[PlayedRollout]:
        self._known.update(news)
        return [self._player.play(task, self._known) for task in tasks]


def explore(folder: Path, steps: int = STEPS, plan: ExplorationPlan = PLAN) -> Exploration:
    folder.mkdir(exist_ok=True)
    exploration = Exploration(plan, true_start(plan.open_game()).state, ArchiveFile(folder / "a.sqlite", plan.facts()))
    exploration.run(InThisProcess(plan), steps, lambda: None)
    return exploration


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> Exploration:
    return explore(tmp_path_factory.mktemp("explored"))


def test_exploration_finds_rooms_beyond_the_first(explored: Exploration) -> None:
    assert len(explored.archive.rooms()) > 1
    assert explored.progress.steps >= STEPS
    assert max(len(explored.archive.trajectory(entry)) for entry in explored.archive.best()) > 1


def test_a_path_of_the_archive_replays_to_its_state(explored: Exploration) -> None:
    entry = max(explored.archive.best(), key=lambda one: len(explored.archive.trajectory(one)))
    parts = explored.archive.trajectory(entry)
    assert sum(len(part.actions) for part in parts) == entry.quality.steps
    emulator = Emulator(bramble_game("garden"))
    replay(emulator, true_start(bramble_game("garden")).state, parts, PLAN.rollout.frame_skip)
    played = emulator.ram_hash()
    emulator.load(unpack_state(explored._file.state(entry).state))
    assert emulator.ram_hash() == played
    emulator.close()


def test_an_interrupted_exploration_ends_with_the_same_archive(explored: Exploration, tmp_path: Path) -> None:
    explore(tmp_path, steps=STEPS // 3)
    continued = explore(tmp_path)
    assert continued.archive.entries == explored.archive.entries
    assert continued.archive.visits == explored.archive.visits
    assert continued.progress.reached_at == explored.progress.reached_at
    assert continued.progress.curve == explored.progress.curve


def test_a_damaged_state_is_refused_by_its_number(tmp_path: Path) -> None:
    exploration = explore(tmp_path, steps=1)
    entry = next(exploration.archive.best())
    with sqlite3.connect(tmp_path / "a.sqlite") as database:
        database.execute("update entries set state = substr(state, 1, 500) where number = ?", (entry.number,))
    with pytest.raises(DigestMismatch, match=f"the state of entry {entry.number} is damaged"):
        ArchiveFile(tmp_path / "a.sqlite", PLAN.facts()).state(entry)


def test_a_damaged_memory_is_refused_before_a_process_plays_on_from_it(tmp_path: Path) -> None:
    exploration = explore(tmp_path, steps=1)
    entry = next(exploration.archive.best())
    with sqlite3.connect(tmp_path / "a.sqlite") as database:
        database.execute("update entries set memory = substr(memory, 1, 10) where number = ?", (entry.number,))
    with pytest.raises(DigestMismatch, match=f"entry {entry.number} is damaged \\(an episode's memory: .*JSON"):
        ArchiveFile(tmp_path / "a.sqlite", PLAN.facts()).state(entry)


def test_a_damaged_page_of_the_file_is_refused(tmp_path: Path) -> None:
    explore(tmp_path, steps=1)._file.close()
    file = tmp_path / "a.sqlite"
    content = bytearray(file.read_bytes())
    page = int.from_bytes(content[16:18], "big")
    content[-page : -page + 200] = bytes(200)
    file.write_bytes(bytes(content))
    with pytest.raises(Permanent, match=r"a\.sqlite is not an archive of states"):
        ArchiveFile(file, PLAN.facts())


@pytest.mark.parametrize("change", ["cell = 'x'", "parent = 99", "number = number + 1000"])
def test_an_entry_that_fits_nowhere_is_refused_with_the_file(change: str, tmp_path: Path) -> None:
    explore(tmp_path, steps=1)._file.close()
    with sqlite3.connect(tmp_path / "a.sqlite") as database:
        database.execute(f"update entries set {change} where number = 0")
    with pytest.raises(Permanent, match=r"a\.sqlite is damaged .*: explore again in another folder"):
        ArchiveFile(tmp_path / "a.sqlite", PLAN.facts()).load()


def test_the_folder_of_another_exploration_is_refused(tmp_path: Path) -> None:
    ArchiveFile(tmp_path / "a.sqlite", PLAN.facts()).close()
    with pytest.raises(Permanent, match="holds another exploration \\(it differs in seed\\)"):
        ArchiveFile(tmp_path / "a.sqlite", replace(PLAN, seed=4).facts())
    ArchiveFile(tmp_path / "b.sqlite", replace(PLAN, reseeds=False).facts()).close()
    with pytest.raises(Permanent, match="holds another exploration \\(it differs in reseeds\\)"):
        ArchiveFile(tmp_path / "b.sqlite", PLAN.facts())
    cells = replace(PLAN, rollout=replace(PLAN.rollout, tiles_per_cell=9))
    with pytest.raises(Permanent, match=r"it differs in rollout\.tiles_per_cell\)"):
        ArchiveFile(tmp_path / "a.sqlite", cells.facts())
    ArchiveFile(tmp_path / "c.sqlite", {**PLAN.facts(), "limit": None}).close()
    with pytest.raises(Permanent, match=r"it differs in limit\)"):  # a fact that another version does not know
        ArchiveFile(tmp_path / "c.sqlite", PLAN.facts())
    (tmp_path / "text").write_text("no database, but long enough to be read as one " * 40)
    with pytest.raises(Permanent, match="is not an archive of states"):
        ArchiveFile(tmp_path / "text", PLAN.facts())


def test_processes_change_nothing_and_a_dead_one_is_reported(explored: Exploration, tmp_path: Path) -> None:
    file = ArchiveFile(tmp_path / "a.sqlite", PLAN.facts())
    exploration = Exploration(PLAN, true_start(PLAN.open_game()).state, file)
    with RolloutWorkers(1, PLAN) as workers:
        exploration.run(workers, STEPS // 3, lambda: None)
        os.kill(workers.processes[0], signal.SIGKILL)
        with pytest.raises(Fatal, match="a process that explores ended with code -9"):
            exploration.run(workers, STEPS, lambda: None)
    entries = exploration.archive.entries
    assert entries == explored.archive.entries[: len(entries)]
    assert entries


def test_results_of_several_seeds_share_a_file(explored: Exploration) -> None:
    origin = {"command": "zelda explore", "commit": "c", "date": "2026-11-23", "cores": 2, "jobs": 1}
    result = result_of(explored, ["sword", "hedge", "gate", "ember"], origin)
    other = result.model_copy(update={"seed": 9, "plan": {**result.plan, "seed": 9}})
    results = ExplorationResults()
    for one in (result, other, result):
        results.add(one)
    assert [one.seed for one in results.explorations] == [3, 9]
    assert result.reached == len(explored.progress.reached_at)
    assert ExplorationResults.model_validate_json(results.model_dump_json()) == results
