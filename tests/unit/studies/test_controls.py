"""The control arms on real segments: permuted or noisy scores, gained milestones, a random model, and direct pay."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from services.trainer.domain.shaping import ConservativePotential
from services.trainer.rl.epoch_plan import EpochPlan
from services.trainer.rl.rllib_env import RLlibVectorEnv
from services.trainer.rl.session_config import SESSION_CONFIG, TrainingSessionConfig
from shared.config.settings import StoreSettings
from shared.contracts.archive import read_manifest
from shared.contracts.epoch import EpochFinishedRecord, SegmentRef
from shared.contracts.ids import Digest, EpisodeId, RunId, SegmentId
from shared.contracts.run import RunConfig, RunRecord, SamplingConfig
from shared.contracts.scores import SegmentScores
from shared.game.observation import counters
from shared.rewardnet import RewardNet, load
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.open import open_store
from shared.store.port import Store
from studies.arms import ARMS
from studies.judged_env import DEVIATION, JudgedEnv
from studies.judges.play import POLICIES, play_actions, play_policy, record
from studies.labels.accuracy import label_accuracy
from studies.labels.labelers import UNSHUFFLED, OracleLabeler, ShuffledLabeler, gained_share
from studies.labels.noise import NOISELESS, NoisyLabeler, standard_noise
from studies.random_model import RandomRewardModel, random_model
from studies.trial import reward_model_source
from tests.unit.studies.invented import plan

RUN = RunId("play")
CONFIG = RunConfig(
    world="garden",
    epoch_steps=300,
    batch_size=64,
    episode_length=300,
    segment_steps=25,
    frame_skip=12,
    env_runners=0,
    rewards="explore",
    sampling=SamplingConfig(budget=100, milestones=False),
)
NOW = datetime.now(UTC)
RECORD = RunRecord(run=RUN, revision=0, state="running", config=CONFIG, created=NOW, updated=NOW)


Steps = Iterator[tuple[RLlibVectorEnv, float]]


def played(kind: type[RLlibVectorEnv], store: StoreSettings | None, steps: int) -> Steps:
    """Play at random in one environment; yield it with the reward of each step."""
    games = kind({SESSION_CONFIG: TrainingSessionConfig(RUN, CONFIG, store=store), "num_envs": 1})
    games.begin_epoch(EpochPlan(0))
    games.reset()
    rng = np.random.default_rng(3)
    for _ in range(steps):
        yield games, float(games.step(rng.integers(0, 7, 1))[1][0])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[SegmentRef]]:
    """A store with the twelve segments of an episode."""
    settings = StoreSettings(url=f"file://{tmp_path_factory.mktemp('store')}")
    *_, (games, _) = played(RLlibVectorEnv, settings, 300)
    segments = games.collect(final=True).segments
    games.close()
    return open_store(settings), segments


def finished(segments: list[SegmentRef], epoch: int = 0) -> EpochFinishedRecord:
    return EpochFinishedRecord(
        run=RUN,
        epoch=epoch,
        fence=0,
        steps=300,
        episodes=1,
        seconds=1.0,
        segments=segments,
        checkpoint_key="checkpoint",
        checkpoint_digest=Digest("0" * 64),
        created=NOW,
    )


def test_shuffled_scores_are_the_judged_ones_in_another_order(recorded: tuple[Store, list[SegmentRef]]) -> None:
    store, segments = recorded

    async def label() -> tuple[list[SegmentScores], list[SegmentScores]]:
        labeler = ShuffledLabeler(store, "gain")
        for _ in range(2):  # after a crash the same permutation is drawn again
            await labeler.label_all(RECORD, finished(segments))
        both = []
        for rubric in (UNSHUFFLED, keys.RUBRIC):
            raw = [await store.get(keys.score(RUN, 0, ref.segment, rubric)) for ref in segments]
            both.append([SegmentScores.from_bytes(one) for one in raw])
        return both[0], both[1]

    judged, shuffled = asyncio.run(label())
    assert len(segments) == 12
    values = [one.weighted for one in judged]
    assert [one.weighted for one in shuffled] != values
    assert sorted(one.weighted or 0 for one in shuffled) == sorted(value or 0 for value in values)
    for ref, one in zip(segments, shuffled, strict=True):
        assert (one.segment, one.segment_key, one.segment_digest) == (ref.segment, ref.key, ref.digest)


def test_the_oracle_rates_what_a_segment_gained_and_not_its_level(recorded: tuple[Store, list[SegmentRef]]) -> None:
    store, segments = recorded

    async def label() -> tuple[SegmentScores, bytes]:
        await OracleLabeler(store, "gain").label(finished(segments, epoch=1), segments[0])
        raw = await store.get(keys.score(RUN, 1, segments[0].segment))
        return SegmentScores.from_bytes(raw), await store.get(segments[0].key)

    scores, archive = asyncio.run(label())
    manifest = read_manifest(archive)
    assert scores.weighted == gained_share(manifest)
    level = manifest.model_copy(update={"milestones_start": 2, "milestones_end": 2, "milestones_total": 4})
    assert gained_share(level) == 0.0
    assert gained_share(level.model_copy(update={"milestones_end": 3})) == 0.25


def test_the_random_model_has_the_scale_of_a_trained_one(recorded: tuple[Store, list[SegmentRef]]) -> None:
    store, segments = recorded

    async def model() -> bytes:
        ref = await RandomRewardModel(store).next_model(RECORD, finished(segments))
        assert ref is not None
        return await store.get(ref.weights_key, ref.weights_digest)

    raw = asyncio.run(model())
    weights = load(raw, counters.VERSION)
    varied = set(np.flatnonzero(weights.input_scale))
    assert {counters.INDEX["rooms"], counters.INDEX["tiles"]} <= varied
    assert counters.INDEX["essences"] not in varied
    states = np.random.default_rng(0).random((500, counters.SIZE)).astype(np.float32)
    drawn = random_model(states, seed=1)
    assert RewardNet(drawn).forward(states).mean(axis=0).std() == pytest.approx(1.0, rel=1e-3)
    phi = ConservativePotential(RewardNet(drawn), conservatism=1.0)(states)
    assert abs(float(phi.mean())) < 0.2  # the disagreement is stretched with the scores
    assert not np.array_equal(drawn.value_weight, random_model(states, seed=2).value_weight)


def test_a_segment_is_paid_its_score_at_its_last_step() -> None:
    steps = 60
    settings = StoreSettings(url="memory://")
    rewards = [(games, reward) for games, reward in played(JudgedEnv, settings, steps)]
    plain = [reward for _, reward in played(RLlibVectorEnv, settings, steps)]
    paid = [reward - usual for (_, reward), usual in zip(rewards, plain, strict=True)]
    assert [step + 1 for step, extra in enumerate(paid) if abs(extra) > 1e-9] == [25, 50]
    score = paid[24] * DEVIATION / CONFIG.shaping.coefficient
    assert 0.0 < score <= 1.0
    games = rewards[-1][0]
    summary = games.collect(final=True).summaries[0]
    assert summary.terms["shaping"] == pytest.approx(sum(paid))
    games.close()


def test_evaluation_pays_no_scores() -> None:
    games, _ = next(played(JudgedEnv, None, 1))
    assert games._shaping is None
    games.close()


def test_noise_follows_the_names_of_run_and_segment_alone(recorded: tuple[Store, list[SegmentRef]]) -> None:
    shared_store, segments = recorded

    async def label() -> list[tuple[SegmentScores, SegmentScores]]:
        store = MemoryStore()  # the other holds the permuted scores of these segments
        for ref in segments:
            await store.put(ref.key, await shared_store.get(ref.key))
        labeler = NoisyLabeler(store, "gain", 0.3)
        for _ in range(2):  # after a crash the same noise is drawn again
            await labeler.label_all(RECORD, finished(segments))
        both = []
        for ref in segments:
            raw = [await store.get(keys.score(RUN, 0, ref.segment, rubric)) for rubric in (NOISELESS, keys.RUBRIC)]
            both.append((SegmentScores.from_bytes(raw[0]), SegmentScores.from_bytes(raw[1])))
        return both

    for judged, labelled in asyncio.run(label()):
        expected = (judged.weighted or 0.0) + 0.3 * standard_noise(RUN, judged.segment)
        assert labelled.weighted == pytest.approx(min(1.0, max(0.0, expected)))
        assert labelled.judges == judged.judges
    drawn = np.array([standard_noise(RUN, SegmentId(f"s{place}")) for place in range(2_000)])
    assert abs(drawn.mean()) < 0.1
    assert drawn.std() == pytest.approx(1.0, abs=0.05)
    assert standard_noise(RunId("other"), SegmentId("s0")) != drawn[0]


def test_labels_are_compared_with_the_milestones_that_segments_gained() -> None:
    store = MemoryStore()
    walk = play_policy("garden", POLICIES["solver"], 336, np.random.default_rng(0))
    _, (played_segment, *_) = record("garden", 5, walk)
    idle = record("garden", 5, play_actions(bytes([0]) * 300))[1][0]

    async def accuracy(good: float, bad: float) -> float | None:
        for place, (segment, value) in enumerate(((played_segment, good), (idle, bad))):
            name = SegmentId(f"s{place}")
            key = keys.segment(RUN, 0, EpisodeId("e0"), name)
            digest = Digest(await store.put(key, segment.archive("share")))
            scores = invented_scores(name, key, digest, value)
            await store.put(keys.score(RUN, 0, name), scores.to_bytes())
        return await label_accuracy(store, RUN, range(1))

    assert asyncio.run(accuracy(0.9, 0.1)) == 1.0
    assert asyncio.run(accuracy(0.1, 0.9)) == 0.0
    assert asyncio.run(accuracy(0.5, 0.5)) == 0.5
    assert asyncio.run(label_accuracy(store, RunId("nobody"), range(3))) is None


def test_labels_are_not_compared_with_the_level_that_was_there_before(monkeypatch: pytest.MonkeyPatch) -> None:
    store, reached = MemoryStore(), {b"idle": (3, 3), b"good": (0, 1)}

    def manifest(archive: bytes) -> SimpleNamespace:
        start, end = reached[archive]
        return SimpleNamespace(milestones_start=start, milestones_end=end)

    async def accuracy() -> float | None:
        for archive, value in ((b"idle", 0.1), (b"good", 0.9)):
            name = SegmentId(archive.decode())
            key = keys.segment(RUN, 0, EpisodeId("e0"), name)
            scores = invented_scores(name, key, Digest(await store.put(key, archive)), value)
            await store.put(keys.score(RUN, 0, name), scores.to_bytes())
        return await label_accuracy(store, RUN, range(1))

    monkeypatch.setattr("studies.labels.accuracy.read_manifest", manifest)
    assert asyncio.run(accuracy()) == 1.0


def test_noisy_labels_need_the_noise_of_the_plan(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no noise for rules-noisy: start the study with `zelda study`"):
        reward_model_source(ARMS["rules-noisy"], MemoryStore(), plan(), tmp_path)


def invented_scores(segment: SegmentId, key: str, digest: Digest, value: float) -> SegmentScores:
    return SegmentScores(
        run=RUN,
        epoch=0,
        episode=EpisodeId("e0"),
        segment=segment,
        segment_key=key,
        segment_digest=digest,
        rubric=keys.RUBRIC,
        status="judged",
        weighted=value,
        created=NOW,
    )
