"""Episode names state where each episode was played; other names are refused."""

import pytest

from services.trainer.domain.episodes import EpisodeName, segment_at
from shared.contracts.ids import EpisodeId, RunId, SegmentId
from shared.store import keys

RUN = RunId("demo")
ODD = ["e0001-r00-v00-0002-copy", "x-e0001-r00-v00-0002", "e0001-r00-v00", "notes"]


@pytest.mark.parametrize("name", [EpisodeName(0, 0, 0, 0), EpisodeName(12, 3, 9, 1_000_000)])
def test_a_name_is_read_as_it_was_written(name: EpisodeName) -> None:
    assert EpisodeName.parse(name.id) == name


@pytest.mark.parametrize("odd", ODD)
def test_an_invalid_episode_name_is_refused_with_an_example(odd: str) -> None:
    with pytest.raises(ValueError, match="is not an episode name such as e0001-r00-v03-0002"):
        EpisodeName.parse(odd)


@pytest.mark.parametrize("odd", ODD)
def test_a_segment_of_another_episode_was_not_put_there_by_the_trainer(odd: str) -> None:
    ours = EpisodeName(1, 0, 0, 2).id
    assert segment_at(keys.segment(RUN, 1, ours, SegmentId("s"))) is not None
    assert segment_at(keys.segment(RUN, 1, EpisodeId(odd), SegmentId("s"))) is None
