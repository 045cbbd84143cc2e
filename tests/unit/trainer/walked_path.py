"""A part of a world's walk-through, played: its places, and the states at some of them."""

from bramble.solver.walkthrough import solve
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.executor.outcome import GameView, StepChooser
from services.trainer.other_ways.courses import present_state
from services.trainer.other_ways.recoveries import STRIDE
from services.trainer.other_ways.room_ways import RoomPlace, ways_of
from services.trainer.restarts.trajectory import Trajectory
from services.trainer.state_archive.cell import may_restart
from shared.contracts.run import RunConfig
from shared.game.emulator.start import StartState, true_start
from tests.unit.trainer.archived_play import played_path

GARDEN = EnvConfig.of_run(RunConfig(world="garden", frame_skip=4, difficulty="harmless"))
WALK = 400
"""Steps of the garden's walk-through that lead through several rooms."""


class Walked:
    """A walk of a world's walk-through: its places, and the state at some of them."""

    def __init__(self, config: EnvConfig, steps: int) -> None:
        self.actions = list(solve(config.world).actions[:steps])
        self.session = GameSession(config)
        self.session.begin(true_start(self.session.game), 1)
        self.places: dict[int, RoomPlace] = {}
        self.states: dict[int, StartState] = {}
        for step, action in enumerate(self.actions):
            if may_restart(self.session.state):
                self.places[step] = RoomPlace.of(GameView(self.session.state, self.session.image))
                if step % STRIDE == 0:
                    self.states[step] = self._here()
            self.session.step(action)
        self.end = self._here()
        self.ways = ways_of([one for _, one in sorted(self.places.items())])

    def at(self, step: int) -> StartState:
        """The state of the walk at this step."""
        self.session.begin(true_start(self.session.game), 1)
        for action in self.actions[:step]:
            self.session.step(action)
        return self._here()

    def lead(self, walker: StepChooser) -> set[tuple[int, int]]:
        """The rooms that the hero is in until the walker ends."""
        rooms = {self.session.state.key}
        while (action := walker.next(GameView(self.session.state, self.session.image))) is not None:
            self.session.step(action)
            rooms.add(self.session.state.key)
        return rooms

    @property
    def here(self) -> RoomPlace:
        """Where the hero stands now."""
        return RoomPlace.of(GameView(self.session.state, self.session.image))

    def _here(self) -> StartState:
        return present_state(self.session, "here")

    def trajectory(self) -> Trajectory:
        """The walk as a trajectory of an archive."""
        session = self.session
        session.begin(true_start(session.game), 1)
        for action in self.actions:
            session.step(action)
        return played_path(session)
