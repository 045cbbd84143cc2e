"""Detects dialog, puzzle, stuck, loop and death from the game's states. What flickers is smoothed over three steps.

Facts for rewards, reports and judges; the policy sees the state itself. Pure: states in, facts out.
"""

from collections import deque
from typing import Final

from shared.game.decoding.state import GameState, Scene

HYSTERESIS: Final = 3  # steps a value must hold before it counts; with fewer, a flicker ends a dialog
STUCK_AFTER: Final = 120  # steps without leaving a tile; with fewer, waiting for an enemy looks stuck
LOOP_WINDOW: Final = 40  # tile changes checked for loops
LOOP_CELLS: Final = 6  # at most this many different cells in the window mean walking in circles


class Hysteresis:
    """A truth value that changes only after `steps` equal readings in a row."""

    __slots__ = ("_count", "_steps", "value")

    def __init__(self, steps: int = HYSTERESIS) -> None:
        self._steps, self._count = steps, 0
        self.value = False

    @property
    def settled(self) -> bool:
        """Whether the same reading again would change nothing."""
        return self._count == 0

    def update(self, reading: bool) -> bool:
        """Take one reading and return the smoothed value."""
        self._count = 0 if reading == self.value else self._count + 1
        if self._count >= self._steps:
            self.value, self._count = reading, 0
        return self.value


class Detectors:
    """The detectors of one episode. `puzzle_gain` counts what was solved in the last step.

    `deaths` counts the hero's deaths in the episode. `died` is true in the first step of a death only, not in those
    until the hero can go on.
    """

    def __init__(self, state: GameState) -> None:
        self._dialog, self._puzzle = Hysteresis(), Hysteresis()
        self._cells: deque[tuple[int, int, int, int]] = deque(maxlen=LOOP_WINDOW)
        self._counts: dict[tuple[int, int, int, int], int] = {}
        self._same = 0
        self._scene: Scene | None = None
        self._column = self._row = -1
        self._pressed: set[tuple[int, int, int]] = set()
        self._counted, self._dead = state.inventory.deaths, False
        self.puzzle_gain = self.deaths = 0
        self.dialog = self.puzzle = self.stuck = self.loop = self.died = False

    def step(self, previous: GameState, state: GameState) -> None:
        """Compare two consecutive states."""
        self.puzzle_gain, self.died = 0, False
        if state.scene is not self._scene:
            self._update_scene(previous, state)
        if state.scene is not previous.scene or state.dying or self._dead:
            self._update_death(state)
        if state.control:
            column, row = state.x >> 4, state.y >> 4
            if column == self._column and row == self._row:
                self._same += 1
            else:
                self._move_to(state, column, row)
        self.stuck = state.control and self._same >= STUCK_AFTER

    def _update_scene(self, previous: GameState, state: GameState) -> None:
        """Update after a change of scene, or until a flickering value has settled."""
        dialog, puzzle = self._dialog, self._puzzle
        self.dialog = dialog.update(state.dialog is not None)
        self.puzzle = puzzle.update(in_puzzle(state))
        if previous.progress is not state.progress or previous.puzzle is not state.puzzle:
            self.puzzle_gain = self._puzzles_solved(previous, state)
        # Repeat until the same scene would change nothing.
        self._scene = state.scene if dialog.settled and puzzle.settled else None
        if previous.scene is not state.scene:
            self._column = -1  # the same tile of another room is another place

    def _update_death(self, state: GameState) -> None:
        """Notice a death once: when the hero begins to die, or when the game counts it; some games do so later."""
        dead = state.died_since(self._counted)
        self.died, self._dead = dead and not self._dead, dead
        if self.died:
            self.deaths += 1
            self._counted = None if self._counted is None else self._counted + 1

    def _move_to(self, state: GameState, column: int, row: int) -> None:
        self._column, self._row = column, row
        cell = (state.group, state.room, column, row)
        cells, counts = self._cells, self._counts
        if cells and cells[-1] == cell:
            self._same += 1
            return
        self._same = 0
        if len(cells) == LOOP_WINDOW:
            oldest = cells[0]
            counts[oldest] -= 1
            if not counts[oldest]:
                del counts[oldest]
        cells.append(cell)
        counts[cell] = counts.get(cell, 0) + 1
        self.loop = len(cells) == LOOP_WINDOW and len(counts) <= LOOP_CELLS

    def _puzzles_solved(self, previous: GameState, state: GameState) -> int:
        """Number of puzzles solved: things opened permanently, and buttons pressed for the first time."""
        old, new = previous.progress, state.progress
        gain = 0
        if old is not new:
            gain = max(new.doors_opened - old.doors_opened, 0) + max(new.events - old.events, 0)
        if previous.key == state.key:
            pressed = (state.puzzle.triggers or 0) & ~(previous.puzzle.triggers or 0)
            if pressed and (mark := (*state.key, pressed)) not in self._pressed:
                self._pressed.add(mark)
                gain += 1
        return gain


def in_puzzle(state: GameState) -> bool:
    """Whether the hero works on a puzzle: pushes, holds a button down, or makes a block slide."""
    puzzle = state.puzzle
    pushing = puzzle.push is not None and 0 < puzzle.push < 20
    return pushing or bool(puzzle.triggers) or bool(puzzle.sliding)
