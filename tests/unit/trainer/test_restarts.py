"""Restarts: play fills the archive, packs keep it, and an epoch's order decides where its episodes begin."""

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from services.trainer.restarts.collector import CollectedState
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
from services.trainer.state_archive.archive import PathQuality
from services.trainer.state_archive.cell import ArchiveCell
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


def test_wider_cells_keep_fewer_states(games: RLlibVectorEnv) -> None:
    usual = play(games, EpochPlan(0, restarts=NOTHING))
    wide = play(games, EpochPlan(0, restarts=replace(NOTHING, tiles_per_cell=15)))
    assert {state.cell.column for state in wide.states} == {0}
    assert 0 < len(wide.states) < len(usual.states)


def test_a_restart_continues_the_path_and_its_memory(games: RLlibVectorEnv) -> None:
    archive, _ = filled(games)
    starts, paths = archive.draw((0, 1), 0.9, "novelty")
    assert Counter(start is None for start in starts) == {False: 90, True: 10}
    result = play(games, EpochPlan(1, restarts=RestartPlan(tuple(starts), paths, archive.known)))
    continued = [state for state in result.states if state.parent is not None]
    assert continued, "the next epoch finds states behind the archive"
    for state in continued:
        parent = archive.archive.entries[state.parent or 0]
        assert state.quality.steps == parent.quality.steps + len(state.actions)
    assert {summary.from_start for summary in result.summaries} <= {True, False}
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
