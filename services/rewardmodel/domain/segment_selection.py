"""Which judged segments a training uses: all of the newest epoch, and a stable sample of the older ones.

Only new segments show what the current policy does; only old ones keep the model from forgetting how a beginner looks.
The sample follows a hash of the segment's name: nothing is drawn anew, and how far down that order it reaches depends
only on how many new segments there are.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from services.rewardmodel.domain.ratings import Rating

FREE_OLD: Final = (
    1_000  # that many old segments are always welcome: with few data, forgetting costs more than staleness
)


def select_ratings(ratings: Sequence[Rating], epoch: int, capacity: int, new_share: float) -> list[Rating]:
    """At most `capacity` ratings, ordered by segment name.

    Ratings of `epoch` are new; older ones may not push their share below `new_share`, beyond the first FREE_OLD.
    """
    new = [rating for rating in ratings if rating.epoch == epoch]
    old = [rating for rating in ratings if rating.epoch < epoch]
    new = sorted(new, key=_priority)[:capacity]
    welcome = max(FREE_OLD, int(len(new) * (1.0 - new_share) / new_share))
    old = sorted(old, key=_priority)[: min(welcome, capacity - len(new))]
    return sorted([*new, *old], key=lambda rating: rating.segment)


def _priority(rating: Rating) -> str:
    return hashlib.sha256(rating.segment.encode()).hexdigest()
