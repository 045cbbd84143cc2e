"""Names of episodes and their segments. A name states epoch, env runner, environment and number."""

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
    def parse(cls, episode: str) -> Self:
        """Parse an episode's id. Raises ValueError if it is not a name of the trainer's."""
        found = _NAME.fullmatch(episode)
        if found is None:
            raise ValueError(f"{episode!r:.80} is not an episode name such as e0001-r00-v03-0002")
        return cls(*map(int, found.groups()))

    @property
    def id(self) -> EpisodeId:
        """The episode's id."""
        return EpisodeId(f"e{self.epoch:04d}-r{self.runner:02d}-v{self.env:02d}-{self.number:04d}")

    @property
    def place(self) -> str:
        """The environment as `{runner}/{env}`: the key in plans and checkpoints."""
        return f"{self.runner}/{self.env}"


def segment_at(key: str) -> SegmentPlace | None:
    """Parse a segment's key; None if no segment of the trainer has such a key."""
    place = segment_place(key)
    return place if place is not None and _NAME.fullmatch(place.episode) else None
