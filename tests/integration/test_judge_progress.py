"""Quality of the rules judge: without noise its score ranks real play by progress; noise requests more votes."""

import pytest

from bench.judge_noise import EPISODES, measure, sample_segments

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]

HALF = [(world, wandering, number // 2) for world, wandering, number in EPISODES]
"""Half the benchmark's episodes: to play them takes longer than to judge them, and the correlation is the same."""
SEGMENTS = 100


async def test_weighted_score_follows_progress_and_noise_lowers_agreement() -> None:
    archives = sample_segments(SEGMENTS, HALF)
    exact = await measure(archives, 0.0)
    assert exact.segments == SEGMENTS
    assert exact.correlation > 0.8
    assert (exact.agreement, exact.votes_per_segment) == (1.0, 3.0)
    some, much = await measure(archives[:60], 0.75), await measure(archives[:60], 2.0)
    assert 1.0 > some.agreement > much.agreement
    assert 3.0 < some.votes_per_segment < much.votes_per_segment
