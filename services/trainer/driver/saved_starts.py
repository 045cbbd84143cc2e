"""Start states that the user saved: an epoch's order pins them, and each episode draws where it begins."""

from collections.abc import Callable

from services.trainer.documents import StoredObject
from services.trainer.domain.curriculum import SLOTS, slots_of
from services.trainer.games import GAMES
from services.trainer.rl.session_config import TrainingSessionConfig, UnplayableRun
from shared.contracts.epoch import EpochStart, SavedState
from shared.game.emulator.emulator import EMULATOR
from shared.game.emulator.start import StartState
from shared.game.games.registry import GameRequest
from shared.game.recording.segment import unpack_state
from shared.state.saved_states import UnplayableState, require_playable


def saved_starts(
    order: EpochStart, config: TrainingSessionConfig, read: Callable[[StoredObject], bytes]
) -> tuple[StartState | None, ...]:
    """A hundred starts in the proportion of the run's `starts`; None is the true start. Empty without saved states.

    Raises UnplayableRun if one was saved from another ROM or by another emulator.
    """
    shares = order.config.starts
    if not shares:
        return ()
    if config.curriculum:
        raise UnplayableRun(
            "a run with starts needs an empty ZELDA_DRIVER__CURRICULUM: both choose where episodes begin"
        )
    try:
        require_playable(order.starts, order.config)
        for state in order.starts:
            _require_same_machine(state, config)
    except UnplayableState as error:
        raise UnplayableRun(str(error)) from error
    slots: list[StartState | None] = []
    for state, count in zip(order.starts, slots_of([shares[state.name] for state in order.starts]), strict=True):
        slots += [StartState(start_name(state), unpack_state(read(state)))] * count
    return (*slots, *[None] * (SLOTS - len(slots)))


def start_name(state: SavedState) -> str:
    """The name of the start state, in reports of episodes."""
    return f"saved-{state.name}"


def _require_same_machine(state: SavedState, config: TrainingSessionConfig) -> None:
    request = GameRequest(state.world, state.difficulty, state.seed, config.rom, config.start_state)
    if GAMES.open(state.game, request).digest != state.rom:
        raise UnplayableState(f"the saved state {state.name} is of another ROM: save it again from this one")
    if state.emulator != EMULATOR:
        raise UnplayableState(
            f"{state.emulator} saved the state {state.name}, and this is {EMULATOR}: save it again with this version"
        )
