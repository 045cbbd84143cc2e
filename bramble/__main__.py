"""Command line of Bramble: `python -m bramble build|play|solve|shots|study|engine`."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import bramble
from bramble.worlds.model import DIFFICULTIES


def _print_line(text: str) -> None:
    sys.stdout.write(text + "\n")


def _build(options: argparse.Namespace) -> None:
    path = options.out or Path(f"{options.world.replace(':', '-')}.gbc")
    path.write_bytes(bramble.build(options.world, options.difficulty, options.seed, options.torn))
    _print_line(f"{path}: {path.stat().st_size} bytes")


def _play(options: argparse.Namespace) -> None:
    from bramble.emulator import BrambleEmulator

    _print_line("arrows walk, A is a, B is s, START is return; close the window to end")
    with BrambleEmulator(bramble.build(options.world, options.difficulty, options.seed), window="SDL2") as game:
        while game.pyboy.tick():
            pass


def _solve(options: argparse.Namespace) -> None:
    from bramble.solver.walkthrough import solve
    from bramble.tools.video import VideoWriter

    film = VideoWriter(options.video) if options.video else None
    try:
        walk = solve(options.world, options.seed, film)
    finally:
        if film is not None:
            film.close()
    for name, step in walk.milestones.items():
        _print_line(f"{step:6d}  {name}")
    _print_line(f"finished {walk.steps}")


def _shots(options: argparse.Namespace) -> None:
    from bramble.tools.video import contact_sheet

    path = options.out or Path("docs/images") / f"bramble-{options.world.replace(':', '-')}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    _print_line(f"{contact_sheet(options.world, path)} rooms in {path}")


def _study(options: argparse.Namespace) -> None:
    from bramble.tools.difficulty import report, study

    _print_line(report(study(options.world, options.steps, options.seeds)))


def _engine(options: argparse.Namespace) -> None:
    from bramble.engine.compile import write_engine

    _print_line(write_engine())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bramble", description=__doc__)
    commands = parser.add_subparsers(required=True)

    def add(
        name: str, action: Callable[[argparse.Namespace], None], text: str, world: bool = True, seed: bool = False
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, allow_abbrev=False)
        command.set_defaults(action=action)
        if world:
            command.add_argument("world", nargs="?", default="vale", help=f"{', '.join(bramble.worlds())} or wild:SEED")
        if seed:
            command.add_argument("--seed", type=int, default=0, help="start value of the game's random generator")
        return command

    build = add("build", _build, "write the ROM of a world", seed=True)
    play = add("play", _play, "play in a window", seed=True)
    for command in (build, play):
        command.add_argument("--difficulty", choices=DIFFICULTIES, default="normal")
    build.add_argument("--torn", action="store_true", help="update while the picture is drawn, to test readers of RAM")
    build.add_argument("--out", type=Path)
    solve = add("solve", _solve, "finish a world with the solver", seed=True)
    solve.add_argument("--video", type=Path, help="write an MP4")
    add("shots", _shots, "write a contact sheet of all rooms").add_argument("--out", type=Path)
    study = add("study", _study, "compare random play with the walk-through")
    study.add_argument("--steps", type=int, default=10_000)
    study.add_argument("--seeds", type=int, default=5)
    add("engine", _engine, "build the engine from C (needs sdcc)", world=False)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. A known error prints one sentence to stderr; the exit code is 1."""
    from bramble.engine.compile import BuildError
    from bramble.solver.walker import StuckError

    options = _parser().parse_args(arguments)
    try:
        options.action(options)
    except (bramble.WorldError, BuildError, StuckError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
