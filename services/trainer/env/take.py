"""Gathers one environment's segments while its game is played.

Little is done when a segment is complete, because whatever runs once in 300 steps finds the processor's caches cold:
what can wait is done for several of them at once (recording.py).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from services.trainer.domain.episodes import EpisodeName
from services.trainer.env.buffers import BufferPool
from services.trainer.env.draft import Draft
from services.trainer.env.finished import Finished, Open, Standing
from shared.contracts.segment import KEY_FRAMES
from shared.game.decoding.decoder import noop
from shared.game.emulator.emulator import EMULATOR
from shared.game.observation.layout import VERSION

if TYPE_CHECKING:
    from services.trainer.env.config import EnvConfig, RecordingConfig
    from services.trainer.env.game_session import GameSession, StepResult, Write

Finish = Callable[[Finished, Draft], None]
SHORTEST: Final = 10  # steps; the tail of an episode that is shorter than this shows nothing to judge


def key_steps(steps: int) -> tuple[int, ...]:
    """The steps after which a picture is taken: before the first action (0), after the last, and evenly between.

    The one at 0 is on the screen already: it ended the segment before, or the reset drew it.
    """
    last = KEY_FRAMES - 1
    return tuple(sorted({round(place * steps / last) for place in range(KEY_FRAMES)}))


def _nowhere(data: bytes | bytearray) -> None:
    """Where moments go that belong to no segment."""


class Take:
    """One environment's side of the recording; implements the player's `EpisodeRecorder`."""

    def __init__(
        self,
        config: "EnvConfig",
        settings: "RecordingConfig",
        env: int,
        pool: BufferPool,
        finish: Finish,
        lose: Callable[[], None],
    ) -> None:
        """`finish` takes each complete segment; `lose` is told of one for which `pool` has no memory."""
        self._config, self._settings, self._env, self._pool = config, settings, env, pool
        self._finish, self._lose = finish, lose
        self._steps = config.segment_steps
        self._key_steps = key_steps(self._steps)
        self._draft = Draft()
        self._open: Open | None = None
        self._about: dict[str, Any] = {}
        self.due = 0
        self.moved: Write = _nowhere
        self.seen: Write = _nowhere

    def begin(self, player: "GameSession") -> None:
        """An episode has begun."""
        self._about = self._facts_of_episode(player)
        if self._open is not None:  # the episode before was left before its end
            self._pool.give_back(self._open.buffer)
        self._start(player, 0, player.emulator.naive_image(), Standing.of(player))

    def event(self, player: "GameSession", outcome: "StepResult") -> None:
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

    def _end(self, segment: Open, player: "GameSession", outcome: "StepResult", count: int) -> None:
        """The segment is complete: hand it on, and begin the next one unless the episode is over."""
        image, standing = player.emulator.naive_image(), Standing.of(player)
        self._draft.add_ram(image)
        if count < SHORTEST:
            self._pool.give_back(segment.buffer)
        else:
            actions, start = player.episode.actions, player.packed_start
            finished = Finished(segment, count, standing, outcome.terminated, self._about, actions, start)
            self._finish(finished, self._draft)
        self._stop(player)
        if outcome.report is None:
            self._start(player, segment.index + 1, image, standing)

    def _stop(self, player: "GameSession") -> None:
        self._open, self.due, player.decoder.on_static_change = None, 0, noop
        self.moved = self.seen = _nowhere

    def _start(self, player: "GameSession", index: int, image: bytes, standing: Standing) -> None:
        buffer = self._pool.lend()
        if buffer is None:  # what is left of the episode is lost, and counts as one segment
            self._lose()
            self._stop(player)
            return
        draft = self._draft
        draft.empty()
        draft.add_ram(image)
        buffer.add_picture(player.emulator.screen_bytes())
        self._open = Open(index, player.episode.steps, standing, buffer)
        self.moved, self.seen, player.decoder.on_static_change = draft.moved, draft.seen, draft.turn
        draft.turn(player.decoder.static)
        self.moved(player.image[player.decoder.dynamic])
        self.seen(player.vector.newest)
        self._aim(self._open)

    def _facts_of_episode(self, player: "GameSession") -> dict[str, Any]:
        """The fields of the manifest that all segments of an episode share."""
        settings = self._settings
        name = EpisodeName(settings.epoch, self._config.runner, self._env, player.episode.number)
        return {
            "run": settings.run,
            "epoch": settings.epoch,
            "episode": name.id,
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
