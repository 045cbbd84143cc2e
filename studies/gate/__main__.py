"""Entry point: `python -m studies.gate WORLD...` prints what a reward model pays for each milestone."""

import argparse
import asyncio
import sys
import time

import bramble
from shared.config.settings import LogSettings
from shared.telemetry.logging import setup_logging
from studies.gate.gate import LATER, GateResult, run_gate

EPISODES = {"garden": 16, "vale": 16, "wild": 16, "realm": 8}
"""Episodes of mixed play by kind of world; those of the realm are ten times as long."""


def main(argv: list[str]) -> int:
    """Run the gate on worlds; return 1 if a milestone is not paid permanently."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.gate",
        description="Train a reward model on judged play of a world, and print what its potential pays for each "
        "milestone of the solver's walk.",
    )
    parser.add_argument("worlds", nargs="+", metavar="WORLD", type=_world, help="garden, vale, realm or wild:SEED")
    parser.add_argument("--episodes", type=int, help="episodes of mixed play; the default depends on the world")
    parser.add_argument("--any-sign", action="store_true", help="train a network that is not monotone, to compare")
    options = parser.parse_args(argv)
    setup_logging("gate", LogSettings(level="warning"))
    failed = 0
    for world in options.worlds:
        began = time.perf_counter()
        episodes = options.episodes or EPISODES[world.partition(":")[0]]
        result = asyncio.run(run_gate(world, episodes, not options.any_sign))
        sys.stdout.write(table(result, time.perf_counter() - began) + "\n")
        sys.stdout.flush()
        failed += len(result.failed)
    return 1 if failed else 0


def _world(name: str) -> str:
    """The name of a world that exists."""
    try:
        bramble.world(name)
    except bramble.WorldError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return name


def table(result: GateResult, seconds: float) -> str:
    """The rises of one world as text."""
    card = result.card
    accuracy, linear = card.accuracy.confident, card.baselines.get("linear")
    lines = [
        f"{result.world}: {card.segments} judged segments of {card.episodes} episodes, held-out accuracy "
        f"{accuracy or 0:.3f} (linear {linear or 0:.3f}), {seconds:.0f} s",
        f"  {'milestone':24} {'step':>6} {'rise':>7} {f'{LATER} later':>9}  counters that rose",
    ]
    for rise in result.rises:
        verdict = "" if rise.passed else f": below {rise.least}"
        lines.append(
            f"  {rise.milestone:24} {rise.step:6d} {rise.rise:7.3f} {rise.later:9.3f}  {', '.join(rise.by)}{verdict}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
