"""Runs the policy's options in one environment: one choice is carried out to the option's end.

Sutton, Precup, Singh 1999: an option is a closed loop of actions with a beginning and an end of its own. While one
runs, the policy's further choices have no effect; in the step in which it has ended, the policy chooses again.
"""

from collections import Counter

from services.trainer.executor.outcome import WAIT, GameView
from services.trainer.options.option_sets import OPTIONS, RunningOption
from shared.contracts.run import OptionsName
from shared.game.decoding.names import ACTIONS
from shared.game.decoding.state import GameState
from shared.game.recording.segment import OPTION, POLICY


class OptionRunner:
    """An ActionSource: turns choices into actions; see `GameSession.takeover`."""

    def __init__(self, options: OptionsName) -> None:
        self._options = OPTIONS[options]
        self.begin()

    def begin(self) -> None:
        """An episode begins: no option runs, and the counts start again."""
        self.actor, self._decided = POLICY, True
        self.outcomes: Counter[str] = Counter()
        self.steps = self.option_steps = self.begun = 0
        self._running: RunningOption | None = None

    def holds(self, state: GameState, image: bytes) -> bool:
        """Never: an option waits for no model."""
        return False

    def choose(self, state: GameState, image: bytes, action: int) -> int:
        """Return the next action of the running option; without one, `action`, or the first of the option it names."""
        self.steps += 1
        view = GameView(state, image)
        chosen = self._advance(view)
        self._decided = chosen is None
        if chosen is None:
            chosen = action if action < len(ACTIONS) else self._start(action, view)
        self.actor = OPTION if not self._decided or action >= len(ACTIONS) else POLICY
        self.option_steps += self.actor == OPTION
        return chosen

    @property
    def decided(self) -> bool:
        """See ActionSource."""
        return self._decided

    def facts(self) -> dict[str, float]:
        """The episode's figures so far, for its summary."""
        return {
            "options_begun": float(self.begun),
            "options_done": float(self.outcomes["done"]),
            "options_impossible": float(self.outcomes["impossible"]),
            "option_steps_share": self.option_steps / max(1, self.steps),
        }

    def _start(self, choice: int, view: GameView) -> int:
        """Begin the option of a choice. One that is impossible here is a single step of waiting."""
        self.begun += 1
        self._running = self._options[choice - len(ACTIONS)].begin(view)
        if self._running is not None:
            action = self._advance(view)
            if action is not None:
                return action
        else:
            self.outcomes["impossible"] += 1
        return WAIT

    def _advance(self, view: GameView) -> int | None:
        """The running option's next action; None without one, and when it has ended."""
        if self._running is None:
            return None
        action = self._running.next(view)
        if action is None:
            self.outcomes[self._running.outcome] += 1
            self._running = None
        return action
