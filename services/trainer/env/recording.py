"""Collects segments while games are played. Nothing here waits: a step costs the same whether the store is fast, slow
or away.

A take gathers one environment's steps. When a segment is complete the sampler decides whether it is worth recording;
if so it goes into a bounded outbox (outbox.py), and from there to a writer process (clerk.py, writer.py) that reads it
where it was gathered (buffers.py, tray.py) and does all the work: decoding, PNG, zip, store. What an outage makes us
drop is counted, and what is kept is a fair sample.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from services.trainer.domain.doubt import Doubt
from services.trainer.domain.sampling import Candidate, Quota, Sampler
from services.trainer.env.buffers import BufferPool, SegmentBuffer
from services.trainer.env.outbox import Outbox, Parcel, Written
from shared.contracts.ids import EpisodeId, SegmentId
from shared.contracts.segment import KEY_FRAMES
from shared.game.emulator import EMULATOR
from shared.game.layout import VERSION
from shared.game.moment import OBJECTS, Still

if TYPE_CHECKING:
    from services.trainer.env.config import EnvConfig, RecordingConfig
    from services.trainer.env.player import Outcome, Player

SHORTEST: Final = 10  # steps; the tail of an episode that is shorter than this shows nothing to judge


def key_steps(steps: int) -> tuple[int, ...]:
    """The steps after which a picture is taken: before the first action (0), after the last, and evenly between.

    The one at 0 is on the screen already: it ended the segment before, or the reset drew it.
    """
    last = KEY_FRAMES - 1
    return tuple(sorted({round(place * steps / last) for place in range(KEY_FRAMES)}))


@dataclass(slots=True)
class Open:
    """The segment being gathered."""

    index: int
    first_step: int
    milestones: int
    tiles: int
    terms: dict[str, float]
    buffer: SegmentBuffer
    key_frames: list[int] = field(default_factory=lambda: [0])


def _nowhere(data: bytes | bytearray | memoryview) -> None:
    """Where moments go that belong to no segment."""


def _nothing(still: Still) -> None:
    """As `_nowhere`, for what stands still."""


class Take:
    """One environment's side of the recording; implements the player's `Recording`."""

    def __init__(
        self,
        config: "EnvConfig",
        settings: "RecordingConfig",
        env: int,
        sampler: Sampler,
        pool: BufferPool,
        out: Outbox,
        disagreement: Callable[[SegmentBuffer], float | None] = lambda buffer: None,
    ) -> None:
        self._config, self._settings, self._env = config, settings, env
        self._sampler, self._pool, self._out, self._disagreement = sampler, pool, out, disagreement
        self._steps = config.segment_steps
        self._key_steps = key_steps(self._steps)
        self._open: Open | None = None
        self._about: dict[str, Any] = {}
        self.due = 0
        self.write: Callable[[bytes | bytearray | memoryview], object] = _nowhere
        self.turn: Callable[[Still], None] = _nothing
        self.still: Still = ()

    def begin(self, player: "Player") -> None:
        """An episode has begun."""
        name = f"e{self._settings.epoch:04d}-r{self._config.runner:02d}-v{self._env:02d}-{player.episode.number:04d}"
        self._episode = EpisodeId(name)
        self._about = self._facts_of_episode(player)
        if self._open is not None:  # the episode before was left before its end
            self._pool.give_back(self._open.buffer)
        self._start(player, 0, player.emulator.naive_image())

    def event(self, player: "Player", outcome: "Outcome") -> None:
        """A step was drawn, or the episode has ended. The last step of a segment is drawn, too."""
        segment = self._open
        if segment is None:
            return
        steps = player.episode.steps
        count = steps - segment.first_step
        if steps == self.due:
            segment.key_frames.append(count)
            segment.buffer.add_picture(player.emulator.screen_bytes())
        if count == self._steps or outcome.report is not None:
            self._end(segment, player, outcome, count)
        else:
            self._aim(segment)

    def _aim(self, segment: Open) -> None:
        self.due = segment.first_step + self._key_steps[len(segment.key_frames)]

    def _end(self, segment: Open, player: "Player", outcome: "Outcome", count: int) -> None:
        """The segment is complete: hand it on or drop it, and begin the next one unless the episode is over."""
        image = player.emulator.naive_image()
        segment.buffer.put_ram(image, end=True)
        if count < SHORTEST or not self._finish(segment, player, count, outcome.terminated):
            self._pool.give_back(segment.buffer)
        self._stop()
        if outcome.report is None:
            self._start(player, segment.index + 1, image)

    def _stop(self) -> None:
        self._open, self.due, self.write, self.turn = None, 0, _nowhere, _nothing

    def _start(self, player: "Player", index: int, image: bytes) -> None:
        buffer = self._pool.lend()
        if buffer is None:  # what is left of the episode is lost, and counts as one segment
            self._out.dropped += 1
            self._stop()
            return
        buffer.put_ram(image, end=False)
        buffer.add_picture(player.emulator.screen_bytes())
        self._open = Open(
            index=index,
            first_step=player.episode.steps,
            milestones=player.milestones,
            tiles=player.trace.tiles,
            terms=player.term_sums,
            buffer=buffer,
        )
        self.write, self.turn, self.still = buffer.write, buffer.turn, player.decoder.still
        self.turn(self.still)
        self.write(player.image[OBJECTS])
        self.write(player.vector.newest)
        self._aim(self._open)

    def _finish(self, segment: Open, player: "Player", count: int, terminated: bool) -> bool:
        """Decide about the finished segment; whether it went into the outbox."""
        name = SegmentId(f"{self._episode}-s{segment.index:03d}")
        candidate = Candidate(
            segment=name,
            level=segment.milestones,
            gained=player.milestones - segment.milestones,
            novelty=(player.trace.tiles - segment.tiles) / count,
            disagreement=self._disagreement(segment.buffer),
        )
        reason = self._sampler.decide(candidate)
        if reason is None:
            return False
        sums = player.term_sums
        facts = {
            **self._about,
            "segment": name,
            "index": segment.index,
            "first_step": segment.first_step,
            "steps": count,
            "key_frames": segment.key_frames,
            "milestones_start": segment.milestones,
            "milestones_end": player.milestones,
            "reward_terms": {key: value - segment.terms.get(key, 0.0) for key, value in sums.items()},
            "terminated": terminated,
            "sampled": reason,
            "created": datetime.now(UTC).isoformat(),
        }
        actions = player.episode.actions
        prefix, own = bytes(actions[: segment.first_step]), bytes(actions[segment.first_step :])
        self._out.post(Parcel(facts, segment.buffer, own, prefix, player.packed_start))
        return True

    def _facts_of_episode(self, player: "Player") -> dict[str, Any]:
        """The fields of the manifest that all segments of an episode share."""
        settings = self._settings
        return {
            "run": settings.run,
            "epoch": settings.epoch,
            "episode": self._episode,
            "game": player.game.name,
            "rom": player.rom_digest,
            "emulator": EMULATOR,
            "frame_skip": self._config.frame_skip,
            "seed": player.episode.seed,
            "observation": VERSION,
            "checkpoint": settings.checkpoint,
            "reward_model": settings.reward_model,
            "milestones_total": len(player.game.milestones),
            "capabilities": sorted(player.game.capabilities),
        }


class Recorder:
    """The recording of one env runner: its takes, its outbox, its account."""

    def __init__(self, config: "EnvConfig", settings: "RecordingConfig") -> None:
        self._config, self._settings = config, settings
        quota = Quota.of(settings.sampling, settings.epoch_steps, config.segment_steps, settings.runners)
        self._sampler = Sampler(quota, seed=config.seed)
        self.doubt: Doubt | None = None
        self._pool = BufferPool(config.segment_steps)
        self.outbox = Outbox(settings.store, self._pool, settings.slots)

    def take(self, env: int) -> Take:
        """The take of environment `env` of this runner."""
        return Take(self._config, self._settings, env, self._sampler, self._pool, self.outbox, self._disagreement)

    def _disagreement(self, buffer: SegmentBuffer) -> float | None:
        """The reward model's doubt about a segment, or None as long as no model is known (set `doubt`)."""
        if self.doubt is None:
            return None
        return self.doubt(buffer.features())

    def written(self) -> list[Written]:
        """Segments that are in the store by now, each listed once over all calls."""
        return self.outbox.written()

    @property
    def dropped(self) -> int:
        """Segments lost to a slow or absent store."""
        return self.outbox.dropped

    def close(self, patience_s: float = 15.0) -> None:
        """Wait at most `patience_s` for what is on its way, then end the writer and give the memory back."""
        self.outbox.close(patience_s)
        self._pool.close()


def recording_of(config: "EnvConfig") -> Recorder | None:
    """The recorder that a configuration asks for, or None."""
    return None if config.recording is None else Recorder(config, config.recording)
