"""Walk-throughs finish, the game is deterministic, and its RAM is stable when a frame ends."""

import hashlib
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import bramble
from bramble.__main__ import main
from bramble.emulator import ACTIONS, BrambleEmulator
from bramble.solver.walkthrough import solve

HALT = 0x76
ROOT = Path(bramble.__file__).parent.parent
FRAMES_10000 = """
import hashlib, random
import bramble
from bramble.emulator import ACTIONS, BrambleEmulator
rng = random.Random(5)
with BrambleEmulator(bramble.build("vale")) as game:
    for _ in range(2500):
        game.step(rng.choice(ACTIONS))
    print(hashlib.sha256(game.ram()).hexdigest())
"""


@pytest.mark.parametrize("name", ["garden", "vale"])
def test_the_walk_through_finishes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", name]) == 0

    last = capsys.readouterr().out.splitlines()[-1].split()
    assert last[0] == "finished"
    assert int(last[1]) > 100


def test_a_solver_that_is_stuck_says_so_in_one_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bramble.solver.walker.DOOR_TRIES", 0)

    assert main(["solve", "wild:3"]) == 1

    assert re.fullmatch(r"the door at .* does not open \(room .*, step \d+\)\n", capsys.readouterr().err)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_walk_through_finishes_with_any_seed(seed: int) -> None:
    walk = solve("vale", seed=seed)

    assert list(walk.milestones) == [milestone.name for milestone in bramble.world("vale").milestones]


def test_recorded_actions_replay_to_the_end() -> None:
    walk = solve("garden")
    with BrambleEmulator(bramble.build("garden")) as game:
        for action in walk.actions:
            game.step(ACTIONS[action])
        assert game.value("essences") == 1


@pytest.mark.slow
def test_two_processes_reach_the_same_ram_after_10000_frames() -> None:
    run = [sys.executable, "-c", FRAMES_10000]
    hashes = {subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout for _ in range(2)}

    assert len(hashes) == 1
    assert hashes.pop().strip()


def _course(generator: tuple[int, int] | None) -> str:
    rng = random.Random(5)
    with BrambleEmulator(bramble.build("vale")) as game:
        if generator is not None:
            game.write("rng1", generator[0])
            game.write("rng2", generator[1])
        for _ in range(600):
            game.step(rng.choice(ACTIONS[:-1]))
        enemies = [game.read(0xD080 + 0x100 * n + at) for n in range(8) for at in range(0x40)]
        return hashlib.sha256(bytes(enemies) + game.ram()).hexdigest()


def test_another_generator_state_gives_another_course() -> None:
    assert _course(None) == _course(None)
    assert _course((0x12, 0x34)) != _course((0x56, 0x78))


def _idle(game: BrambleEmulator, address: int) -> bool:
    """Whether the processor waits at this address; it always waits with HALT."""
    return HALT in (game.pyboy.memory[address], game.pyboy.memory[address - 1])


def _frames(torn: bool, count: int = 600) -> tuple[Counter[bool], Counter[bool]]:
    """Counts of idle and busy states after tick() and at the vertical blank, over `count` frames."""
    after, blank = Counter[bool](), Counter[bool]()
    rng = random.Random(1)
    with BrambleEmulator(bramble.build("vale", torn=torn)) as game:

        def at_blank(_: object) -> None:
            stack = game.pyboy.register_file.SP
            blank[_idle(game, game.pyboy.memory[stack] | game.pyboy.memory[stack + 1] << 8)] += 1

        game.pyboy.hook_register(0, 0x40, at_blank, None)
        for frame in range(count):
            if frame % 8 == 0:
                game.step(rng.choice(ACTIONS[:-1]))
            game.pyboy.tick(1, False)
            after[_idle(game, game.pyboy.register_file.PC)] += 1
    return after, blank


def test_ram_is_stable_when_a_frame_ends() -> None:
    after, _ = _frames(torn=False)

    assert after[True] == 600


def test_the_torn_rom_updates_at_frame_end_and_idles_at_vblank() -> None:
    after, blank = _frames(torn=True)

    assert after[False] == 600
    assert blank[False] <= 3
