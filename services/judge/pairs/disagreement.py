"""Reads what the members of a reward model think of recorded segments.

Imported only by epochs whose pairs are compared: numpy and the network would cost every judge process memory.
"""

import asyncio
from collections.abc import Sequence

from services.judge.domain.pair_selection import Opinions
from shared.contracts.card import RewardModelCard
from shared.contracts.epoch import RewardModelRef, SegmentRef
from shared.game.recording.segment import read_segment
from shared.rewardnet import RewardNet, load, view_of
from shared.store.port import Store


async def read_opinions(store: Store, model: RewardModelRef, segments: Sequence[SegmentRef]) -> Opinions:
    """Score each segment with each member. Raises Permanent if the model or a segment is missing or damaged."""
    card = RewardModelCard.from_bytes(await store.get(model.card_key, model.card_digest))
    raw = await store.get(model.weights_key, model.weights_digest)
    view = view_of(raw)
    weights = load(raw, view)
    net, scores = RewardNet(weights), {}
    for segment in segments:
        archive = await store.get(segment.key, segment.digest)
        scores[str(segment.segment)] = await asyncio.to_thread(_scores, net, archive, view, card.pooling)
    return Opinions(scores, weights.temperature)


def _scores(net: RewardNet, archive: bytes, view: str, pooling: str) -> list[float]:
    """One score per member: of the whole segment, as the model was trained."""
    states = net.forward(read_segment(archive).states_in(view))
    pooled = states[:, -1] - states[:, 0] if pooling == "gain" else states.mean(axis=1)
    return [float(value) for value in pooled]
