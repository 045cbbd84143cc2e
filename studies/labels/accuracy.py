"""How well the labels of a trial order its segments: the share of pairs that differ in gain and are ordered rightly."""

from collections.abc import Sequence

import numpy as np

from shared.contracts.archive import read_manifest
from shared.contracts.ids import RunId
from shared.state.scores import ScoreReader
from shared.store.port import Store
from studies.judges.orders import gained_more, share_ordered


async def label_accuracy(store: Store, run: RunId, epochs: Sequence[int]) -> float | None:
    """Compare the scores of a run's judged segments with the milestones that they gained; None without a pair.

    Ties count half. The numbers are measured when training has ended: nothing that trains reads them.
    """
    reader = ScoreReader(store)
    found = [one for epoch in epochs for one in (await reader.read_epoch(run, epoch)).values() if one is not None]
    judged = [one.scores for one in found if one.scores.weighted is not None]
    manifests = [read_manifest(await store.get(one.segment_key, one.segment_digest)) for one in judged]
    gain = np.array([max(0, one.milestones_end - one.milestones_start) for one in manifests], np.int64)
    return share_ordered(np.array([one.weighted for one in judged], np.float64), gained_more(gain))
