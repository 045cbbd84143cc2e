"""Checks that runs on one system lost nothing and kept apart: segments, scores, reward models, and learning gauges."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from shared.contracts.archive import open_archive
from shared.contracts.base import sha256
from shared.contracts.card import RewardModelCard
from shared.contracts.epoch import EpochFinishedRecord
from shared.contracts.ids import RunId
from shared.state.scores import ScoreReader
from shared.state.segments import list_segments
from shared.store import keys
from shared.store.port import Store

LEARNING = ("zelda_epoch_", "zelda_reward_model_", "zelda_rewardmodel_", "zelda_judge_")
"""Prefixes of the learning gauges."""
OF_REQUESTS = (
    "zelda_judge_token_bound_ratio",
    "zelda_judge_concurrency_limit_calls",
    "zelda_judge_in_flight_calls",
    "zelda_judge_breaker_state",
    "zelda_rewardmodel_waiting_epochs",
)
CREATED = "_created"  # when a counter began, which the client library shows as a gauge
RETURN = "return_mean"


@dataclass(slots=True)
class RunsOnOneSystem:
    """What the store holds of several runs, and one sentence per problem."""

    epochs: int = 0
    segments: int = 0
    judged: int = 0
    returns: dict[RunId, float] = field(default_factory=dict)
    """Of each run's last epoch, to compare with its gauge."""
    recorded: Counter[RunId] = field(default_factory=Counter)
    digests: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


async def audit(store: Store, runs: Sequence[RunId], epochs: int) -> RunsOnOneSystem:
    """Read all objects of the runs: each has `epochs` epochs, and each segment one archive and one score."""
    found = RunsOnOneSystem()
    for run in runs:
        for epoch in range(epochs):
            await _audit_epoch(store, run, epoch, found)
    repeated = [digest for digest, times in found.digests.items() if times > 1]
    if repeated:  # the runs' seeds differ, so equal archives were mixed up
        found.problems.append(f"{len(repeated)} archives are in more than one run, or twice in one")
    return found


async def _audit_epoch(store: Store, run: RunId, epoch: int, found: RunsOnOneSystem) -> None:
    record = EpochFinishedRecord.from_bytes(await store.get(keys.epoch_finished(run, epoch)))
    if record.run != run or record.attempt != 1 or record.segments_dropped:
        found.problems.append(
            f"{run}, epoch {epoch}: of run {record.run}, attempt {record.attempt}, "
            f"{record.segments_dropped} segments dropped"
        )
    listed = {one.segment: one for one in record.segments}
    archived = {place.segment: entry.key for entry, place in (await list_segments(store, run, epoch)).items()}
    _compare(f"{run}, epoch {epoch}: archives", listed, archived, len(record.segments), found)
    for name, key in archived.items():
        raw = await store.get(key)
        with open_archive(raw) as archive:
            own = archive.manifest.run == run and archive.manifest.epoch == epoch
        if not own or name not in listed or sha256(raw) != listed[name].digest:
            found.problems.append(f"{key} is another run's, or differs from the digest in its epoch's list")
        found.digests[sha256(raw)] += 1
    await _audit_scores(store, run, epoch, {name: one.digest for name, one in listed.items()}, found)
    card = RewardModelCard.from_bytes(await store.get(keys.reward_model_card(run, epoch)))
    found.epochs += 1
    found.segments += len(listed)
    found.recorded[run] += len(listed)
    if card.run != run or card.segments > found.recorded[run]:  # a model uses those of earlier epochs, too
        found.problems.append(f"{run}, epoch {epoch}: its reward model is of {card.run}, {card.segments} segments")
    found.returns[run] = record.metrics.get(RETURN, math.nan)


async def _audit_scores(
    store: Store, run: RunId, epoch: int, listed: Mapping[str, str], found: RunsOnOneSystem
) -> None:
    """`listed`: digest of each segment of the epoch."""
    scores = [one.scores for one in (await ScoreReader(store).read_epoch(run, epoch)).values() if one is not None]
    _compare(f"{run}, epoch {epoch}: scores", listed, {one.segment for one in scores}, len(scores), found)
    for one in scores:
        if one.run != run or one.segment_digest != listed.get(one.segment):
            found.problems.append(f"{run}, epoch {epoch}: the score of {one.segment} is of another archive")
    found.judged += sum(one.status == "judged" for one in scores)


def _compare(what: str, listed: Collection[str], present: Collection[str], times: int, found: RunsOnOneSystem) -> None:
    lost, more = set(listed) - set(present), set(present) - set(listed)
    if lost or more or times != len(present):
        found.problems.append(f"{what}: {len(lost)} lost, {len(more)} not listed, {times - len(present)} twice")


def gauge_problems(pages: Iterable[str], runs: Mapping[RunId, float]) -> list[str]:
    """What is wrong with the learning gauges on these /metrics pages; `runs`: mean return of each run's last epoch."""
    families = [one for page in pages for one in text_string_to_metric_families(page) if _of_learning(one)]
    problems = [
        f"{family.name} has a series without a run"
        for family in families
        if any("run" not in sample.labels for sample in family.samples)
    ]
    shown = {
        sample.labels["run"]: sample.value
        for family in families
        if family.name == "zelda_epoch_training_value"
        for sample in family.samples
        if sample.labels["figure"] == RETURN
    }
    return problems + [
        f"{run}: the gauge of its mean return shows {shown.get(run)}, its record {value}"
        for run, value in runs.items()
        if not math.isclose(shown.get(run, math.nan), value, abs_tol=1e-9)
    ]


def _of_learning(family: Metric) -> bool:
    about_requests = family.name in OF_REQUESTS or family.name.endswith(CREATED)
    return family.type == "gauge" and family.name.startswith(LEARNING) and not about_requests


def counted(page: str, name: str) -> float:
    """The sum of a counter over its labels on a /metrics page."""
    return sum(
        sample.value for one in text_string_to_metric_families(page) for sample in one.samples if sample.name == name
    )
