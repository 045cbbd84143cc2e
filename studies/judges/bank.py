"""The bank: episodes as seeds and actions, and the segments of them that judges are measured on.

A saved segment takes 100 kB, its actions 120 bytes: the bank holds actions, and replay makes the segments again. The
digest of a segment proves that the game took the same course, and that the same progress was made.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Self, get_args

import numpy as np

from shared.contracts.base import sha256
from shared.contracts.ids import Digest

Half = Literal["dev", "test"]
HALVES: Final[tuple[Half, ...]] = get_args(Half)
FILE: Final = Path(__file__).with_name("bank.npz")
SEGMENT_STEPS: Final = 300  # as in a run
UNKNOWN: Final = -1  # in the file: the episode was left before the next segments were played


class BankError(ValueError):
    """The bank is damaged, or play takes another course than the bank says. The message says what to do."""


@dataclass(frozen=True, slots=True)
class BankEpisode:
    """One episode. `actions` are indices of the action space, one byte a step, up to its last segment in the bank."""

    world: str
    seed: int
    policy: str
    half: Half
    actions: bytes


@dataclass(frozen=True, slots=True)
class BankSegment:
    """One segment: the number of its episode, its place there, and the truth about it, which no judge sees.

    `gain` counts milestones reached in it, `next_gain` those of the three segments that followed; None if they were not
    played to their end.
    """

    name: str
    episode: int
    index: int
    steps: int
    gain: int
    next_gain: int | None
    digest: str


@dataclass(frozen=True, slots=True)
class Bank:
    """The episodes and their segments. Any first part of a half's segments is a random sample of that half."""

    episodes: tuple[BankEpisode, ...]
    segments: tuple[BankSegment, ...]

    @property
    def digest(self) -> Digest:
        """SHA-256 of what judges are asked about: the names of the segments and their courses."""
        return Digest(sha256("\n".join(f"{one.name} {one.digest}" for one in self.segments).encode()))

    def half(self, half: Half) -> list[BankSegment]:
        """Return the segments of one half, in the order in which judges see them."""
        return [segment for segment in self.segments if self.episodes[segment.episode].half == half]

    def save(self, file: Path) -> None:
        """Write the file; equal banks give equal bytes."""
        episodes, segments = self.episodes, self.segments
        np.savez_compressed(
            file,
            allow_pickle=False,
            world=np.array([one.world for one in episodes]),
            seed=np.array([one.seed for one in episodes], np.uint32),
            policy=np.array([one.policy for one in episodes]),
            half=np.array([HALVES.index(one.half) for one in episodes], np.uint8),
            length=np.array([len(one.actions) for one in episodes], np.uint32),
            actions=np.frombuffer(b"".join(one.actions for one in episodes), np.uint8),
            name=np.array([one.name for one in segments]),
            episode=np.array([one.episode for one in segments], np.uint16),
            index=np.array([one.index for one in segments], np.uint8),
            steps=np.array([one.steps for one in segments], np.uint16),
            gain=np.array([one.gain for one in segments], np.uint8),
            next_gain=np.array([UNKNOWN if one.next_gain is None else one.next_gain for one in segments], np.int8),
            digest=np.frombuffer(b"".join(bytes.fromhex(one.digest) for one in segments), np.uint8),
        )

    @classmethod
    def load(cls, file: Path = FILE) -> Self:
        """Read the file. Raises BankError if it is missing or damaged."""
        try:
            with np.load(file, allow_pickle=False) as data:
                columns = {name: data[name] for name in data.files}
            return cls(_episodes(columns), _segments(columns))
        except (OSError, ValueError, KeyError) as error:
            # NumPy's words for a file of another kind advise to load it unsafely.
            reason = error.strerror if isinstance(error, OSError) and error.strerror else "damaged, or of another kind"
            raise BankError(
                f"{file} is no readable bank ({reason}): make it with python -m studies.judges.make_bank"
            ) from error


def _episodes(columns: dict[str, np.ndarray]) -> tuple[BankEpisode, ...]:
    ends = np.cumsum(columns["length"]).tolist()
    actions = columns["actions"].tobytes()
    starts: Sequence[int] = [0, *ends]
    rows = zip(columns["world"], columns["seed"], columns["policy"], columns["half"], starts, ends, strict=False)
    return tuple(
        BankEpisode(str(world), int(seed), str(policy), HALVES[int(half)], actions[start:end])
        for world, seed, policy, half, start, end in rows
    )


def _segments(columns: dict[str, np.ndarray]) -> tuple[BankSegment, ...]:
    names = ("name", "episode", "index", "steps", "gain", "next_gain")
    digests = columns["digest"].reshape(-1, 32)
    return tuple(
        BankSegment(
            str(name),
            int(episode),
            int(index),
            int(steps),
            int(gain),
            None if following == UNKNOWN else int(following),
            digest.tobytes().hex(),
        )
        for (name, episode, index, steps, gain, following), digest in zip(
            zip(*(columns[name] for name in names), strict=True), digests, strict=True
        )
    )
