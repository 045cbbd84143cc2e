"""What the policy's own episodes saw and did on the legs that they passed, to be imitated.

A demonstration shows one way, and a policy that has left it was never shown how to go on. Its own passes lead from many
places (self-imitation: Oh et al. 2018, arXiv:1806.05635).
"""

import base64
import zlib
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from shared.errors import ContractError

PASSES_OF_A_LEG: Final = 8  # that an epoch keeps, the newest; more of them repeat each other
MAX_BYTES: Final = 1 << 30  # unpacked; more is not ours
LEVEL: Final = 1  # of compression: most of an observation are zeros
LEGS: Final = "legs"
BACK: Final = "back"


@dataclass(frozen=True, slots=True)
class LegPass:
    """One pass of a leg, from where the episode came to it."""

    leg: int
    observations: NDArray[np.float32]
    """(T, D): before each action."""
    actions: NDArray[np.int64]
    """(T,)."""
    back: bool = False
    """The executor showed it, from where an episode had lost the way: it leads back to the leg, and passes none."""


class PassWatch:
    """Watches the episodes of one env runner, and keeps what they saw and did on each leg that they pass."""

    def __init__(self, environments: int, longest: Sequence[int]) -> None:
        """`longest` holds for each leg the most steps that a pass may take to be kept."""
        self._longest, self._steps = longest, [0] * environments
        self._seen: list[list[NDArray[np.float32]]] = [[] for _ in range(environments)]
        self._acted: list[list[int]] = [[] for _ in range(environments)]
        self._legs = [0] * environments
        self._found: list[LegPass] = []

    def begin(self, env: int, leg: int) -> None:
        """An episode begins, on this leg."""
        self._seen[env], self._acted[env], self._legs[env], self._steps[env] = [], [], leg, 0

    def add(self, env: int, observation: NDArray[np.float32], action: int | None, leg: int) -> None:
        """The episode saw this and did that; now it is on this leg. No action: an option ran, nothing was chosen."""
        self._steps[env] += 1
        if action is not None:
            self._seen[env].append(observation)
            self._acted[env].append(action)
        if leg > self._legs[env]:
            if self._acted[env] and self._steps[env] <= self._longest[self._legs[env]]:
                rows = np.stack(self._seen[env]), np.array(self._acted[env], np.int64)
                self._found.append(LegPass(self._legs[env], *rows))
            self.begin(env, leg)

    def drain(self) -> list[LegPass]:
        """What was kept since the last call."""
        found, self._found = newest(self._found), []
        return found


def newest(passes: Iterable[LegPass]) -> list[LegPass]:
    """The last PASSES_OF_A_LEG of each leg, and as many ways back to it, by leg."""
    kept: dict[tuple[int, bool], deque[LegPass]] = defaultdict(lambda: deque(maxlen=PASSES_OF_A_LEG))
    for one in passes:
        kept[one.leg, one.back].append(one)
    return [one for kind in sorted(kept) for one in kept[kind]]


def write_passes(passes: Sequence[LegPass]) -> bytes:
    """The passes as compressed safetensors. The same passes give the same bytes."""
    rows: dict[str, NDArray[Any]] = {
        LEGS: np.array([one.leg for one in passes], np.int64),
        BACK: np.array([one.back for one in passes], np.bool_),
    }
    for number, one in enumerate(passes):
        rows |= {f"{number}.observations": one.observations, f"{number}.actions": one.actions}
    return zlib.compress(save(rows), LEVEL)


def read_passes(data: bytes, name: str) -> list[LegPass]:
    """Parse what `write_passes` wrote under this name. Raises ContractError if it is damaged."""
    try:
        unpacker = zlib.decompressobj()
        rows = load(unpacker.decompress(data, MAX_BYTES))
        legs = rows[LEGS]
        back = rows.get(BACK, np.zeros(len(legs), np.bool_))  # earlier versions kept own passes alone
        return [
            LegPass(int(leg), rows[f"{number}.observations"], rows[f"{number}.actions"], bool(back[number]))
            for number, leg in enumerate(legs)
        ]
    except (zlib.error, SafetensorError, KeyError, ValueError) as error:
        raise ContractError(
            f"{name} holds no passes of legs ({error}): restore the object or start a new run"
        ) from error


def pack_passes(passes: Sequence[LegPass]) -> str:
    """The passes as text, for a checkpoint."""
    return base64.b64encode(write_passes(passes)).decode() if passes else ""


def unpack_passes(text: str) -> list[LegPass]:
    """The inverse of `pack_passes`."""
    return read_passes(base64.b64decode(text, validate=True), "the checkpoint") if text else []
