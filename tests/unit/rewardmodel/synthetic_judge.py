"""A synthetic judge with a known rule, and random walks through feature space for it to rate."""

import numpy as np

from services.rewardmodel.domain.dataset import STORED_STEPS, SegmentDataset
from services.rewardmodel.domain.folds import fold_of
from services.rewardmodel.domain.preferences import RatingArrays, Reals
from shared.contracts.ids import EpisodeId
from shared.rewardnet import Floats


def rule(states: Floats) -> Reals:
    """Value (...,) of states (..., 128): proximity to a place, plus a bonus for two features together."""
    near = np.exp(-4.0 * ((states[..., 0] - 0.4) ** 2 + (states[..., 1] + 0.3) ** 2))
    owns = (states[..., 2] > 0) & (states[..., 3] > 0)
    liked: Reals = (near + 0.7 * owns).astype(np.float64)
    return liked


def wander(rng: np.random.Generator, segments: int, active: int = 128) -> Floats:
    """States (segments, S, 128): a slow random walk around a random place, in `active` features."""
    centre = rng.uniform(-1, 1, (segments, 1, 128))
    walk = rng.normal(0, 0.03, (segments, STORED_STEPS, 128)).cumsum(axis=1)
    states: Floats = np.clip(centre + walk, -1, 1).astype(np.float32)
    states[:, :, active:] = 0.0
    return states


def judged(
    segments: int, episodes: int, seed: int = 0, noise: float = 0.0, epochs: int = 1, folds: int = 5, active: int = 128
) -> SegmentDataset:
    """A data set rated by the synthetic judge on the scale of votes; `noise` is its standard error."""
    rng = np.random.default_rng(seed)
    states = wander(rng, segments, active)
    liked = rule(states).mean(axis=1)
    value = np.clip(liked / 1.7 + rng.normal(0, noise, segments), 0, 1)
    episode = np.sort(rng.integers(0, episodes, segments))
    names = [EpisodeId(f"e{number:04d}") for number in episode]
    return SegmentDataset(
        states=states,
        rated=RatingArrays(value, np.full(segments, 0.02), np.full(segments, 0.8)),
        fold=np.array([fold_of(0, name, folds) for name in names]),
        epoch=episode * epochs // episodes,
        episode=np.unique(episode, return_inverse=True)[1],
        first_step=rng.integers(0, 10, segments).astype(np.float64) * 300,
        steps=np.full(segments, 300.0),
        milestones=(liked * 3).astype(np.int64).astype(np.float64),
    )
