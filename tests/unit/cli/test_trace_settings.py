"""`zelda trace` selects the scores behind a model with the settings of its training, which the card names."""

from typing import Any

import pytest

from cli.trace.link import Link
from cli.trace.model_links import model_links
from services.rewardmodel.offline import train_epoch
from services.rewardmodel.training.pipeline import train_in_thread
from shared.store import keys
from tests.unit.rewardmodel.harness import QUICK, RUN, Harness

CAPACITY, NEW_SHARE = 20, 0.5


@pytest.fixture
async def world() -> Harness:
    """A run whose model learnt from fewer segments than were judged."""
    found = Harness()
    await found.play(0, episodes=8)
    await found.judge(0, await found.listed(0))
    group = QUICK.model_copy(update={"capacity": CAPACITY, "new_share": NEW_SHARE, "steps": 10})
    await train_epoch(group, found.store, RUN, 0, train_in_thread)
    return found


async def scores_link(world: Harness, **changes: Any) -> Link:
    """The link to the scores of the model, after these changes of its card."""
    card = await world.card(0)
    await world.store.put(keys.reward_model_card(RUN, 0), card.model_copy(update=changes).to_bytes())
    (found,) = [link for link in await model_links(world.store, RUN, 0) if link.what == "its scores"]
    return found


async def test_scores_are_selected_with_the_settings_of_the_card(world: Harness) -> None:
    card = await world.card(0)
    assert (card.segments, card.capacity, card.new_share) == (CAPACITY, CAPACITY, NEW_SHARE)
    found = await scores_link(world)
    assert found.state == "stored"
    assert found.facts[0].startswith(f"{CAPACITY} score objects of epoch 0,")


async def test_a_card_without_settings_does_not_prove_a_change(world: Harness) -> None:
    found = await scores_link(world, capacity=None, new_share=None)
    assert found.state == "unknown"
    assert found.facts[-1] == "20 were used, selected with other settings, which this older card does not name"


async def test_a_removed_score_is_still_a_change(world: Harness) -> None:
    for segment in await world.listed(0):
        await world.store.delete(keys.score(RUN, 0, segment.segment))
        break
    assert (await scores_link(world, capacity=10)).state == "changed"
