"""Cost of an environment step over the bare emulator, and of recording over a step: `python bench/env.py`.

All comparisons take turns within one run. `recording_over_not` is the worst of three stores: a local directory, a
server that answers after 50 ms, and one that is away; every finished segment is recorded. It is measured on Bramble,
whose steps are short; `recording_over_not_cpu_bound` is the same on the load ROM, whose frames take as long as those
of a commercial game. Both have one game, as env runners have by default; `recording_over_not_8` has eight of Bramble.

`p99_down_over_up` is what an absent store does to the slowest steps of a recorded game. `p99_down_over_not` compares
with a game that is not recorded at all: seven steps of 300 are drawn (2.3 %), so its p99 is that of a drawn step.
"""

import argparse
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

from bench.harness import recording
from bench.harness.games import GAMES
from bench.harness.measure import ROOT, Figures, interleave, parser, ratio, report
from bench.harness.recording import ACTIONS, SEGMENT
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import true_start
from shared.game.games.game import Game

CHUNK = SEGMENT  # steps of one turn
ROUNDS = 41
# Game, how many, key's ending, rounds over `ROUNDS`. The worst of three noisy figures is too low by nearly their error:
# the one that has a bar, 0.97, gets as many rounds as make that error a quarter of a per cent.
RECORDINGS = (("bramble", 1, "", 3), ("bramble", 8, "_8", 0.5), ("cpu_bound", 1, "_cpu_bound", 0.5))


@dataclass
class Playing:
    """A game session with random actions; a call plays `CHUNK` steps and returns steps per second."""

    session: GameSession
    clock: Callable[[], float] = time.process_time
    rng: random.Random = field(default_factory=lambda: random.Random(0))

    def __post_init__(self) -> None:
        self.session.reset()

    def __call__(self) -> float:
        actions = [self.rng.randrange(ACTIONS) for _ in range(CHUNK)]
        session, began = self.session, self.clock()
        for action in actions:
            if session.step(action).report is not None:
                session.reset()
        return CHUNK / (self.clock() - began)


def raw(game: Game, skip: int) -> Callable[[], float]:
    """The emulator alone with the same kind of actions: `skip` frames a step, steps per CPU second."""
    emulator = Emulator(game)
    emulator.load(true_start(game).state)
    rng = random.Random(0)

    def job() -> float:
        actions = [rng.randrange(ACTIONS) for _ in range(CHUNK)]
        began = time.process_time()
        for action in actions:
            emulator.step(action, skip)
        return CHUNK / (time.process_time() - began)

    return job


def over_raw(game: Game, skip: int, rounds: int) -> tuple[float, float, float]:
    """Environment steps over raw steps (ratio of rates), and both rates."""
    config = EnvConfig(frame_skip=skip)
    jobs: dict[str, Callable[[], float]] = {"env": Playing(GameSession(config, game=game)), "raw": raw(game, skip)}
    rates = interleave(jobs, rounds)
    return ratio(rates["env"], rates["raw"]), statistics.median(rates["env"]), statistics.median(rates["raw"])


def processes(count: int) -> float:
    """Steps per second of `count` independent processes together: the gain of a second core."""
    command = [sys.executable, __file__, "--alone"]
    running = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return sum(float(process.communicate()[0]) for process in running)


def alone() -> None:
    """Play for five seconds of wall time and print the rate: one process of `processes`."""
    playing = Playing(GameSession(EnvConfig(), game=GAMES["bramble"]()), time.perf_counter)
    playing()
    began, turns = time.perf_counter(), 0
    while time.perf_counter() - began < 5:
        playing()
        turns += 1
    sys.stdout.write(f"{turns * CHUNK / (time.perf_counter() - began)}\n")


def main() -> None:
    """Measure and report."""
    command = parser(__doc__)
    command.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)  # a process of `processes`
    options = command.parse_args()
    if options.alone:
        alone()
        return
    rounds = 5 if options.quick else ROUNDS
    games = {name: opened() for name, opened in GAMES.items()}
    rows: list[tuple[str, str]] = []
    figures: Figures = {}
    for name, game in games.items():
        for skip in (4, 24):
            share, env, bare = over_raw(game, skip, rounds if skip == 4 else max(rounds // 4, 3))
            figures[f"env_over_raw_{name}" + ("" if skip == 4 else f"_{skip}")] = share
            rows.append((f"{name}, frame_skip {skip}", f"{env:7,.0f} of {bare:7,.0f} steps/s of CPU time: {share:.3f}"))
    for name, envs, suffix, times in RECORDINGS:
        if options.quick:
            more_rows, more = recording.measure(name, 2, envs, processes=1)
        else:
            more_rows, more = recording.measure(name, int(rounds * times), envs)
        rows += [(f"{name}, {'one game' if envs == 1 else f'{envs} games'}, {row}", text) for row, text in more_rows]
        figures |= {f"{key}{suffix}": value for key, value in more.items()}
    one, two = processes(1), processes(2)
    rows.append(("two processes over one", f"{two:,.0f} over {one:,.0f} steps/s: {two / one:.2f}"))
    report("Environment", rows, {**figures, "two_processes_over_one": two / one}, options.json)


if __name__ == "__main__":
    main()
