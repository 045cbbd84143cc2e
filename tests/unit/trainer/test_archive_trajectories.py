"""Trajectories of the state archive: a replay shows what the policy saw, and a damaged one is refused by its name."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from services.trainer.imitation.demonstrations import Demonstrations
from services.trainer.restarts.trajectories import ArchiveTrajectories
from services.trainer.restarts.trajectory import Trajectory, read_trajectory, write_trajectory
from services.trainer.restarts.trajectory_player import TrajectoryPlayer
from services.trainer.state_archive.archive import PathPart
from shared.errors import ContractError, DigestMismatch
from shared.game.errors import ReplayMismatch
from tests.unit.trainer.archived_play import CONFIG, ArchivedPlay, TrajectoriesInMemory


@pytest.fixture(scope="module")
def play() -> Iterator[ArchivedPlay]:
    made = ArchivedPlay()
    made.epoch(0)
    made.epoch(1)
    yield made
    made.games.close()


@pytest.fixture(scope="module")
def player() -> Iterator[TrajectoryPlayer]:
    made = TrajectoryPlayer(CONFIG.environment())
    yield made
    made.close()


def newest(play: ArchivedPlay, *, continued: bool) -> Trajectory:
    """The trajectory to the last entry that began at the true start, or that continued the path of another."""
    found = [one.number for one in play.archive.archive.best() if (one.parent is not None) == continued]
    return play.trajectory(max(found))


def test_a_replay_shows_what_the_policy_saw(play: ArchivedPlay, player: TrajectoryPlayer) -> None:
    first = newest(play, continued=False)
    rows = player.rows(first, "first")
    assert len(rows.actions) == first.steps > 20
    np.testing.assert_array_equal(rows.actions, play.actions[0][: first.steps])
    np.testing.assert_array_equal(rows.observations, play.seen[0][: first.steps])
    assert rows.total == pytest.approx(player._session.episode.total)
    assert rows.total != 0


def test_a_replay_continues_the_path_of_another_entry(play: ArchivedPlay, player: TrajectoryPlayer) -> None:
    second = newest(play, continued=True)
    rows, begins = player.rows(second, "second"), len(second.parts[0].actions)
    assert len(second.parts) == 2
    np.testing.assert_array_equal(rows.observations[begins:], play.seen[1][: second.steps - begins])
    np.testing.assert_array_equal(rows.actions[begins:], play.actions[1][: second.steps - begins])
    assert player.rows(second, "second").total == rows.total


def test_a_stored_trajectory_comes_back_and_its_damage_is_named(play: ArchivedPlay) -> None:
    whole = newest(play, continued=True)
    assert read_trajectory(write_trajectory(whole), "demo.zip") == whole
    for broken in (b"", b"no zip", write_trajectory(whole)[:-40]):
        with pytest.raises(ContractError, match=r"demo\.zip is no trajectory"):
            read_trajectory(broken, "demo.zip")
    with pytest.raises(DigestMismatch, match=r"demo\.zip: the state at its end is damaged"):
        read_trajectory(write_trajectory(replace(whole, digest="0" * 64)), "demo.zip")


def test_actions_that_lead_elsewhere_are_refused_by_name(play: ArchivedPlay, player: TrajectoryPlayer) -> None:
    whole = newest(play, continued=False)
    (part,) = whole.parts
    changed = replace(whole, parts=(PathPart(part.seed, part.actions[:-10] + bytes(10)),))
    with pytest.raises(ReplayMismatch, match=rf"demo\.zip does not lead to the state of entry {whole.entry}"):
        player.rows(changed, "demo.zip")


def test_the_same_seed_chooses_the_same_trajectories_and_plays_each_once(play: ArchivedPlay) -> None:
    store = TrajectoriesInMemory()
    kept = ArchiveTrajectories(store, lambda: TrajectoryPlayer(CONFIG.environment()))
    chosen = [play.archive.choose((0, 2), 3, "novelty") for _ in range(2)]
    assert chosen[0] == chosen[1]
    assert len({entry.number for entry in chosen[0]}) == 3
    references = kept.save(play.archive, chosen[0])
    assert kept.save(play.archive, chosen[1]) == references
    (begin,) = [entry for entry in play.archive.archive.best() if not entry.quality.steps]
    assert kept.save(play.archive, [begin]) == [], "the true start shows nothing"
    assert [one.steps for one in references] == [entry.quality.steps for entry in chosen[0] if entry.quality.steps]
    rows = kept.rows(references)
    assert [len(one.actions) for one in rows] == [one.steps for one in references]
    kept.rows(references)
    assert store.reads == len(references)
    ends = [kept.outline(one).legs[-1].end for one in references for _ in range(2)]
    assert ends == [one.steps for one in references for _ in range(2)], "each has an outline of its own"
    kept.rows(references[:1])
    assert len(kept._rows) == 1, "rows of an earlier order are not kept"
    store.objects[references[0].key] = b"damaged"
    again = ArchiveTrajectories(store, lambda: TrajectoryPlayer(CONFIG.environment()))
    with pytest.raises(DigestMismatch, match=references[0].key):
        again.rows(references)
    kept.close()


def test_judged_play_and_trajectories_are_drawn_equally_often() -> None:
    many = Demonstrations(np.zeros((4, 2), np.float32), np.zeros(4, np.int64), np.full(4, 0.25))
    one = Demonstrations(np.ones((1, 2), np.float32), np.ones(1, np.int64), np.ones(1))
    joined = Demonstrations.joined([many, one])
    assert joined is not None
    np.testing.assert_allclose(joined.chances, [0.125] * 4 + [0.5])
    assert Demonstrations.joined([]) is None
