"""Selects the judged segments of a training: all of the newest epoch, and a stable sample of the older ones.

New segments show what the current policy does; old ones keep the model from forgetting a beginner's play. The sample
follows a hash of the segment's name. It needs no random numbers: its size depends only on the number of new segments.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from services.rewardmodel.domain.ratings import Rating

FREE_OLD_SEGMENTS: Final = 1_000
"""So many old segments are always allowed: with few data, forgetting costs more than staleness."""
MIN_NEW_SHARE: Final = 1e-3
"""A share of 0 would allow any number of old segments; so does this one, up to the capacity."""


def select_ratings(ratings: Sequence[Rating], epoch: int, capacity: int, new_share: float) -> list[Rating]:
    """Select at most `capacity` ratings, ordered by segment name.

    Ratings of `epoch` are new. Beyond the first FREE_OLD_SEGMENTS, older ones may not reduce the share of new ones
    below `new_share`.
    """
    new = [rating for rating in ratings if rating.epoch == epoch]
    old = [rating for rating in ratings if rating.epoch < epoch]
    new = sorted(new, key=_priority)[:capacity]
    new_share = max(new_share, MIN_NEW_SHARE)
    allowed = max(FREE_OLD_SEGMENTS, int(len(new) * (1.0 - new_share) / new_share))
    old = sorted(old, key=_priority)[: min(allowed, capacity - len(new))]
    return sorted([*new, *old], key=lambda rating: rating.segment)


def _priority(rating: Rating) -> str:
    return hashlib.sha256(rating.segment.encode()).hexdigest()
