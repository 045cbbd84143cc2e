"""Collects segments while games are played. Nothing here waits: a step costs the same whether the store is fast, slow
or away.

A take gathers one environment's steps. When a segment is complete the sampler decides whether it is worth recording;
if so it goes into a bounded outbox (outbox.py), and from there through shared memory (clerk.py, tray.py) to a writer
process (writer.py) that does all the work: decoding, PNG, zip, store. What an outage makes us drop is counted, and
what is kept is a fair sample.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from services.trainer.domain.doubt import Doubt
from services.trainer.domain.sampling import Candidate, Quota, Sampler
from services.trainer.env.buffers import SegmentBuffer
from services.trainer.env.outbox import Outbox, Parcel, Written
from shared.contracts.ids import EpisodeId, SegmentId
from shared.contracts.segment import KEY_FRAMES
from shared.game.emulator import EMULATOR
from shared.game.layout import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

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
    ram_start: str
    terms: dict[str, float]
    buffer: SegmentBuffer
    key_frames: list[int] = field(default_factory=lambda: [0])


class Take:
    """One environment's side of the recording; implements the player's `Recording`."""

    def __init__(
        self,
        config: "EnvConfig",
        settings: "RecordingConfig",
        env: int,
        sampler: Sampler,
        out: Outbox,
        disagreement: "Callable[[SegmentBuffer], float | None]" = lambda buffer: None,
    ) -> None:
        self._config, self._settings, self._env = config, settings, env
        self._sampler, self._out, self._disagreement = sampler, out, disagreement
        self._steps = config.segment_steps
        self._key_steps = key_steps(self._steps)
        self._open: Open | None = None
        self._count = self._next_event = 0
        self.draws = False

    def begin(self, player: "Player") -> None:
        """An episode has begun."""
        name = f"e{self._settings.epoch:04d}-r{self._config.runner:02d}-v{self._env:02d}-{player.episode.number:04d}"
        self._episode = EpisodeId(name)
        self._start(player, 0, player.emulator.ram_hash())

    def step(self, player: "Player", action: int, outcome: "Outcome") -> None:
        """Note one step; at the end of a segment decide about it."""
        segment = self._open
        if segment is None:
            return
        segment.buffer.add_moment(player.image, player.decoder.still, player.features)
        self._count = count = self._count + 1
        if count == self._next_event or outcome.report is not None:
            self._event(segment, player, outcome)

    def _event(self, segment: Open, player: "Player", outcome: "Outcome") -> None:
        """A picture was or will be drawn, or the segment ends."""
        if self.draws:
            segment.key_frames.append(self._count)
            segment.buffer.add_picture(player.emulator.screen_bytes())
        if self._count == self._steps or outcome.report is not None:
            self._end(segment, player, outcome)
        else:
            self._aim(self._key_steps[len(segment.key_frames)])

    def _aim(self, picture: int) -> None:
        """The next picture is that of step `picture`; the event before it says that the emulator has to draw."""
        self.draws = self._count + 1 == picture
        self._next_event = picture if self.draws else picture - 1

    def _end(self, segment: Open, player: "Player", outcome: "Outcome") -> None:
        """The segment is complete: hand it on or drop it, and begin the next one unless the episode is over."""
        ram_end = player.emulator.ram_hash()
        if self._count < SHORTEST or not self._finish(segment, player, outcome.terminated, ram_end):
            self._out.pool.give_back(segment.buffer)
        self._open, self.draws = None, False
        if outcome.report is None:
            self._start(player, segment.index + 1, ram_end)

    def _start(self, player: "Player", index: int, ram_start: str) -> None:
        if self._open is not None:  # an episode was left before its end
            self._out.pool.give_back(self._open.buffer)
        buffer = self._out.pool.lend()
        self._count = 0
        buffer.add_moment(player.image, player.decoder.still, player.features)
        buffer.add_picture(player.emulator.screen_bytes())
        self._aim(self._key_steps[1])
        self._open = Open(
            index=index,
            first_step=player.episode.steps,
            milestones=player.milestones,
            tiles=player.trace.tiles,
            ram_start=ram_start,
            terms=player.term_sums,
            buffer=buffer,
        )

    def _finish(self, segment: Open, player: "Player", terminated: bool, ram_end: str) -> bool:
        """Decide about the finished segment; whether it went into the outbox."""
        name = SegmentId(f"{self._episode}-s{segment.index:03d}")
        candidate = Candidate(
            segment=name,
            level=segment.milestones,
            gained=player.milestones - segment.milestones,
            novelty=(player.trace.tiles - segment.tiles) / self._count,
            disagreement=self._disagreement(segment.buffer),
        )
        reason = self._sampler.decide(candidate)
        if reason is None:
            return False
        actions = player.episode.actions
        self._out.post(
            Parcel(
                facts=self._facts(segment, player, name, terminated) | {"ram_end": ram_end, "sampled": reason},
                buffer=segment.buffer,
                actions=bytes(actions[segment.first_step :]),
                prefix=bytes(actions[: segment.first_step]),
                packed_start=player.packed_start,
            )
        )
        return True

    def _facts(self, segment: Open, player: "Player", name: SegmentId, terminated: bool) -> dict[str, Any]:
        """The fields of the manifest that are known here."""
        settings = self._settings
        terms = {key: value - segment.terms.get(key, 0.0) for key, value in player.term_sums.items()}
        return {
            "run": settings.run,
            "epoch": settings.epoch,
            "episode": self._episode,
            "segment": name,
            "index": segment.index,
            "first_step": segment.first_step,
            "steps": self._count,
            "game": player.game.name,
            "rom": player.rom_digest,
            "emulator": EMULATOR,
            "frame_skip": self._config.frame_skip,
            "seed": player.episode.seed,
            "observation": VERSION,
            "ram_start": segment.ram_start,
            "key_frames": segment.key_frames,
            "checkpoint": settings.checkpoint,
            "reward_model": settings.reward_model,
            "milestones_start": segment.milestones,
            "milestones_end": player.milestones,
            "milestones_total": len(player.game.milestones),
            "reward_terms": terms,
            "terminated": terminated,
            "created": datetime.now(UTC).isoformat(),
            "capabilities": sorted(player.game.capabilities),
        }


class Recorder:
    """The recording of one env runner: its takes, its outbox, its account."""

    def __init__(self, config: "EnvConfig", settings: "RecordingConfig") -> None:
        self._config, self._settings = config, settings
        quota = Quota.of(settings.sampling, settings.epoch_steps, config.segment_steps, settings.runners)
        self._sampler = Sampler(quota, seed=config.seed)
        self.doubt: Doubt | None = None
        self.outbox = Outbox(settings.store, settings.slots)

    def take(self, env: int) -> Take:
        """The take of environment `env` of this runner."""
        return Take(self._config, self._settings, env, self._sampler, self.outbox, self._disagreement)

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
        """Wait at most `patience_s` for what is on its way, then end the writer."""
        self.outbox.close(patience_s)


def recording_of(config: "EnvConfig") -> Recorder | None:
    """The recorder that a configuration asks for, or None."""
    return None if config.recording is None else Recorder(config, config.recording)
