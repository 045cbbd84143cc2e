"""What recording costs a step: the recording part of `python bench/env.py`.

The environment is the one that env runners step, with one game (what runs have by default) or several. The same
emulators play every turn, because two of them in one process differ by some per cent merely by where their memory
lies. In a round they play the same course (start, seeds, actions) once for each store and twice without recording, in
a random order: recording is compared with both; comparing these two with each other shows the noise. The first
segments of a turn are not timed: in a running system, the writer is always busy with earlier ones.
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import structlog

from bench.harness.games import GAMES
from bench.harness.measure import ROOT, Figures, ratio, ratio_within
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import EpisodeRecorder
from services.trainer.env.vector import ZeldaVectorEnv
from services.trainer.recording.config import RecordingConfig
from services.trainer.recording.recorder import RunnerRecorder
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId
from shared.contracts.run import SamplingConfig
from shared.game.emulator.start import StartState
from shared.game.games.game import Game

SEGMENT = 300  # steps
SEGMENTS = 8  # timed in each turn at least, after as many that are not
ACTIONS = 7  # without START, which opens the menu and then measures a menu
PLACES = 8  # of random play, from which the turns begin
REMOTE_S = 0.05
PATIENCE_S = 5.0
EPISODES_A_TURN = 100  # the player may die; its next episode must not have the number of another turn
PLAIN, CONTROL = "not recording", "not recording, again"
PROCESSES = 8


@contextmanager
def stores() -> Iterator[dict[str, dict[str, Any]]]:
    """Settings of the three stores, with the slow server running meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        secret = Path(folder) / "secret"
        secret.write_text("bench")
        keys = {"access_key_file": secret, "secret_key_file": secret}
        server = subprocess.Popen(
            [sys.executable, "-m", "bench.harness.slow_store", str(REMOTE_S)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        port = server.stdout.readline().strip() if server.stdout else ""
        try:
            yield {
                "local": {"url": f"file://{folder}"},
                "remote 50 ms": {"url": "s3://bench", "endpoint": f"http://127.0.0.1:{port}", **keys},
                "down": {"url": "s3://bench", "endpoint": "http://127.0.0.1:9", **keys},
            }
        finally:
            server.kill()
            server.wait()


def recorder(store: dict[str, Any]) -> RunnerRecorder:
    """A recorder that keeps every segment in `store`."""
    recording = RecordingConfig(
        run=RunId("bench"),
        epoch=0,
        store=StoreSettings.model_validate(store),
        sampling=SamplingConfig(share=1.0, budget=100_000),
        epoch_steps=1_000_000,
    )
    return RunnerRecorder(EnvConfig(), recording)


def places(env: ZeldaVectorEnv) -> list[StartState]:
    """Where random play comes to, as saved states."""
    found = []
    env.reset()
    for number in range(PLACES):
        found.append(StartState(f"place-{number}", env.sessions[0].emulator.save()))
        play(env, number, 5 * SEGMENT)
    return found


def play(env: ZeldaVectorEnv, seed: int, steps: int) -> list[float]:
    """Random play; the time of each step in microseconds. It costs half a microsecond a step to take it."""
    now, times = time.perf_counter, []
    for actions in np.random.default_rng(seed).integers(ACTIONS, size=(steps, env.num_envs)):
        start = now()
        env.step(actions)
        times.append((now() - start) * 1e6)
    return times


@dataclass
class RecordingVariant:
    """One store to record to, or none, and the measured turns. The first turn warms up: its steps are not kept."""

    recorders: Sequence[EpisodeRecorder | None]
    recorder: RunnerRecorder | None = None
    rates: list[float] = field(default_factory=list)
    steps_us: list[float] = field(default_factory=list)

    def turn(self, env: ZeldaVectorEnv, number: int) -> None:
        """One turn on the course of that number."""
        for session, recorder in zip(env.sessions, self.recorders, strict=True):
            session.recording = recorder
            session.skip_to(number * EPISODES_A_TURN)
        env.reset()
        steps = SEGMENT * max(1, SEGMENTS // env.num_envs)
        play(env, 2 * number, steps)
        times = play(env, 2 * number + 1, steps)
        if self.rates:
            self.steps_us += times
        self.rates.append(1e6 * len(times) * env.num_envs / sum(times))
        self._wait()

    def _wait(self) -> None:
        """Wait until the writer is done, so that it does not slow the next turn. Do not wait for an absent store."""
        end = time.perf_counter() + PATIENCE_S
        while self.recorder is not None and not self.recorder.dropped and time.perf_counter() < end:
            if not self.recorder.pending:
                return
            time.sleep(0.001)


@dataclass(frozen=True, slots=True)
class VariantResult:
    """Measurements of one variant in one process."""

    rates: list[float]
    p99_us: float
    kept: int
    dropped: int

    @classmethod
    def of(cls, one: RecordingVariant) -> Self:
        """The first round has warmed up: its rate does not count, nor do its steps, which the variant did not keep."""
        recorder = one.recorder
        kept, dropped = (0, 0) if recorder is None else (len(recorder.written()), recorder.dropped)
        return cls(one.rates[1:], statistics.quantiles(one.steps_us, n=100)[98], kept, dropped)


def variant_results(game: Game, rounds: int, envs: int) -> dict[str, VariantResult]:
    """Play `rounds` rounds of `envs` games in this process."""
    with stores() as where:
        env = ZeldaVectorEnv(EnvConfig(num_envs=envs), game=game)
        begin_at = places(env)
        recorders = {name: recorder(store) for name, store in where.items()}
        variants = {name: RecordingVariant([None] * envs) for name in (PLAIN, CONTROL)}
        variants |= {
            name: RecordingVariant([one.for_env(n) for n in range(envs)], one) for name, one in recorders.items()
        }
        order = list(variants.values())
        for number in range(rounds + 1):
            env.set_starts([begin_at[number % PLACES]])
            random.shuffle(order)
            for variant in order:
                variant.turn(env, number)
        for one in recorders.values():
            one.close(patience_s=0.5)
        return {name: VariantResult.of(one) for name, one in variants.items()}


def measure(game: str, rounds: int, envs: int, processes: int = PROCESSES) -> tuple[list[tuple[str, str]], Figures]:
    """Steps per second of wall time with each store over those without recording: table rows and figures.

    `game` is a name in `GAMES`, `envs` how many of it each process plays. In several processes one after the other:
    where its memory lies makes one of them slower than the next by half a per cent, for all of its life.
    """
    command = [sys.executable, "-m", "bench.harness.recording", game, str(max(rounds // processes, 2)), str(envs)]
    found: dict[str, list[VariantResult]] = {}
    for _ in range(processes):
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        for name, one in json.loads(done.stdout).items():
            found.setdefault(name, []).append(VariantResult(**one))
    return table(found)


def table(found: dict[str, list[VariantResult]]) -> tuple[list[tuple[str, str]], Figures]:
    """Rows and figures of what was measured."""
    rates = {name: [rate for one in several for rate in one.rates] for name, several in found.items()}
    p99 = {name: statistics.median(one.p99_us for one in several) for name, several in found.items()}
    both = [statistics.mean(pair) for pair in zip(rates[PLAIN], rates[CONTROL], strict=True)]
    shares = {name: ratio(rates[name], both) for name in found}
    rows, figures = [], {}
    for name, several in found.items():
        low, high = ratio_within(rates[name], both)
        text = f"{shares[name]:.3f} ({low:.3f} to {high:.3f}) of the steps/s, p99 {p99[name]:.0f} us"
        if name in (PLAIN, CONTROL):
            rows.append((name, text))
            continue
        kept, dropped = sum(one.kept for one in several), sum(one.dropped for one in several)
        rows.append((f"recording, store {name}", f"{text}; {kept} segments kept, {dropped} dropped"))
        figures[f"recording_{name.split()[0]}"] = shares[name]
    return rows, {
        **figures,
        "recording_over_not": min(figures.values()),
        "not_recording_again": ratio(rates[CONTROL], rates[PLAIN]),
        "p99_down_over_up": p99["down"] / p99["local"],
        "p99_down_over_not": p99["down"] / p99[PLAIN],
    }


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # stdout carries the results
    name, rounds, envs = sys.argv[1:]
    found = variant_results(GAMES[name](), int(rounds), int(envs))
    json.dump({key: asdict(one) for key, one in found.items()}, sys.stdout)
