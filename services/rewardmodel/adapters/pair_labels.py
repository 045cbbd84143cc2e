"""Reads the pairs that a judge compared as labels of a training's rows, and says whether an epoch's are complete."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from services.rewardmodel.domain.compared_pairs import PairLabel
from shared.contracts.ids import Digest, RunId, SegmentId
from shared.errors import ContractError
from shared.state.pairs import ComparedPair, PairReader
from shared.store.port import Store


@dataclass(frozen=True)
class PairLabels:
    """The labels of a training and the digests of their objects; `unused` pairs lack a row, `abstained` an answer."""

    labels: list[PairLabel] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    unused: int = 0
    abstained: int = 0

    @property
    def ties(self) -> int:
        """Labels without a winner."""
        return sum(one.label == 0.5 for one in self.labels)

    @property
    def digest(self) -> Digest | None:
        """SHA-256 over the sorted digests of the comparisons; None without any."""
        if not self.digests:
            return None
        return Digest(hashlib.sha256("".join(sorted(self.digests)).encode()).hexdigest())


class PairLabelReader:
    """The compared pairs of all runs."""

    def __init__(self, store: Store) -> None:
        self._reader = PairReader(store)

    async def complete(self, run: RunId, epoch: int) -> bool:
        """Whether the epoch's pairs are selected and each has an outcome."""
        try:
            return await self._reader.open_pairs(run, epoch) == []
        except ContractError:  # `up_to` logs it: nothing can be read of these pairs, and waiting would not help
            return True

    async def up_to(self, run: RunId, epoch: int, rows: Mapping[SegmentId, int]) -> PairLabels:
        """The comparisons of all epochs up to and including `epoch`, between segments that have a row."""
        found: list[ComparedPair] = []
        for number in range(epoch + 1):
            found += await self._reader.epoch(run, number)
        judged = [one for one in found if one.comparison.label is not None]
        labels, digests = [], []
        for one in judged:
            pair, label = one.comparison.pair, one.comparison.label
            first, second = rows.get(pair.first.segment), rows.get(pair.second.segment)
            if first is not None and second is not None and label is not None:
                labels.append(PairLabel(first, second, label))
                digests.append(one.digest)
        return PairLabels(labels, digests, len(judged) - len(labels), len(found) - len(judged))
