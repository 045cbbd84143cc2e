"""Prints decoded states each second while a person or a random policy plays: to check a RAM map by eye."""

import argparse
import random
from typing import Final, TextIO

from bramble.registration import BRAMBLE
from services.trainer.games import GAMES
from shared.errors import Permanent, ZeldaError
from shared.game.decoding.decoder import Decoder
from shared.game.decoding.names import ACTIONS, DIRECTIONS, GROUP_AREAS
from shared.game.decoding.state import GameState
from shared.game.emulator.emulator import Emulator
from shared.game.emulator.start import StartState, begin_episode, true_start
from shared.game.games.game import Game
from shared.game.games.registry import GameRequest
from shared.game.recording.state_rows import events

STEPS_A_SECOND: Final = 15
SKIP: Final = 4
HOLD: Final = 4  # steps for which the random policy holds a button; with fewer it walks on the spot
WITHOUT_START: Final = len(ACTIONS) - 1


def watch(options: argparse.Namespace, out: TextIO) -> int:
    """Play and print. Return 0, or 1 after printing an error."""
    try:
        game = GAMES.open(options.game, GameRequest(options.world, rom=options.rom))
        _play(game, _start(game, options), options, out)
    except (ZeldaError, OSError) as error:
        out.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        out.write("stopped\n")
    return 0


def _start(game: Game, options: argparse.Namespace) -> StartState:
    """Where play begins. Only Bramble has a start of its own: another game has a title screen there."""
    if options.state:
        return StartState(options.state.stem, options.state.read_bytes())
    if options.game == BRAMBLE:
        return true_start(game)
    raise Permanent("--state is needed: name a state of this game, saved where the hero can walk")


def _play(game: Game, start: StartState, options: argparse.Namespace, out: TextIO) -> None:
    person = options.by == "person"
    emulator, decoder = Emulator(game, window="SDL2" if person else "null"), Decoder(game.capabilities)
    rng, action = random.Random(options.seed), 0  # noqa: S311 - play, not secrets
    begin_episode(emulator, start.state, options.seed)
    decoder.begin(emulator.image())
    happened: list[str] = []
    for step in range(1, options.seconds * STEPS_A_SECOND + 1):
        if not person and step % HOLD == 1:
            action = rng.randrange(WITHOUT_START)
        emulator.step(action, SKIP, render=person)
        image, fresh = emulator.take()
        state = decoder.decode(image, fresh)
        happened += events(state) or []
        if step % STEPS_A_SECOND == 0:
            out.write(describe(state, step // STEPS_A_SECOND, game.reached(image), happened) + "\n")
            happened = []
    emulator.close()


def describe(state: GameState, second: int, milestones: int, happened: list[str]) -> str:
    """One line: where the hero is, his health and possessions, what is around him, what just happened."""
    own = state.inventory
    parts = [
        f"{second:4d} s",
        f"{GROUP_AREAS[state.group]} {state.group}:{state.room:02x}",
        f"x {state.x:3d} y {state.y:3d} {DIRECTIONS[state.facing]}",
        f"health {own.health / 4:g}/{own.max_health / 4:g}",
        f"rupees {_known(own.rupees)}",
        f"keys {_known(state.keys)}",
        f"sword {_known(own.sword)}",
        f"enemies {len(state.enemies)} people {len(state.talkables)} things {len(state.pickups)}",
        f"milestones {milestones}",
    ]
    flags = [word for word in ("transition", "cutscene", "dying") if getattr(state, word)]
    flags += ["menu"] if state.menu else []
    flags += [] if state.control else ["no control"]
    if state.dialog is not None:
        flags.append(f"says {state.dialog.line!r}")
    return " | ".join([*parts, *flags, *(["events: " + ", ".join(happened)] if happened else [])])


def _known(value: int | None) -> str:
    return "-" if value is None else str(value)
