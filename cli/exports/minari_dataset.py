"""Writes judged segments as a Minari data set, which libraries for offline reinforcement learning read."""

import json
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from typing import Any, Final, Self

import numpy as np

from services.exporter.adapters.parquet import SegmentRows
from shared.game.decoding.names import ACTIONS
from shared.game.observation import layout

FORMAT: Final = "arrow"
DESCRIPTION: Final = (
    "One episode per judged segment of recorded play. The last reward of an episode is the judges' score in [0, 1], "
    "all others are 0. An episode ends truncated, unless the game ended it."
)


class MinariWriter:
    """A data set `NAME-v0` in `folder` that grows segment by segment; complete, it replaces an earlier one.

    `skipped` counts segments without a score: they have no reward.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._name = f"{name}-v0"
        self._place = folder.absolute() / self._name  # Minari joins a relative path to itself
        self._partial = self._place.with_name(f".{self._name}.partial")  # hidden: Minari does not list it
        self._storage: Any = None
        self.steps = self.skipped = 0
        import_module("minari")  # a missing package ends the command before it reads anything

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self._storage is not None and kind is None:
                rmtree(self._place, ignore_errors=True)
                self._partial.rename(self._place)
        finally:
            rmtree(self._partial, ignore_errors=True)

    def add(self, segment: SegmentRows) -> None:
        """Append a judged segment as one episode; others are counted and left out."""
        from minari.data_collector import EpisodeBuffer

        if segment.scores is None or segment.scores.weighted is None:
            self.skipped += 1
            return
        steps, ended = len(segment.actions), segment.manifest.terminated
        last = np.arange(1, steps + 1) == steps
        episode = EpisodeBuffer(
            observations=list(segment.observations),
            actions=list(segment.actions.astype(np.int64)),
            rewards=list(np.where(last, segment.scores.weighted, 0.0)),
            terminations=list(last & ended),
            truncations=list(last & (not ended)),
        )
        storage = self._storage = self._storage or self._created(segment.observations.shape[1])
        storage.update_episodes([episode])
        about = {"segment": str(segment.manifest.segment), "reward_terms": dict(segment.manifest.reward_terms)}
        storage.update_episode_metadata([about], [storage.total_episodes - 1])
        self.steps += steps

    def _created(self, features: int) -> Any:
        from gymnasium import spaces
        from minari.dataset.minari_storage import MinariStorage

        rmtree(self._partial, ignore_errors=True)  # left by a killed process
        data = self._partial / "data"
        data.mkdir(parents=True)
        observations = spaces.Box(-np.inf, np.inf, (features,), np.float32)
        storage = MinariStorage.new(data, observations, spaces.Discrete(len(ACTIONS)), data_format=FORMAT)
        storage.update_metadata(
            {
                "dataset_id": self._name,
                "minari_version": import_module("minari").__version__,
                "description": DESCRIPTION,
                "features": json.dumps([feature.name for feature in layout.FEATURES]),
                "actions": json.dumps(ACTIONS),
            }
        )
        return storage
