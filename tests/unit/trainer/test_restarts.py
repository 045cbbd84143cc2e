"""Restarts: play fills the archive, packs keep it, and an epoch's order decides where its episodes begin."""

import io
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from services.trainer.env.game_session import GameSession
from services.trainer.restarts import pack as pack_module
from services.trainer.restarts.collector import CellCollector, CollectedState, PathStart
from services.trainer.restarts.explored_path import pack_of_path
from services.trainer.restarts.pack import (
    ArchivePack,
    pack_states,
    pack_visits,
    read_pack,
    unpack_states,
    unpack_visits,
    write_pack,
)
from services.trainer.restarts.plan import RestartPlan
from services.trainer.restarts.run_archive import RunArchive
from services.trainer.rl.epoch_plan import EpochPlan, RolloutResult
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.session_config import SESSION_CONFIG, TrainingSessionConfig
from services.trainer.state_archive.archive import PathPart, PathQuality
from services.trainer.state_archive.cell import ArchiveCell, may_restart
from shared.contracts.base import sha256
from shared.contracts.epoch import ArchiveRef
from shared.contracts.ids import Digest, RunId
from shared.contracts.run import RunConfig
from shared.errors import ContractError, DigestMismatch
from shared.game.emulator.start import begin_episode, true_start
from shared.game.observation.counters import LASTING
from shared.game.recording.segment import unpack_state

RUN = RunConfig(world="garden", env_runners=0, envs_per_runner=2, batch_size=256, epoch_steps=512, frame_skip=12)
STEPS = 150
DEATH_TRIGGER = 0xCC34
NOTHING = RestartPlan((None,), {}, {})


@pytest.fixture
def games() -> Iterator[RLlibVectorEnv]:
    made = RLlibVectorEnv({SESSION_CONFIG: TrainingSessionConfig(RunId("play"), RUN), "num_envs": 2})
    yield made
    made.close()


def play(games: RLlibVectorEnv, plan: EpochPlan, steps: int = STEPS) -> RolloutResult:
    """Make random steps in both environments."""
    rng = np.random.default_rng(plan.epoch)
    games.begin_epoch(plan)
    games.reset()
    for _ in range(steps):
        games.step(rng.integers(0, 5, 2))
    return games.collect(final=True)


def stored(pack: ArchivePack) -> tuple[ArchiveRef, bytes]:
    data = write_pack(pack)
    digest = Digest(sha256(data))
    return ArchiveRef(key=f"models/runs/play/archive/{digest[:16]}.zip", digest=digest), data


def filled(games: RLlibVectorEnv) -> tuple[RunArchive, dict[str, bytes]]:
    """An archive after one epoch, and the objects that hold it."""
    result, archive = play(games, EpochPlan(0, restarts=NOTHING)), RunArchive()
    pack = archive.merge(result.states, result.visits)
    reference, data = stored(pack)
    archive.append(reference, pack)
    return archive, {reference.key: data}


def test_an_explored_path_becomes_states_in_cells_of_the_runs_size() -> None:
    environment = TrainingSessionConfig(RunId("play"), RUN).environment()
    path = PathPart(1, np.random.default_rng(0).integers(1, 5, 60).astype(np.uint8).tobytes())
    usual, wide = (pack_of_path(environment, path, tiles) for tiles in (2, 15))
    assert len(wide.states) < len(usual.states)
    for found in (usual, wide):
        assert (found.previous, found.first) == (None, 0)
        assert found.states[0].actions == b"", "the true start is its first state"
        assert {state.seed for state in found.states} == {1}
        assert set(found.visits) == {state.cell for state in found.states}


def test_without_restarts_nothing_is_collected(games: RLlibVectorEnv) -> None:
    result = play(games, EpochPlan(0), 40)
    assert (result.states, dict(result.visits)) == ([], {})


def test_every_collected_state_is_reached_again_by_its_actions(games: RLlibVectorEnv) -> None:
    result = play(games, EpochPlan(0, restarts=NOTHING))
    assert len(result.states) > 10
    assert set(result.visits) >= {state.cell for state in result.states}
    session = games._open_games().sessions[0]
    for state in (result.states[3], result.states[-1]):
        begin_episode(session.emulator, true_start(session.game).state, state.seed)
        for action in state.actions:
            session.emulator.step(action, RUN.frame_skip)
        session.emulator.take()
        assert sha256(session.emulator.save()) == state.digest == sha256(unpack_state(state.state))


def test_each_episode_visits_a_cell_once() -> None:
    session, start = GameSession(TrainingSessionConfig(RunId("play"), RUN).environment()), PathStart()
    collector = CellCollector(1, {}, {"start": start})
    for episodes in (2, 1):
        for _ in range(episodes):
            session.reset()
            for _ in range(3):
                collector.look(0, session)
        found, visits = collector.drain()
        assert list(visits.values()) == [episodes], "those since the last call"
    assert not found, "no path into it is better than the first one"
    session.close()


def test_no_path_of_the_archive_leads_through_a_death() -> None:
    config = TrainingSessionConfig(RunId("play"), RUN.model_copy(update={"terminal_on_death": False}))
    session, collector = GameSession(config.environment()), CellCollector(1, {}, {})
    rng, cells = np.random.default_rng(0), []
    for dies in (False, True):
        session.reset()
        collector.look(0, session)
        if dies:
            session.emulator.poke(DEATH_TRIGGER, 0xFF)
        for _ in range(STEPS):
            session.step(int(rng.integers(1, 5)))
            collector.look(0, session)
        found, visits = collector.drain()
        cells.append((len(found), len(visits)))
    assert session.detectors.deaths == 1
    assert may_restart(session.state), "the episode goes on"
    session.close()
    assert cells[0][0] > 5
    assert cells[1] == (0, 1), "the start alone is seen again"


def test_wider_cells_keep_fewer_states(games: RLlibVectorEnv) -> None:
    usual = play(games, EpochPlan(0, restarts=NOTHING))
    wide = play(games, EpochPlan(0, restarts=replace(NOTHING, tiles_per_cell=15)))
    assert {state.cell.column for state in wide.states} == {0}
    assert 0 < len(wide.states) < len(usual.states)


def test_a_restart_continues_the_path_and_its_memory(games: RLlibVectorEnv) -> None:
    archive, _ = filled(games)
    starts, paths = archive.draw((0, 1), 0.9, "novelty")
    assert Counter(start is None for start in starts) == {False: 90, True: 10}
    memories = {f"archive-{number}": state.memory for number, state in archive.states.items()}
    assert all(start.memory == memories[start.name] for start in starts if start is not None)
    result = play(games, EpochPlan(1, restarts=RestartPlan(tuple(starts), paths, archive.known)))
    continued = [state for state in result.states if state.parent is not None]
    assert continued, "the next epoch finds states behind the archive"
    for state in continued:
        parent = archive.archive.entries[state.parent or 0]
        assert state.quality.steps == parent.quality.steps + len(state.actions)
    assert {summary.from_start for summary in result.summaries} <= {True, False}
    assert all(summary.from_start == (summary.start == "start") for summary in result.summaries)
    assert not all(summary.from_start for summary in result.summaries)
    known = archive.known
    assert all(state.cell not in known or state.quality != known[state.cell] for state in result.states)


def test_the_same_order_gives_the_same_starts(games: RLlibVectorEnv) -> None:
    archive, objects = filled(games)
    again = RunArchive.load(archive.newest, lambda reference: objects[reference.key])
    for selection in ("novelty", "random", "judges"):
        first, _ = archive.draw((7, 1), 0.5, selection)
        second, _ = again.draw((7, 1), 0.5, selection)
        assert first == second
    assert again.archive.visits == archive.archive.visits
    others = [archive.draw(seed, 0.5, "random")[0] for seed in ((7, 1), (7, 2), (8, 1))]
    assert all(one != other for one, other in combinations(others, 2)), "each epoch draws its own"
    seeds = [(seed, epoch) for seed in range(4) for epoch in range(4)]
    chosen = {tuple(entry.number for entry in archive.choose(seed, 3, "random")) for seed in seeds}
    assert len(chosen) > 8, "and imitates its own"


def test_selection_by_judges_prefers_what_they_value(games: RLlibVectorEnv) -> None:
    archive, _ = filled(games)
    best = max(archive.archive.best(), key=lambda entry: entry.number)
    starts, _ = archive.draw((0, 1), 0.9, "judges", lambda entry: float(entry is best))
    names = Counter(start.name for start in starts if start is not None)
    assert names[f"archive-{best.number}"] > 40


def test_packs_form_a_chain_that_is_checked(games: RLlibVectorEnv) -> None:
    archive, objects = filled(games)
    result = play(games, EpochPlan(1, restarts=RestartPlan((None,), {}, archive.known)))
    reference, data = stored(archive.merge(result.states, result.visits))
    objects[reference.key] = data
    whole = RunArchive.load(reference, lambda one: objects[one.key])
    assert len(whole.archive) >= len(archive.archive)
    assert set(whole.states) == {entry.number for entry in whole.archive.best()}
    stranger, foreign = stored(ArchivePack(None, 3, (), {}))
    with pytest.raises(ContractError, match="does not continue the archive"):
        RunArchive.load(stranger, lambda one: foreign)


@pytest.mark.parametrize("wrong", ["previous", "first"])
def test_a_pack_of_another_archive_is_refused(wrong: str) -> None:
    archive = RunArchive()
    pack = archive.merge([a_state()], {})
    reference, _ = stored(pack)
    archive.append(reference, pack)
    later = archive.merge([], {})
    changed = replace(later, previous=None) if wrong == "previous" else replace(later, first=0)
    with pytest.raises(ContractError, match="does not continue the archive"):
        archive.append(reference, changed)


def test_a_damaged_state_is_refused_by_name() -> None:
    state = a_state()
    damaged = replace(state, digest="0" * 64)
    with pytest.raises(DigestMismatch, match=r"demo\.zip: the state of entry 0 is damaged"):
        read_pack(write_pack(ArchivePack(None, 0, (damaged,), {})), "demo.zip")
    for broken in (b"", b"no zip", write_pack(ArchivePack(None, 0, (state,), {}))[:-40]):
        with pytest.raises(ContractError, match=r"demo\.zip is no archive of states"):
            read_pack(broken, "demo.zip")
    older = replace(state, cell=state.cell._replace(counters=(0,) * (len(LASTING) + 1)))
    with pytest.raises(ContractError, match=rf"a cell of another version: .*, not {len(LASTING)}"):
        read_pack(write_pack(ArchivePack(None, 0, (older,), {})), "demo.zip")


def test_of_the_paths_into_a_cell_an_epoch_adds_those_that_are_better() -> None:
    """Two runners may find the same cell; a pack with a worse path after a better one would end the run."""
    first, worse, best = (replace(a_state(), quality=PathQuality(3, steps)) for steps in (20, 30, 10))
    archive = RunArchive()
    pack = archive.merge([first, worse, best], {})
    assert pack.states == (first, best)
    archive.append(stored(pack)[0], pack)
    assert archive.states == {1: best}
    assert archive.merge([worse, first], {}).states == ()


def test_the_visits_of_all_epochs_count() -> None:
    archive, cell = RunArchive(), a_state().cell
    for states, visits in (([a_state()], 3), ([], 2)):
        pack = archive.merge(states, {cell: visits})
        archive.append(stored(pack)[0], pack)
    assert archive.archive.visits == {cell: 5}


def test_a_pack_comes_back_and_equal_packs_have_equal_bytes() -> None:
    followed = replace(a_state(parent=2), follows=5, cell=a_state().cell._replace(room=9))
    cells = (a_state().cell, 3), (followed.cell, 1)
    whole, again = (ArchivePack(None, 4, (a_state(), followed), dict(visits)) for visits in (cells, cells[::-1]))
    data = write_pack(whole)
    assert read_pack(data, "demo.zip") == whole
    assert data == write_pack(again), "in any order in which the runners return their visits"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert {member.date_time[0] for member in archive.infolist()} == {1980}, "no clock"


def test_a_pack_that_is_too_large_or_of_another_format_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_pack(ArchivePack(None, 0, (a_state(),), {}))
    with monkeypatch.context() as patch:
        patch.setattr(pack_module, "MAX_BYTES", 10)
        with pytest.raises(ContractError, match=r"demo\.zip unpacks to more than 10 bytes"):
            read_pack(data, "demo.zip")
    with monkeypatch.context() as patch:
        patch.setattr(pack_module, "FORMAT", 2)
        with pytest.raises(ContractError, match=r"demo\.zip has format 1, this version reads 2"):
            read_pack(data, "demo.zip")


def test_a_checkpoint_keeps_what_the_epoch_found() -> None:
    states, visits = [a_state(), a_state(parent=4)], Counter({a_state().cell: 3})
    assert unpack_states(pack_states(states)) == states
    assert unpack_visits(pack_visits(visits)) == visits


def a_state(parent: int | None = None) -> CollectedState:
    cell = ArchiveCell(0, 1, 2, 3, (0,) * len(LASTING))
    state = b"state"
    return CollectedState(
        cell, parent, 7, b"\x01\x02", PathQuality(3, 2), b"\x00" * 40, sha256(state), zlib.compress(state), b"memory"
    )
