"""Trains a reward model on judged mixed play, and measures what its potential pays along the solver's walk.

Milestones are known to neither judges nor reward model.
"""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

import bramble
from bramble.solver.walker import Walker
from bramble.solver.walkthrough import play_with
from services.judge.runtime import rules_runtime
from services.rewardmodel.settings import RewardModelGroup
from services.rewardmodel.training.pipeline import train_in_thread
from services.rewardmodel.wiring import build_handlers
from services.trainer.domain.shaping import ConservativePotential
from services.trainer.env.game_session import GameSession, StepResult
from shared.bus.memory import MemoryBus
from shared.contracts.base import sha256
from shared.contracts.card import RewardModelCard
from shared.contracts.envelope import wrap
from shared.contracts.epoch import EpochFinishedRecord, EpochStart, SegmentRef
from shared.contracts.events import EpochFinished, SegmentReady
from shared.contracts.ids import Digest
from shared.contracts.learning.reward_learning import ShapingConfig
from shared.contracts.run import RunConfig
from shared.game.observation import counters
from shared.game.recording.recorded_states import Counts
from shared.runtime.service import ServicePorts
from shared.store import keys
from shared.store.memory import MemoryStore
from shared.store.port import Store
from studies.gate.mixed_play import RUN, MixedPlay, PlayPlan, gate_environment
from studies.gate.solver_play import UNLIMITED, EpisodeEnded, SessionButtons

BEFORE: Final = 40  # steps: the flag of a milestone may follow what led to it after some pages of text
AFTER: Final = 20  # steps: and the counters may follow the flag
LATER: Final = 50  # steps after which the rise must still be there
MIN_RISE: Final = 0.03  # standard deviations of Phi over the training states: a hundredth of a whole walk's rise
MIN_RISE_NEW_GROUND: Final = 0.002  # for new ground alone; rounding is a thousand times smaller
WALK_SEED: Final = 1_000  # of the evaluated walk's game; training plays others
WAYSIDE: Final = frozenset({"rooms", "tiles", "enemies"})  # what any walk over new ground brings
TILES: Final = counters.INDEX["tiles"]


@dataclass(frozen=True, slots=True)
class SolverWalk:
    """The counts (T, counters.SIZE) along a walk, and the step at which it reached each milestone."""

    counts: Counts
    reached: dict[str, int]


@dataclass(frozen=True, slots=True)
class MilestoneRise:
    """What the potential gained around a milestone, in standard deviations.

    `by` names the counters that rose. New tiles, which any walk finds, count only for a milestone of new ground, where
    no counter but those of WAYSIDE rose. `later` is the smallest gain within the following LATER steps.
    """

    milestone: str
    step: int
    by: tuple[str, ...]
    rise: float
    later: float

    @property
    def passed(self) -> bool:
        """Whether the milestone was paid and the pay stayed."""
        return min(self.rise, self.later) >= self.least

    @property
    def least(self) -> float:
        """The least rise that counts. The counter's logarithm makes late rooms small."""
        return MIN_RISE_NEW_GROUND if self.by and WAYSIDE.issuperset(self.by) else MIN_RISE


@dataclass(frozen=True, slots=True)
class GateResult:
    """The rises of one world, and the card of the reward model that paid them."""

    world: str
    rises: tuple[MilestoneRise, ...]
    card: RewardModelCard

    @property
    def failed(self) -> list[MilestoneRise]:
        """The milestones that were not paid, or whose pay did not stay."""
        return [rise for rise in self.rises if not rise.passed]


def solver_walk(world: str, seed: int = WALK_SEED) -> SolverWalk:
    """Let the solver play the world to its end; StuckError if it cannot."""
    rows: list[bytes] = []
    reached: dict[str, int] = {}

    def observe(session: GameSession, _action: int, _result: StepResult) -> None:
        rows.append(session.counters.packed)
        for milestone in session.game.milestones:
            if milestone.name not in reached and milestone.reached(session.image):
                reached[milestone.name] = len(rows) - 1

    session = GameSession(gate_environment(world, seed))
    try:
        session.reset()
        play_with(world, Walker(SessionButtons(session, observe), bramble.world(world), limit=UNLIMITED))
    except EpisodeEnded:
        pass  # the last milestone ends the episode
    finally:
        session.close()
    return SolverWalk(np.frombuffer(b"".join(rows), "<u2").reshape(-1, counters.SIZE), reached)


async def run_gate(world: str, episodes: int, monotone: bool = True) -> GateResult:
    """Play, judge, train and measure one world."""
    walk = await asyncio.to_thread(solver_walk, world)
    store = MemoryStore()
    references = await MixedPlay(world, PlayPlan(episodes, seed=0), store, len(walk.counts)).record()
    card = await train_on(store, references, RewardModelGroup(monotone=monotone))
    weights = await store.get(card.weights_key, card.weights_digest)
    potential = ConservativePotential.from_bytes(weights, counters.VERSION, ShapingConfig().conservatism)
    return GateResult(world, tuple(measure_rises(walk, potential)), card)


async def train_on(store: Store, references: list[SegmentRef], group: RewardModelGroup) -> RewardModelCard:
    """Judge the segments by the rules and train on the labels, with the handlers of the services."""
    finished = await _finish_epoch(store, references)
    judge = rules_runtime(store)
    for reference in references:
        ready = SegmentReady(run=RUN, epoch=0, **reference.model_dump())
        await judge.handlers.segment_ready(wrap(ready, source="gate"))
    handlers = build_handlers(group, ServicePorts(MemoryBus(), store, asyncio.Event()), train_in_thread)
    await handlers.epoch_finished(wrap(finished, source="gate"))
    return RewardModelCard.from_bytes(await store.get(keys.reward_model_card(RUN, 0)))


async def _finish_epoch(store: Store, references: list[SegmentRef]) -> EpochFinished:
    """Write the records of an epoch that consists of these segments."""
    now = datetime.now(UTC)
    start = EpochStart(run=RUN, epoch=0, fence=0, config=RunConfig(), reward_model=None, created=now)
    await store.put(keys.epoch_start(RUN, 0), start.to_bytes())
    record = EpochFinishedRecord(
        run=RUN,
        epoch=0,
        fence=0,
        steps=len(references),
        episodes=len({reference.episode for reference in references}),
        seconds=0.0,
        segments=references,
        checkpoint_key=f"{keys.checkpoint_prefix(RUN, 0)}none",
        checkpoint_digest=Digest(sha256(b"")),
        created=now,
    )
    key, raw = keys.epoch_finished(RUN, 0), record.to_bytes()
    await store.put(key, raw)
    return EpochFinished(run=RUN, epoch=0, key=key, digest=Digest(sha256(raw)), segments=len(references))


def measure_rises(walk: SolverWalk, potential: ConservativePotential) -> list[MilestoneRise]:
    """The rise of the potential around each milestone, in order of the walk."""
    return [
        _measure(walk, potential, name, step) for name, step in sorted(walk.reached.items(), key=lambda item: item[1])
    ]


def _measure(walk: SolverWalk, potential: ConservativePotential, name: str, step: int) -> MilestoneRise:
    """Compare BEFORE steps before the milestone with AFTER to AFTER + LATER steps after it."""
    last = len(walk.counts) - 1
    before, after = max(0, step - BEFORE), min(last, step + AFTER)
    counts: NDArray[np.uint16] = walk.counts[[before, *range(after, min(last, after + LATER) + 1)]].copy()
    by = tuple(counters.NAMES[index] for index in np.flatnonzero(counts[1] != counts[0]))
    if not WAYSIDE.issuperset(by):
        counts[:, TILES] = counts[0, TILES]
        by = tuple(counter for counter in by if counter != "tiles")
    phi = potential(counters.features(counts))
    return MilestoneRise(name, step, by, float(phi[1] - phi[0]), float(phi[1:].min() - phi[0]))
