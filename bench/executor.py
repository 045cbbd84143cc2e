"""How surely MOVE_TO arrives: random walks to reachable tiles of random rooms: `python bench/executor.py`.

The shortest walks come from a search over positions (harness/reachable.py). Where enemies hurt (`--difficulty normal`),
a walk that ends because health dropped counts as not done. Targets that cannot be reached must be refused, and quickly.
"""

import random
import statistics
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

import bramble
from bench.harness.measure import parser, report
from bench.harness.reachable import Tile, steps_to_tiles
from bramble.registration import bramble_game
from bramble.worlds.model import Room, RoomId, World
from services.trainer.executor.executor import Executor
from services.trainer.executor.macros import MoveTo
from services.trainer.executor.outcome import GameView
from shared.game.decoding.decoder import Decoder
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import begin_episode, true_start
from shared.game.ram import offsets
from shared.game.ram.variables import entries
from studies.plans.placing import FLOOR, warp

WORLDS = ("vale", "realm", *(f"wild:{seed}" for seed in range(20)))
WALKS, PER_ROOM, ARRIVAL = 10_000, 5, 200


@dataclass
class Tally:
    """What was measured."""

    outcomes: Counter[str] = field(default_factory=Counter)
    details: Counter[str] = field(default_factory=Counter)
    steps: list[int] = field(default_factory=list)
    shortest: list[int] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    wrongly_accepted: int = 0


class PlacedHero:
    """A running world in which the hero can be put anywhere."""

    def __init__(self, world: str, difficulty: str, rng: random.Random) -> None:
        self.world: World = bramble.world(world)
        game = bramble_game(world, difficulty)
        self.emulator, self.decoder, self.rng = Emulator(game), Decoder(game.capabilities), rng
        begin_episode(self.emulator, true_start(game).state, 1, "actions/v2")
        self.view = self._look(True)
        self.rooms = sorted(self.world.rooms)

    def _look(self, first: bool = False) -> GameView:
        image, fresh = self.emulator.take()
        state = self.decoder.begin(image) if first else self.decoder.decode(image, fresh)
        return GameView(state, image)

    def step(self, action: int) -> None:
        """Make one step of four frames."""
        self.emulator.step(action, 4)
        self.view = self._look()

    def put(self) -> Room | None:
        """Put the hero on a free tile of a random room; None where the game does not let him stand."""
        room_id: RoomId = self.rng.choice(self.rooms)
        room = self.world.rooms[room_id]
        free = [(c, r) for r, row in enumerate(room.rows) for c, letter in enumerate(row) if letter in FLOOR]
        if not free:
            return None
        column, row = self.rng.choice(free)
        warp(self.emulator, (room_id.group, room_id.room), (column, row))
        self.heal()
        for waited in range(ARRIVAL):
            self.step(5 if self.view.state.dialog and waited % 2 else 0)
            state = self.view.state
            if state.control and state.dialog is None and state.key == (room_id.group, room_id.room):
                return room if waited > 3 else None
        return None

    def heal(self) -> None:
        """Fill the hero's health: one walk must not decide the next one."""
        self.emulator.poke(entries()["health"].address, self.view.image[offsets.MAX_HEALTH])


def measure(walker: PlacedHero, walks: int, tally: Tally) -> None:
    """Walk `walks` times in random rooms of one world."""
    done = 0
    while done < walks:
        room = walker.put()
        if room is None:
            continue
        warps = {obj.cell for obj in room.of_kind("warp")}
        for _ in range(PER_ROOM):
            known = _reachable(walker, warps)
            targets = sorted(set(known) - {walker.view.standing})
            if done >= walks or not targets or walker.view.state.key != (room.room_id.group, room.room_id.room):
                break
            _refuse(walker, known, tally)
            target = walker.rng.choice(targets)
            _walk(walker, target, known[target], tally)
            done += 1


def _reachable(walker: PlacedHero, warps: set[Tile]) -> dict[Tile, int]:
    state = walker.view.state
    return steps_to_tiles(state.grid.source, state.x, state.y, warps) if state.control else {}


def _walk(walker: PlacedHero, target: Tile, shortest: int, tally: Tally) -> None:
    walker.heal()
    walker.step(0)
    executor = Executor(MoveTo(target), walker.view)
    while (action := executor.next(walker.view)) is not None:
        walker.step(action)
    if executor.result is None:
        raise RuntimeError("a macro ended without a result")
    tally.outcomes[executor.result.outcome] += 1
    if executor.result.outcome == "done":
        tally.steps.append(executor.result.steps)
        tally.shortest.append(shortest)
    else:
        state = walker.view.state
        where = f"{walker.world.title} {state.group}:{state.room:02x}"
        tally.details[f"{executor.result.outcome} in {where}: {executor.result.detail} (to {target})"] += 1


def _refuse(walker: PlacedHero, known: dict[Tile, int], tally: Tally) -> None:
    """Ask for a solid tile: the answer must come with the first step."""
    grid = walker.view.state.grid
    solid = [(c, r) for c in range(10) for r in range(8) if (c, r) not in known and grid.rows[2 * r][2 * c] == 1]
    if not solid:
        return
    executor = Executor(MoveTo(walker.rng.choice(solid)), walker.view)
    began = time.thread_time()
    action = executor.next(walker.view)
    tally.refused.append((time.thread_time() - began) * 1000)
    tally.wrongly_accepted += action is not None


def main() -> None:
    """Measure and report."""
    options = parser(__doc__)
    options.add_argument("--walks", type=int, default=WALKS, help="walks over all worlds together")
    options.add_argument("--difficulty", default="harmless", choices=("harmless", "normal", "harsh"))
    options.add_argument("--failures", type=int, default=10, help="failed walks to show")
    chosen = options.parse_args()
    walks = chosen.walks // 20 if chosen.quick else chosen.walks
    tally, rng = Tally(), random.Random(1)
    for number, world in enumerate(WORLDS):
        share = walks // len(WORLDS) + (number < walks % len(WORLDS))
        walker = PlacedHero(world, chosen.difficulty, rng)
        measure(walker, share, tally)
        walker.emulator.close()
    figures = _figures(tally)
    rows = [(f"ended as {name}", f"{count:8,d}") for name, count in tally.outcomes.most_common()]
    report(f"MOVE_TO in {len(WORLDS)} worlds, {chosen.difficulty}", rows, figures, chosen.json)
    for detail, count in tally.details.most_common(chosen.failures):
        sys.stdout.write(f"  {count} x {detail}\n")


def _figures(tally: Tally) -> dict[str, float]:
    walks = sum(tally.outcomes.values())
    longer = [steps / max(best, 1) for steps, best in zip(tally.steps, tally.shortest, strict=True)]
    unhurt = walks - tally.outcomes["hp_drop"]
    refused = sorted(tally.refused)
    return {
        "walks": float(walks),
        "done_share": tally.outcomes["done"] / walks,
        "done_share_of_unhurt": tally.outcomes["done"] / max(unhurt, 1),
        "steps_over_shortest": sum(tally.steps) / max(sum(tally.shortest), 1),
        "steps_over_shortest_median": statistics.median(longer),
        "walks_within_10_percent_or_2_steps": statistics.fmean(
            steps <= max(best * 1.1, best + 2) for steps, best in zip(tally.steps, tally.shortest, strict=True)
        ),
        "refusals": float(len(refused)),
        "refusal_ms_median": statistics.median(refused),
        "refusal_ms_99th": refused[int(len(refused) * 0.99)],
        "refusal_ms_longest": refused[-1],
        "wrongly_accepted": float(tally.wrongly_accepted),
    }


if __name__ == "__main__":
    main()
