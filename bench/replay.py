"""Replays a thousand recorded segments in another process and compares RAM hashes: `python bench/replay.py [--quick]`.

`--assisted` records play that begins in a room with an open puzzle, where rules take over, and counts only segments in
which they did.
`--verify DIR` only replays the segments of a directory store.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `python bench/x.py` starts without it

from bench.assisted_play.open_puzzle import beside_the_button
from bench.harness.measure import parser, report
from bramble.registration import bramble_game
from services.trainer.env.config import EnvConfig
from services.trainer.env.vector import ZeldaVectorEnv
from services.trainer.planning.assembly import takeover_for
from services.trainer.planning.rules_planner import RulesPlanner
from services.trainer.recording.config import RecordingConfig
from services.trainer.recording.recorder import RunnerRecorder
from shared.config.settings import StoreSettings
from shared.contracts.ids import RunId
from shared.contracts.run import PlannerConfig, RunConfig, SamplingConfig
from shared.game.emulator.emulator import Emulator
from shared.game.errors import ReplayMismatch
from shared.game.recording.replay import verify
from shared.game.recording.segment import PLANNER, read_segment

SEGMENTS, ENVS, STEPS, EPISODE = 1_000, 4, 300, 900
WORLDS = ("vale", "garden")  # of plain and of assisted play
ASSISTED_STEPS = 100  # of a segment and an episode: in each, planner and policy act
RULES = PlannerConfig(mode="rules")


def record(folder: Path, segments: int, assisted: bool) -> int:
    """Play at random until at least `segments` are in the store. Returns the number of dropped segments."""
    steps = ASSISTED_STEPS if assisted else STEPS
    recording = RecordingConfig(
        run=RunId("replay"),
        epoch=0,
        store=StoreSettings(url=f"file://{folder}"),
        sampling=SamplingConfig(share=1.0, budget=100_000),
        epoch_steps=3_000_000,
        slots=256,
    )
    episode = steps if assisted else EPISODE  # every assisted episode begins with a takeover
    config = EnvConfig(world=WORLDS[assisted], num_envs=ENVS, segment_steps=steps, episode_length=episode)
    recorder = RunnerRecorder(config, recording)
    vector = ZeldaVectorEnv(config, recorder=recorder)
    for session in vector.sessions if assisted else ():
        session.takeover = takeover_for(RunConfig(planner=RULES), session.game, RulesPlanner())
    vector.reset()
    if assisted:
        vector.set_starts([beside_the_button(vector.sessions[0])])
        vector.reset()
    rng = np.random.default_rng(0)
    written = 0
    while written + recorder.dropped < segments:
        for _ in range(STEPS):
            vector.step(rng.integers(0, 8, ENVS))
        written += sum(not assisted or has_takeover(folder / ref.key) for ref in recorder.written())
    recorder.close(120)
    vector.close()
    return recorder.dropped


def has_takeover(archive: Path) -> bool:
    """Whether a planner acted in a step of this archive."""
    actors = read_segment(archive.read_bytes()).actors
    return actors is not None and PLANNER in actors


def verify_all(folder: Path) -> tuple[int, int]:
    """Replay every archive under a directory. Returns the numbers of equal and of all archives.

    If a planner acted in any of them, only those in which it did count.
    """
    archives = sorted(folder.rglob("*.zip"))
    with_takeover = [archive for archive in archives if has_takeover(archive)]
    emulator = Emulator(bramble_game(WORLDS[bool(with_takeover)]))
    equal, archives = 0, with_takeover or archives
    for archive in archives:
        try:
            verify(read_segment(archive.read_bytes()), emulator)
            equal += 1
        except ReplayMismatch as error:
            sys.stderr.write(f"{archive.name}: {error}\n")
    return equal, len(archives)


def _options() -> argparse.Namespace:
    command = parser(__doc__)
    command.add_argument("--assisted", action="store_true", help="segments in which a planner acted")
    command.add_argument("--verify", type=Path, metavar="DIR", help="only replay the segments of this directory store")
    return command.parse_args()


def main() -> None:
    """Record here, replay in another process, report."""
    options = _options()
    if options.verify:
        equal, total = verify_all(options.verify)
        sys.stdout.write(f"{equal} of {total} segments replay to equal RAM hashes\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        dropped = record(Path(folder), 40 if options.quick else SEGMENTS, options.assisted)
        began = time.perf_counter()
        command = [sys.executable, "-W", "ignore", __file__, "--verify", folder]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        seconds = time.perf_counter() - began
    equal, total = (int(word) for word in answer.split()[0:3:2])
    rows = [
        ("replay", answer),
        ("dropped while recording", str(dropped)),
        ("seconds to record", f"{began - started:.0f}"),
    ]
    rows.append(("seconds to replay", f"{seconds:.0f}"))
    report("Replay", rows, {"segments": total, "segments_equal": equal}, options.json)


if __name__ == "__main__":
    main()
