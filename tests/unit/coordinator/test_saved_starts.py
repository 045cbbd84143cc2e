"""A run may name saved states to begin at: unknown ones are refused, known ones are pinned in each order."""

from pathlib import Path

import pytest

from shared.contracts.epoch import SavedState
from shared.contracts.ids import Digest, StateName
from shared.state.saved_states import SavedStates, StateNameTaken
from shared.store import keys
from shared.store.memory import MemoryStore
from tests.unit.coordinator.api_client import client
from tests.unit.coordinator.harness import Harness
from tests.unit.trainer.run_fixtures import NOW

DIGEST = Digest("d" * 64)


def state(name: str, **changes: str) -> SavedState:
    fields = {"game": "bramble", "world": "garden", "difficulty": "normal", "place": "0:12", "source": "a test"}
    more = {"seed": 0, "milestones": 1, "rom": DIGEST, "emulator": "pyboy", "created": NOW}
    key = keys.saved_state_content(DIGEST)
    return SavedState.model_validate({**fields, **more, "name": name, "key": key, "digest": DIGEST, **changes})


async def test_the_order_names_the_states_as_they_were(tmp_path: Path) -> None:
    harness = Harness()
    cave = state("cave")
    await SavedStates(harness.store).create(cave, b"state")
    async with client(harness, tmp_path) as api:
        body = {"run": "demo", "config": {"world": "garden", "starts": {"cave": 0.3}}}
        assert (await api.post("/runs", json=body)).status_code == 201
    await harness.passes()
    order = await harness.start_order(0)
    assert order.starts == [cave]
    assert order.config.starts == {StateName("cave"): 0.3}


@pytest.mark.parametrize(
    ("saved", "sentence"),
    [
        (state("lake"), "config.starts: no saved state is named cave: choose from lake."),
        (
            state("cave", world="vale"),
            "the saved state cave is of bramble, world vale, normal, and the run plays",
        ),
    ],
)
async def test_a_state_that_the_run_cannot_begin_at_is_refused(
    saved: SavedState, sentence: str, tmp_path: Path
) -> None:
    harness = Harness()
    await SavedStates(harness.store).create(saved, b"state")
    async with client(harness, tmp_path) as api:
        answer = await api.post("/runs", json={"config": {"world": "garden", "starts": {"cave": 0.3}}})
    assert answer.status_code == 422
    assert sentence in answer.json()["detail"]


async def test_a_name_never_means_another_state() -> None:
    states = SavedStates(MemoryStore())
    await states.create(state("cave"), b"state")
    with pytest.raises(StateNameTaken, match="the saved state cave exists, and runs may begin there"):
        await states.create(state("cave", place="0:13"), b"state")
    assert [one.place for one in await states.all()] == ["0:12"]
