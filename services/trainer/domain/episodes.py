"""Names of episodes and of their segments: they tell where in an epoch each was played."""

import re
from dataclasses import dataclass
from typing import Final, Self

from shared.contracts.ids import EpisodeId
from shared.store.keys import SegmentPlace, segment_place

_NAME: Final = re.compile(r"e(\d+)-r(\d+)-v(\d+)-(\d+)")


@dataclass(frozen=True, slots=True)
class EpisodeName:
    """Epoch, env runner, environment of that runner, and the episode's number there."""

    epoch: int
    runner: int
    env: int
    number: int

    @classmethod
    def read(cls, episode: str) -> Self:
        """From an episode's id. Raises ValueError if the trainer gives no such names."""
        found = _NAME.fullmatch(episode)
        if found is None:
            raise ValueError(f"{episode!r:.80} is not the name of an episode, as in e0001-r00-v03-0002")
        return cls(*map(int, found.groups()))

    @property
    def id(self) -> EpisodeId:
        """The episode's id."""
        return EpisodeId(f"e{self.epoch:04d}-r{self.runner:02d}-v{self.env:02d}-{self.number:04d}")

    @property
    def place(self) -> str:
        """The environment, as plans and checkpoints name it."""
        return f"{self.runner}/{self.env}"


def segment_at(key: str) -> SegmentPlace | None:
    """The place of the segment with this key; None if the trainer did not put it there."""
    place = segment_place(key)
    return place if place is not None and _NAME.fullmatch(place.episode) else None
