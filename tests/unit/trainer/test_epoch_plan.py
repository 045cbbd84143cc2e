"""Episodes of one epoch never share a name, however often environments are rebuilt and the epoch is resumed."""

from services.trainer.rl.epoch_plan import GENERATION, GENERATIONS_PER_RUNNER, EpochPlan
from shared.contracts.ids import SegmentId

PLACE = "1/0"
PLAYED = 1_007  # episodes of one generation: over a thousand, as in a world where the hero dies immediately


def life(plan: EpochPlan) -> set[int]:
    """The numbers of one life of the environment at PLACE."""
    first = plan.first_episode(PLACE)
    return set(range(first, first + PLAYED))


def test_no_life_uses_a_number_of_another_one() -> None:
    fresh = EpochPlan(0)
    lives = [life(fresh), life(fresh.after_restart(1)), life(fresh.after_restart(2))]
    resumed = EpochPlan(0, first_episodes={PLACE: max(lives[-1]) + 1})
    lives += [life(resumed), life(resumed.after_restart(1)), life(resumed.after_restart(GENERATIONS_PER_RUNNER))]
    again = EpochPlan(0, first_episodes={PLACE: max(lives[-1]) + 1})
    lives += [life(again), life(again.after_restart(1))]
    assert len(set().union(*lives)) == len(lives) * PLAYED


def test_a_place_whose_number_a_checkpoint_lacks_begins_above_all_it_has() -> None:
    resumed = EpochPlan(0, first_episodes={"1/0": 5, "2/0": 3 * GENERATION + 8})
    assert resumed.first_episode("3/0") == 4 * GENERATION
    assert resumed.after_restart(1).first_episode("3/0") == 5 * GENERATION


def test_segments_of_a_restarted_epoch_do_not_count_against_the_budget() -> None:
    stored = ["e0000-r01-v00-0004", "e0000-r01-v00-0005", "e0000-r01-v00-0006", "e0000-r01-v01-0005"]
    assert EpochPlan(0).counting(stored).recorded == 0
    assert EpochPlan(0).counting([f"e0000-r01-v00-{GENERATION}"]).recorded == 1  # of environments that were rebuilt
    later = EpochPlan(0, first_episodes={"1/0": 5, "1/1": 5})
    assert later.counting(stored).recorded == 1, "the episode before the first one is not played again"


def test_all_segments_count_after_a_checkpoint_in_mid_epoch() -> None:
    stored = ["e0000-r01-v00-0004", "e0000-r01-v00-0005", "e0000-r01-v00-0006", "e0000-r01-v01-0005"]
    resumed = EpochPlan(0, first_episodes={"1/0": 5, "1/1": 6}, steps=1024)
    assert resumed.counting(stored).recorded == 4


def test_the_highest_numbers_fit_into_a_name() -> None:
    number = EpochPlan(0).after_restart(1_000 * GENERATIONS_PER_RUNNER).first_episode(PLACE)
    assert SegmentId(f"e9999-r999-v255-{number:04d}-s99999")
