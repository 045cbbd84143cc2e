"""What a reward model reads of the bank's segments, kept in a file: a replay of the whole bank takes minutes."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Self

import numpy as np

from services.rewardmodel.domain.dataset import SegmentFeatures, pack_states, subsample
from shared.game.observation import counters
from shared.game.recording.segment import read_segment
from shared.rewardnet import Floats
from studies.judges.bank import SEGMENT_STEPS, Bank, BankSegment
from studies.judges.replay import replayed

VIEW: Final = counters.VERSION


class BankFeatures:
    """The states of segments by digest: a segment of another bank is never mistaken for one of this bank."""

    def __init__(self, file: Path, states: dict[str, Floats]) -> None:
        self._file, self._states = file, states

    @classmethod
    def open(cls, file: Path) -> Self:
        """Read the file; an absent one is empty."""
        if not file.exists():
            return cls(file, {})
        with np.load(file, allow_pickle=False) as data:
            return cls(file, dict(zip(data["digest"].tolist(), data["states"], strict=True)))

    def add(self, bank: Bank, segments: Iterable[BankSegment], report: Callable[[int, int], None]) -> None:
        """Replay the segments that the file lacks, and save after each episode. Raises BankError.

        `report` receives how many episodes are replayed, and of how many.
        """
        missing: dict[int, list[BankSegment]] = defaultdict(list)
        for segment in segments:
            if segment.digest not in self._states:
                missing[segment.episode].append(segment)
        for done, wanted in enumerate(missing.values(), 1):
            for name, recorded in replayed(bank, wanted).items():
                digest = next(one.digest for one in wanted if one.name == name)
                self._states[digest] = subsample(read_segment(recorded.archive("share")).states_in(VIEW))
            self._save()
            report(done, len(missing))

    def of(self, segments: Sequence[BankSegment]) -> list[SegmentFeatures]:
        """The features of segments that were added, as the reward model service reads them from archives."""
        return [
            SegmentFeatures(pack_states(self._states[one.digest]), one.index * SEGMENT_STEPS, one.steps, one.gain, VIEW)
            for one in segments
        ]

    def states(self, segments: Sequence[BankSegment]) -> Floats:
        """The states (n, S, D) of segments that were added."""
        return np.stack([self._states[one.digest] for one in segments])

    def _save(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        part = self._file.with_suffix(".part.npz")
        np.savez_compressed(part, digest=np.array(list(self._states)), states=np.stack(list(self._states.values())))
        part.replace(self._file)
