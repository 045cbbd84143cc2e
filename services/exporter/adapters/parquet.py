"""Writes segments as one Parquet file, one row per step, for tools outside this project."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from shared.contracts.scores import DIMENSIONS, SegmentScores, counted_results, values_of
from shared.contracts.segment import SegmentManifest
from shared.game.decoding.names import ACTIONS
from shared.game.observation import counters, layout


@dataclass(frozen=True, slots=True)
class SegmentRows:
    """One segment of the data set. `observations` is (steps + 1, n) float32, `actions` is (steps,).

    `states` are the rows of states.jsonl, one per step. `potential` is Phi before each step and after the last,
    (steps + 1,), by the reward model that shaped the segment; None without one. `counts` are the event counters of the
    episode, (steps + 1, counters.SIZE) uint16; None in segments that were recorded before counters were.
    """

    manifest: SegmentManifest
    observations: NDArray[np.float32]
    actions: NDArray[np.integer[Any]]
    scores: SegmentScores | None
    states: Sequence[Mapping[str, Any]] = ()
    potential: NDArray[np.float32] | None = None
    counts: NDArray[np.uint16] | None = None


MEANINGS: Final = {
    "step": "steps of the episode before this one; states.jsonl numbers the state after it, one more",
    "observation": "what was seen before the step: one value per name in `features`; docs/observation.md explains each",
    "button": "the action in words",
    "next_observation": "what was seen after the step",
    "terminated": "the game ended the episode with this step; where only a segment ends, it is false",
    "score": "of the whole segment: the weighted mean over its judged dimensions, `score_...`, 0 to 1",
    "votes": "all votes on the segment, 0 to 5, of the judges that its score counts; a gated judge (docs/judges.md) "
    "counts in no column",
    "place": "`group`, `room`, and `x` and `y` in pixels, say where the hero is after the step",
    "potential": "Phi of the state before the step, by the reward model that shaped the segment",
    "next_potential": "Phi of the state after the step",
    "counters": "what the episode had achieved before the step, what the reward model sees: one count per name in "
    "`counter_names`, null where the game cannot say; docs/counters.md explains each",
    "next_counters": "what the episode had achieved after the step",
    "segment_reward": "sum of the reward terms over the whole segment; single steps are not recorded",
    "policy": "SHA-256 of the checkpoint that acted",
}
"""What a column holds, where its name does not say it."""


def schema(features: int) -> pa.Schema:
    """Columns of the data set for `features` observation features. A missing score is null, never zero."""
    observation, counts = pa.list_(pa.float32(), features), pa.list_(pa.uint16(), counters.SIZE)
    return pa.schema(
        [
            ("run", pa.string()),
            ("epoch", pa.int32()),
            ("episode", pa.string()),
            ("segment", pa.string()),
            ("step", pa.int32()),
            ("observation", observation),
            ("action", pa.int8()),
            ("button", pa.string()),
            ("next_observation", observation),
            ("terminated", pa.bool_()),
            ("milestones_start", pa.int16()),
            ("milestones_end", pa.int16()),
            ("score", pa.float32()),
            *((f"score_{name}", pa.float32()) for name in DIMENSIONS),
            *((f"votes_{name}", pa.list_(pa.int8())) for name in DIMENSIONS),
            ("group", pa.int16()),
            ("room", pa.int16()),
            ("x", pa.int16()),
            ("y", pa.int16()),
            ("potential", pa.float32()),
            ("next_potential", pa.float32()),
            ("counters", counts),
            ("next_counters", counts),
            ("segment_reward", pa.float32()),
            ("segment_reward_terms", pa.map_(pa.string(), pa.float32())),
            ("policy", pa.string()),
            ("reward_model", pa.string()),
        ],
        metadata={
            "features": json.dumps([feature.name for feature in layout.FEATURES]),
            "counter_names": json.dumps(counters.NAMES),
            **MEANINGS,
        },
    )


class ParquetDatasetWriter:
    """A Parquet file that grows segment by segment and appears under its name only when it is complete."""

    def __init__(self, path: Path) -> None:
        self._path, self._partial = path, path.with_name(path.name + ".partial")
        self._writer: pq.ParquetWriter | None = None
        self.rows = 0

    def add(self, segment: SegmentRows) -> None:
        """Append the steps of a segment."""
        columns = schema(segment.observations.shape[1])
        if self._writer is None:
            self._partial.touch()  # where that is impossible, the error names the file; pyarrow's would not
            self._writer = pq.ParquetWriter(self._partial, columns, compression="zstd")
        self._writer.write_table(table(segment, columns))
        self.rows += len(segment.actions)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._writer is None:
            return
        try:
            self._writer.close()  # close also writes: a full disk may fail only here
            if kind is None:
                self._partial.replace(self._path)
        finally:
            self._partial.unlink(missing_ok=True)  # missing after a successful replace


def table(segment: SegmentRows, columns: pa.Schema) -> pa.Table:
    """One segment as a table of `steps` rows."""
    manifest, steps = segment.manifest, len(segment.actions)
    constants: Mapping[str, Any] = {
        "run": str(manifest.run),
        "epoch": manifest.epoch,
        "episode": str(manifest.episode),
        "segment": str(manifest.segment),
        "milestones_start": manifest.milestones_start,
        "milestones_end": manifest.milestones_end,
        "segment_reward": sum(manifest.reward_terms.values()) if manifest.reward_terms else None,
        "policy": manifest.checkpoint,
        "reward_model": manifest.reward_model,
        **_scores(segment.scores),
    }
    arrays = {name: pa.array([value] * steps, columns.field(name).type) for name, value in constants.items()}
    arrays["step"] = pa.array(np.arange(manifest.first_step, manifest.first_step + steps, dtype=np.int32))
    arrays["observation"] = _vectors(segment.observations[:-1])
    arrays["next_observation"] = _vectors(segment.observations[1:])
    arrays["action"] = pa.array(segment.actions.astype(np.int8))
    arrays["button"] = pa.array([ACTIONS[action] for action in segment.actions], pa.string())
    arrays["segment_reward_terms"] = pa.array(
        [list(manifest.reward_terms.items())] * steps, columns.field("segment_reward_terms").type
    )
    for name, votes in _votes(segment.scores).items():
        arrays[f"votes_{name}"] = pa.array([votes] * steps, pa.list_(pa.int8()))
    for name in ("group", "room", "x", "y"):
        values = [row[name] for row in segment.states] or [None] * steps
        arrays[name] = pa.array(values, pa.int16())
    phi = segment.potential
    arrays["potential"] = pa.array([None] * steps if phi is None else phi[:-1], pa.float32())
    arrays["next_potential"] = pa.array([None] * steps if phi is None else phi[1:], pa.float32())
    counts = segment.counts
    arrays["counters"] = _counts(None if counts is None else counts[:-1], steps)
    arrays["next_counters"] = _counts(None if counts is None else counts[1:], steps)
    arrays["terminated"] = pa.array([False] * (steps - 1) + [manifest.terminated])
    return pa.Table.from_arrays([arrays[name] for name in columns.names], schema=columns)


def _vectors(values: NDArray[np.float32]) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])


def _counts(values: NDArray[np.uint16] | None, steps: int) -> pa.FixedSizeListArray:
    """The counters of each step; an unknown counter is null."""
    if values is None:
        return pa.nulls(steps, pa.list_(pa.uint16(), counters.SIZE))
    flat = values.ravel()
    return pa.FixedSizeListArray.from_arrays(pa.array(flat, mask=flat == counters.UNKNOWN_COUNT), counters.SIZE)


def _votes(scores: SegmentScores | None) -> dict[str, list[int] | None]:
    """All votes of the counted judges by dimension; None for a dimension without any."""
    found: dict[str, list[int] | None] = dict.fromkeys(DIMENSIONS)
    for result in counted_results(scores) if scores is not None else []:
        for name, score in result.dimensions.items():
            found[name] = [*(found[name] or []), *score.votes]
    return found


def _scores(scores: SegmentScores | None) -> dict[str, float | None]:
    values = values_of(counted_results(scores)) if scores is not None else {}
    merged = scores.weighted if scores is not None else None
    return {"score": merged, **{f"score_{name}": values.get(name) for name in DIMENSIONS}}
