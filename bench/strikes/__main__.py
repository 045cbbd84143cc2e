"""How often each version of the option `strike` wins the fights of explored paths: `python -m bench.strikes`.

A try begins where the fight of a path begins, with other seeds and opening moves. It strikes at the enemies again and
again, with random detours, and is won when they are as weak as on the path. A run that imitates an archive is shown
such wins. The paths are those of docs/results/explored; `--path FILE` measures another one.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, get_args

from bench.harness.measure import ROOT, Figures, parser, report
from services.trainer.domain.backward import OPENING
from services.trainer.env.config import EnvConfig
from services.trainer.env.game_session import GameSession
from services.trainer.other_ways.courses import present_state
from services.trainer.other_ways.fights import Fight, FightMoment, fights_of, tries_of
from services.trainer.restarts.explored_path import ExploredPath
from shared.contracts.run import OptionsName
from shared.game.emulator.start import StartState, true_start

TRIES: Final = 64  # of each fight
VERSIONS: Final[tuple[OptionsName, ...]] = tuple(name for name in get_args(OptionsName) if name.startswith("strike/"))


def played(session: GameSession, found: ExploredPath) -> Iterator[int]:
    """Play the path; yield the number of each step before its action."""
    session.begin(true_start(session.game), found.seed)
    for step, action in enumerate(found.actions):
        yield step
        session.step(action)


def fight_starts(session: GameSession, found: ExploredPath) -> dict[Fight, StartState]:
    """The fights of a path, and where each begins. The path is played twice: its fights are known when it has ended."""
    fights = fights_of([FightMoment.of(session.state) for _ in played(session, found)])
    begins = {fight.begin for fight in fights}
    states = {
        step: replace(present_state(session, f"step {step}"), opening=OPENING)
        for step in played(session, found)
        if step in begins
    }
    return {fight: states[fight.begin] for fight in fights}


def wins(found: ExploredPath, options: OptionsName, tries: int) -> dict[Fight, list[int]]:
    """The health lost in each won try, in quarter hearts, of each fight."""
    plan = found.exploration
    config = EnvConfig.of(
        {
            "world": plan["world"],
            "seed": plan["seed"],
            "frame_skip": plan["rollout"]["frame_skip"],
            "options": options,
            "terminal_on_death": False,
            "episode_length": len(found.actions) + 1,
        }
    )
    session = GameSession(config)
    try:
        return {
            fight: [win.lost_health for win in islice(tries_of(session, fight, 0, start), tries) if win]
            for fight, start in fight_starts(session, found).items()
        }
    finally:
        session.close()


def main() -> None:
    """Measure and report."""
    command = parser(__doc__)
    command.add_argument("--path", type=Path, action="append", help="file of an explored path (may be repeated)")
    options: Any = command.parse_args()
    tries = TRIES // 8 if options.quick else TRIES
    figures: Figures = {}
    rows: list[tuple[str, str]] = []
    for path in options.path or sorted((ROOT / "docs/results/explored").glob("*.json")):
        found = ExploredPath.from_bytes(path.read_bytes())
        won = {version: wins(found, version, tries) for version in VERSIONS}
        for fight in won[VERSIONS[0]]:
            name = f"{path.stem}, room {fight.room[0]}/{fight.room[1]:#x}, step {fight.begin}"
            lost = {version: won[version][fight] for version in VERSIONS}
            figures |= {f"{version} {name}": len(lost[version]) / tries for version in VERSIONS}
            shares = [f"{len(losses)} ({losses.count(0)} unhurt)" for losses in lost.values()]
            rows.append((name, ", ".join(shares)))
    report(f"won of {tries} tries: {', '.join(VERSIONS)}", rows, figures, options.json)


if __name__ == "__main__":
    main()
