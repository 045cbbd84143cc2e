"""The environment fills its observation space, repeats itself under the same seed, and distinguishes endings."""

from dataclasses import replace

import numpy as np
import pytest

from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession, StepResult
from services.trainer.env.pixels import BANDS, GROUP_STEP, PLACE_STEP, SEASON_STEP
from services.trainer.env.vector import ZeldaVectorEnv
from shared.errors import ContractError
from shared.game.decoding.names import ACTIONS
from shared.game.emulator.start import StartState
from shared.game.errors import EmulatorFault
from shared.game.observation import counters, with_counters, with_progress, with_surroundings
from shared.game.observation.episode_memory import EpisodeMemory
from shared.game.observation.with_progress import ProgressObservation
from tests.unit.env.scripted_play import at_random, play, playing, solve

GARDEN = {"world": "garden"}
DOWN = 2


@pytest.mark.parametrize("observation", ["obs/v4", "obs/v3", "obs/v2", "obs/v1", "pixels/v1"])
def test_observations_are_in_their_space_and_of_their_own_memory(observation: str) -> None:
    vector = ZeldaVectorEnv({**GARDEN, "observation": observation, "num_envs": 2})
    first, _ = vector.reset(seed=0)
    kept = first.copy()
    for step in range(40):
        seen = vector.step(np.array([step % 8, DOWN]))[0]
        assert vector.observation_space.contains(seen)
    np.testing.assert_array_equal(first, kept)
    vector.close()


def test_obs_v2_shows_the_features_and_then_the_event_counters() -> None:
    with playing(EnvConfig(world="garden", observation="obs/v2", frame_skip=12)) as session:
        before = session.counters.packed
        for step in range(200):
            seen = session.step(1 + step // 10 % 4).observation
            counted = counters.features(np.frombuffer(session.counters.packed, "<u2"))
            np.testing.assert_array_equal(seen, np.concatenate([session.features, counted]))
        assert session.counters.packed != before

        first = session.reset()

    assert first[128:].max() == 0  # a new episode has counted nothing


def test_obs_v3_shows_what_is_around_the_hero_in_every_room_alike() -> None:
    with playing(EnvConfig(world="garden", observation="obs/v3")) as session:
        seen = session.observed()
        assert len(seen) == with_surroundings.SIZE == 361
        added = dict(zip(with_surroundings.NAMES, seen[with_counters.SIZE :], strict=True))
        # The hero stands at 4,5 below the door at 4,3, between walls; the sign at 7,2 is the only one.
        assert added["solid_+0_+0"] == added["unseen_+0_+0"] == 0
        assert added["unseen_+0_+1"] == added["solid_-2_-1"] == 1
        assert (added["rare_-3_+3"], added["solid_-3_+3"]) == (1, 1)
        assert added["room_flag_4"] == 1, "the room is visited"
        first = [added[f"room_likeness_{number}"] for number in range(with_surroundings.LIKENESS)]
        for _ in range(60):
            seen = session.step(DOWN).observation
        there = dict(zip(with_surroundings.NAMES, seen[with_counters.SIZE :], strict=True))
        assert session.state.room != 0x11
        assert [there[f"room_likeness_{number}"] for number in range(with_surroundings.LIKENESS)] != first


def test_obs_v4_shows_each_achievement_as_one_flag_more() -> None:
    ends: list[tuple[list[float], list[float], int, int]] = []

    def look(session: GameSession, _action: int, outcome: StepResult) -> None:
        added = dict(zip(with_progress.NAMES, outcome.observation[with_surroundings.SIZE :].tolist(), strict=True))
        items, money = (
            [value for flag, value in added.items() if flag.startswith(name)] for name in ("items_from", "rupees_from")
        )
        ends.append((items, money, session.counters.values["items"], session.state.inventory.rupees or 0))

    solve("garden", look, observation="obs/v4")

    assert len(ends[0][0]) == with_progress.MAX_FLAGS
    assert len({items for _, _, items, _ in ends}) > 2, "the solver finds items"
    for shown, money, items, rupees in ends:
        assert shown == [1.0] * items + [0.0] * (with_progress.MAX_FLAGS - items)
        assert money == [float(rupees >= least) for least in with_progress.RUPEES]


def test_obs_v4_says_minus_one_for_what_the_game_cannot_say() -> None:
    with playing(EnvConfig(world="garden")) as session:
        unsaid = replace(session.state.inventory, rupees=None)
        state = session.state._replace(inventory=unsaid)
        seen = ProgressObservation().of(np.zeros(with_surroundings.SIZE, np.float32), state, session.counters)

    added = dict(zip(with_progress.NAMES, seen[with_surroundings.SIZE :].tolist(), strict=True))
    assert {name.split("_from_")[0] for name, value in added.items() if value == -1} == {"rupees", "levers"}, (
        "Bramble has no levers"
    )


@pytest.mark.parametrize("skip", [4, 24])
def test_the_same_seed_and_actions_give_the_same_course(skip: int) -> None:
    np.testing.assert_array_equal(_course(seed=5, skip=skip), _course(seed=5, skip=skip))


def test_another_seed_gives_another_course() -> None:
    room_with_enemies = _first_fight()

    def after(seed: int) -> list[tuple[int, int]]:
        with playing(EnvConfig(world="vale", seed=seed)) as session:
            session.set_starts([room_with_enemies])
            session.reset()
            play(session, 60, lambda step: 0)
            return [(enemy.x, enemy.y) for enemy in session.state.enemies]

    assert after(5) == after(5)
    assert after(5) != after(6)


def _first_fight() -> StartState:
    found: list[StartState] = []

    def observe(session: GameSession, action: int, outcome: StepResult) -> None:
        if not found and session.state.enemies and session.state.control:
            found.append(StartState("fight", session.emulator.save()))

    solve("vale", observe)
    return found[0]


def _course(seed: int, skip: int = 4) -> np.ndarray:
    config = EnvConfig(world="garden", seed=seed, frame_skip=skip, episode_length=200)
    with playing(config) as session:
        seen: list[np.ndarray] = []
        play(session, 600, at_random(0), lambda p, action, outcome: seen.append(outcome.observation))
        return np.stack(seen)


def test_an_episode_depends_on_its_number_not_on_what_was_played_before() -> None:
    with playing(EnvConfig(world="vale", episode_length=50)) as session:
        play(session, 100, at_random(1))
        third = session.episode.seed

    with playing(EnvConfig(world="vale", episode_length=50)) as session:
        session.skip_to(2)
        session.reset()

        assert session.episode.number == 2
        assert session.episode.seed == third


def test_the_length_truncates_and_death_terminates() -> None:
    with playing(EnvConfig(world="garden", episode_length=12)) as session:
        ends = [session.step(0)[2:4] for _ in range(12)]
        assert ends == [(False, False)] * 11 + [(False, True)]

        session.reset()
        session.emulator.poke(0xCC34, 0xFF)
        died = session.step(0)
    assert (died.terminated, died.truncated) == (True, False)
    assert died.reward < 0
    assert died.report is not None
    assert died.report.deaths == 1


def test_an_episode_may_go_on_where_the_game_lets_the_hero_go_on() -> None:
    config = EnvConfig(
        world="garden", difficulty="harmless", terminal_on_death=False, rewards="explore", episode_length=400
    )
    with playing(config) as session:
        full = session.state.inventory.health
        died = []
        for step in range(400):
            if step in {10, 200}:
                session.emulator.poke(0xC6A2, 0)
            result = session.step(0)
            died += [step] if result.died else []
            assert result.terminated is False
        assert len(died) == 2, "each death counts once, however long the hero lies there"
        assert (10 <= died[0] < 14, 200 <= died[1] < 204) == (True, True)
        assert result.report is not None
        assert (result.report.deaths, result.report.terms["death"]) == (2, -2 * 0.5)
        assert (session.state.control, session.state.inventory.health) == (True, full)


def test_a_start_may_end_its_episodes_with_a_death() -> None:
    with playing(EnvConfig(world="garden", terminal_on_death=False)) as session:
        session.begin(StartState("last chance", session.emulator.save(), ends_with_death=True), 1)
        session.emulator.poke(0xCC34, 0xFF)
        result = session.step(0)
        assert (result.died, result.terminated) == (True, True)


def test_start_states_are_drawn_evenly_and_named_in_the_report() -> None:
    with playing(EnvConfig(world="garden", episode_length=1)) as session:
        here = session.emulator.save()
        session.set_starts([StartState("first", here), StartState("second", here)])
        names = []
        for _ in range(40):
            session.reset()
            report = session.step(0).report
            assert report is not None
            names.append(report.start)

    assert 10 < names.count("first") < 30
    assert set(names) == {"first", "second"}


def test_a_restart_continues_the_episode_that_was_saved() -> None:
    with playing(EnvConfig(world="garden", rewards="explore")) as session:
        for _ in range(60):
            session.step(ACTIONS.index("down"))
        memory = EpisodeMemory.of(session.trace, session.counters).to_bytes()
        saved, tiles = session.emulator.save(), session.trace.tiles
        counted = session.counters.packed
        session.set_starts([StartState("again", saved, memory)])
        session.reset()
        assert session.counters.packed == counted
        assert session.trace.tiles == tiles
        for _ in range(60):
            session.step(ACTIONS.index("up"))
        returned = session.term_sums["tile"]
        session.set_starts([StartState("new", saved)])
        session.reset()
        for _ in range(60):
            session.step(ACTIONS.index("up"))
        assert session.term_sums["tile"] > returned


def one_press_of_start(step: int) -> int:
    """START in the middle of 60 steps, and no button before and after it."""
    return ACTIONS.index("start") if step == 30 else 0


def test_start_opens_the_menu() -> None:
    with playing(EnvConfig(world="garden")) as session:
        play(session, 60, one_press_of_start)
        assert session.state.menu != 0


def test_a_vector_of_games_equals_the_games_one_by_one() -> None:
    config = EnvConfig(world="vale", num_envs=3, threads=2, episode_length=40)
    vector = ZeldaVectorEnv(config)
    first, _ = vector.reset()
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 8, (90, 3))
    together = [vector.step(row) for row in actions]
    vector.close()

    for env in range(3):
        session = GameSession(config, env)
        np.testing.assert_array_equal(first[env], session.reset())
        ended = False
        for row, (observations, rewards, terminated, truncated, _) in zip(actions, together, strict=True):
            if ended:  # the step after an ending begins the next episode
                np.testing.assert_array_equal(observations[env], session.reset())
                assert rewards[env] == 0
                ended = False
                continue
            outcome = session.step(int(row[env]))
            np.testing.assert_array_equal(observations[env], outcome.observation)
            assert rewards[env] == outcome.reward
            assert (terminated[env], truncated[env]) == (outcome.terminated, outcome.truncated)
            ended = outcome.report is not None
        session.close()


def test_the_vector_reports_endings_where_they_happened() -> None:
    vector = ZeldaVectorEnv(EnvConfig(world="garden", num_envs=2, episode_length=5))
    vector.reset()
    infos = [vector.step(np.zeros(2, int))[4] for _ in range(5)]
    vector.close()

    assert all(not info for info in infos[:4])
    assert infos[4]["_report"].tolist() == [True, True]
    assert infos[4]["report"][1]["steps"] == 5


def test_a_rewarder_adds_to_all_rewards_and_sees_the_features() -> None:
    class Constant:
        view = "obs/v1"
        seen: np.ndarray | None = None
        ends: np.ndarray | None = None

        def begin(self, observations: np.ndarray) -> None:
            self.seen = observations.copy()

        def advance(
            self, observations: np.ndarray, terminated: np.ndarray, truncated: np.ndarray, held: np.ndarray
        ) -> np.ndarray:
            self.ends = terminated
            return np.full(len(observations), 2.0)

    rewarder = Constant()
    plain = ZeldaVectorEnv(EnvConfig(world="garden", num_envs=2))
    vector = ZeldaVectorEnv(EnvConfig(world="garden", num_envs=2, terminal_on_death=False), rewarder)
    plain.reset()
    vector.reset()

    more = vector.step(np.array([3, 4]))[1]

    np.testing.assert_allclose(more, plain.step(np.array([3, 4]))[1] + 2.0)
    assert rewarder.seen is not None
    assert rewarder.seen.shape == (2, 128)
    plain.close()

    vector.sessions[1].emulator.poke(0xCC34, 0xFF)
    terminated = vector.step(np.array([0, 0]))[2]
    assert (vector.died.tolist(), terminated.tolist()) == ([False, True], [False, False])
    assert rewarder.ends is not None
    assert rewarder.ends.tolist() == [False, True], "for it, the potential ends with a death"
    vector.close()


def test_pixels_show_the_game_and_remember_four_pictures() -> None:
    with playing(EnvConfig(world="garden", observation="pixels/v1")) as session:
        assert session.reset().shape == (6, 72, 80)
        for _ in range(8):
            seen = session.step(4).observation

    assert seen[0].std() > 5, "a picture, not a blank"
    assert not np.array_equal(seen[0], seen[3]), "the hero has moved meanwhile"
    assert set(np.unique(seen[4])) == {0, 255}


def test_pixels_remember_the_map_and_the_place_on_it() -> None:
    with playing(EnvConfig(world="vale", observation="pixels/v1")) as session:
        state, plane = session.state, session.reset()[5]
        assert session.pixels is not None
        bands = [int(band[0, 0]) for band in plane.reshape(BANDS, -1, plane.shape[1])]
        assert bands == [0, SEASON_STEP, 3 * PLACE_STEP, 1 * PLACE_STEP, 48, 48], (
            "overworld, spring, room 31, three hearts"
        )
        inside = session.pixels.step(state._replace(group=3, room=0x08), session.trace)[5]
        assert [int(band[0, 0]) for band in inside.reshape(BANDS, -1, plane.shape[1])][:4] == [
            3 * GROUP_STEP, SEASON_STEP, 0, 8 * PLACE_STEP,
        ]  # fmt: skip


def test_a_wrong_field_is_refused_with_one_sentence() -> None:
    with pytest.raises(
        ContractError, match="environment configuration: frameskip: no such field; did you mean frame_skip"
    ):
        EnvConfig.of({"frameskip": 4})


class Broken:
    """An emulator whose every step fails."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError("the machine is on fire")


def test_a_failing_emulator_raises_a_typed_error() -> None:
    with playing(EnvConfig.of(GARDEN)) as session:
        play(session, 7, at_random(0))
        working, session.emulator._pyboy = session.emulator._pyboy, Broken()
        with pytest.raises(EmulatorFault, match="on fire"):
            session.step(1)
        session.emulator._pyboy = working
    assert len(session.episode.actions) == 7
