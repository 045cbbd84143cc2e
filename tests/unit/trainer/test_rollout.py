"""A rollout cuts arrays of all environments into the chunks of their episodes."""

import numpy as np
import pytest

from services.trainer.rl.env_runner import Rollout

ENVS = 3


def play(
    rollout: Rollout,
    endings: dict[int, tuple[int, bool]],
    steps: int,
    holds: dict[int, list[int]] | None = None,
    deaths: dict[int, int] | None = None,
) -> None:
    """Observation and reward of a step are its number and environment. `endings`: step -> (environment, terminated).

    `holds`: step -> environments that stood still. `deaths`: step -> the environment whose hero died.
    """
    for step in range(steps):
        held = np.isin(np.arange(ENVS), (holds or {}).get(step, []))
        ended = np.zeros((2, ENVS), np.bool_)
        if step in endings:
            env, terminated = endings[step]
            ended[0 if terminated else 1, env] = True
        numbers = 100.0 * (step + 1) + np.arange(ENVS)
        results = (numbers[:, None].astype(np.float32), numbers, *ended, {})
        died = np.arange(ENVS) == (deaths or {}).get(step, -1)
        rollout.add(np.full(ENVS, step), np.full(ENVS, -float(step)), results, None, held if holds else None, died=died)


@pytest.fixture
def rollout() -> Rollout:
    first = np.arange(ENVS, dtype=np.float32)[:, None]
    return Rollout(first, np.zeros(ENVS, np.bool_), ["a", "b", "c"])


def test_an_open_episode_has_one_observation_more_than_steps(rollout: Rollout) -> None:
    play(rollout, {}, steps=4)
    chunks = rollout.chunks()
    assert [chunk.id_ for chunk in chunks] == ["a", "b", "c"]
    assert rollout.steps == 4 * ENVS
    second = chunks[1]
    assert second.get_observations()[:, 0].tolist() == [1, 101, 201, 301, 401]
    assert second.get_rewards().tolist() == [101, 201, 301, 401]
    assert second.get_actions().tolist() == [0, 1, 2, 3]
    assert second.get_extra_model_outputs("action_logp").tolist() == [0, -1, -2, -3]
    assert not any(chunk.is_done for chunk in chunks)


def test_the_step_after_an_ending_only_resets_its_environment(rollout: Rollout) -> None:
    play(rollout, {1: (2, True)}, steps=5)
    ended, *open_ = rollout.chunks()
    assert rollout.steps == 5 * ENVS - 1
    assert (ended.id_, ended.is_terminated, ended.is_truncated) == ("c", True, False)
    assert ended.get_rewards().tolist() == [102, 202]
    following = open_[-1]
    assert following.id_ not in "abc"  # a new episode: its rewards must not continue the old one's sum
    assert following.get_observations()[:, 0].tolist() == [302, 402, 502]  # 302 is the reset's
    assert following.get_rewards().tolist() == [402, 502]
    assert sum(map(len, (ended, *open_))) == rollout.steps


def test_an_ending_in_the_last_step_is_continued_by_a_reset(rollout: Rollout) -> None:
    play(rollout, {3: (0, False)}, steps=4)
    ended, *open_ = rollout.chunks()
    assert ended.is_truncated
    assert len(open_) == ENVS - 1
    after = Rollout(rollout.observations[-1], rollout.ended, rollout.names)
    play(after, {}, steps=2)
    first = after.chunks()[0]
    assert (first.get_rewards().tolist(), after.steps) == ([200], 2 * ENVS - 1)


def test_ended_episodes_come_in_the_order_of_their_ends(rollout: Rollout) -> None:
    play(rollout, {0: (1, True), 2: (0, True), 3: (1, True)}, steps=5)
    ended = [chunk for chunk in rollout.chunks() if chunk.is_done]
    assert [len(chunk) for chunk in ended] == [1, 3, 2]
    assert [chunk.get_rewards().tolist()[-1] % 100 for chunk in ended] == [1, 0, 1]


def test_steps_in_which_an_environment_stood_still_are_left_out(rollout: Rollout) -> None:
    play(rollout, {}, steps=6, holds={0: [0], 2: [1], 3: [1, 2]})
    chunks = rollout.chunks()
    assert rollout.steps == 6 * ENVS - 4
    actions = [(chunk.id_, chunk.get_actions().tolist()) for chunk in chunks]
    assert actions == [("b", [0, 1]), ("c", [0, 1, 2]), ("a", [1, 2, 3, 4, 5]), ("b", [4, 5]), ("c", [4, 5])]
    assert not any(chunk.is_done for chunk in chunks)
    before, after = chunks[0], chunks[3]
    assert before.get_observations()[:, 0].tolist() == [1, 101, 201]
    assert after.get_observations()[:, 0].tolist() == [401, 501, 601]


def test_an_episode_may_end_after_it_stood_still(rollout: Rollout) -> None:
    play(rollout, {2: (1, True)}, steps=5, holds={1: [1]})
    first, ended, *_ = rollout.chunks()
    assert (first.id_, first.get_actions().tolist(), first.is_done) == ("b", [0], False)
    assert (ended.id_, ended.get_actions().tolist(), ended.is_terminated) == ("b", [2], True)


def test_returns_end_with_a_death_after_which_the_episode_goes_on(rollout: Rollout) -> None:
    play(rollout, {}, steps=5, deaths={2: 1})
    died, *open_ = rollout.chunks()
    assert (died.id_, died.is_terminated, died.get_actions().tolist()) == ("b", True, [0, 1, 2])
    after = open_[1]
    assert (after.is_done, after.get_actions().tolist()) == (False, [3, 4]), "no step is lost"
    assert after.get_observations()[:, 0].tolist() == [301, 401, 501]
    assert after.id_ != "b", "its rewards must not continue the sum"
    assert rollout.steps == 5 * ENVS


def test_a_death_that_ends_the_episode_is_its_end(rollout: Rollout) -> None:
    play(rollout, {2: (1, True)}, steps=5, deaths={2: 1})
    ended, *open_ = rollout.chunks()
    assert (ended.id_, ended.is_terminated, len(open_)) == ("b", True, ENVS)
    assert rollout.steps == 5 * ENVS - 1


@pytest.mark.parametrize(("endings", "deaths"), [({3: (1, True)}, {}), ({}, {3: 1})], ids=["end", "death"])
def test_what_ends_in_the_last_step_leaves_no_empty_chunk(
    rollout: Rollout, endings: dict[int, tuple[int, bool]], deaths: dict[int, int]
) -> None:
    play(rollout, endings, steps=4, deaths=deaths)
    assert [len(chunk) for chunk in rollout.chunks()] == [4] * ENVS


def test_a_chunk_has_the_memory_before_each_of_its_steps(rollout: Rollout) -> None:
    for step in range(4):
        terminated = np.isin(np.arange(ENVS), [2] if step == 1 else [])
        results = np.zeros((ENVS, 1), np.float32), np.zeros(ENVS), terminated, np.zeros(ENVS, np.bool_)
        memory = np.repeat(10 * step + np.arange(ENVS, dtype=np.float32)[:, None], 2, axis=1)
        rollout.add(np.zeros(ENVS, int), np.zeros(ENVS), (*results, {}), memory=memory)
    columns = [chunk.get_extra_model_outputs("memory") for chunk in rollout.chunks()]
    assert all(column.shape[1] == 2 for column in columns)
    assert [column[:, 0].tolist() for column in columns] == [[2, 12], [0, 10, 20, 30], [1, 11, 21, 31], [32]]


def test_a_death_in_the_step_that_cuts_an_episode_ends_its_returns(rollout: Rollout) -> None:
    play(rollout, {2: (1, False)}, steps=5, deaths={2: 1})
    died, *open_ = rollout.chunks()
    assert (died.id_, died.is_terminated, died.is_truncated) == ("b", True, False)
    assert [chunk.get_actions().tolist() for chunk in open_ if len(chunk) < 5] == [[4]], "step 3 only reset the game"
