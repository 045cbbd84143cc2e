"""`python -m services.trainer.env play --world vale`: print decoded states of a game in play."""

import argparse
import sys
from pathlib import Path


def main() -> int:
    """Read the arguments, then import the heavy modules."""
    parser = argparse.ArgumentParser(prog="python -m services.trainer.env", description=__doc__)
    play = parser.add_subparsers(required=True, dest="command").add_parser("play", help="print a state each second")
    play.add_argument("--game", default="bramble", help="bramble or oracle-of-seasons")
    play.add_argument("--world", default="vale", help="garden, vale, realm or wild:SEED")
    play.add_argument("--rom", type=Path, help="your own ROM image, for games that need one")
    play.add_argument("--state", type=Path, help="saved state to begin at")
    play.add_argument("--by", choices=("chance", "person"), default="chance", help="who plays; a person gets a window")
    play.add_argument("--seconds", type=int, default=60, help="seconds of the game")
    play.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from services.trainer.env.play import watch

    return watch(options, sys.stdout)


if __name__ == "__main__":
    raise SystemExit(main())
