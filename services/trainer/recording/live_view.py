"""The live picture of one environment: drawn and written about twice a second, and only while a page asks for it.

The thread that plays copies the screen of a step that was to be drawn anyway; everything else happens in the writer's
thread. Pages ask through the store: the coordinator renews a mark while someone watches. No clocks are compared: the
mark, and the frame of another runner, count as alive while they change.
"""

import asyncio
import base64
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import structlog

from services.trainer.domain.episodes import EpisodeName
from services.trainer.env.game_session import EpisodeRecorder, GameSession, StepResult
from services.trainer.recording.config import RecordingConfig
from shared.contracts.driver import LiveFrame, LiveMilestone
from shared.errors import Permanent, Transient
from shared.game.decoding.state import Inventory
from shared.game.recording.png import palette_png
from shared.store import keys
from shared.store.port import NotFound, Store
from shared.telemetry.log_once import LogOnce

PICTURE_S: Final = 0.5  # between two pictures
VIEWER_POLL_S: Final = 2.0  # between two checks for viewers
WATCHED_S: Final = 10.0  # without a new mark, the last viewer has left
TAKE_OVER_S: Final = 4.0  # without a new frame, the next runner shows its game; each further one waits 2 s longer
MAX_WAITING_RANK: Final = 3  # runners that wait for different times: the last takes over within 10 s

log = structlog.get_logger(__name__)


class LiveFramePublisher:
    """Shows the game of one env runner. All runners have one, and one of them publishes."""

    def __init__(
        self, store: Store, settings: RecordingConfig, runner: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._settings, self._runner, self._clock = store, settings, runner, clock
        self._rank = max(1, runner)  # 0 is the driver's own: the only one
        self.wanted = False
        """Whether the next step is to be drawn; the playing thread reads it."""
        self._frame: Callable[[], LiveFrame] | None = None
        self._publishes = False
        self._marked: bytes | None = None
        self._watched_until = self._looked = float("-inf")
        self._newest, self._other_seen = b"", float("-inf")
        self._problems: LogOnce[str] = LogOnce(log.warning, "live picture not written")

    def take(self, session: GameSession) -> None:
        """Copy what a frame needs of the present step; called by the thread that plays, right after a drawn step."""
        self.wanted = False
        screen, state, inventory = session.emulator.raw_screen(), session.state, session.state.scene.inventory
        names, reached = [one.name for one in session.game.milestones], session.milestones_reached
        episode, steps, reward = session.episode.number, session.episode.steps, sum(session.term_sums.values())
        settings, now = self._settings, datetime.now(UTC)

        def build() -> LiveFrame:
            return LiveFrame(
                run=settings.run,
                epoch=settings.epoch,
                runner=self._runner,
                episode=EpisodeName(settings.epoch, self._runner, 0, episode).id,
                step=steps,
                time=now,
                png=base64.b64encode(palette_png(screen)).decode(),
                group=state.scene.group,
                room=state.scene.room,
                health=inventory.health,
                max_health=inventory.max_health,
                items=items_of(inventory),
                milestones=[LiveMilestone(name=name, reached=done) for name, done in zip(names, reached, strict=True)],
                reward=reward,
                checkpoint=settings.checkpoint,
                reward_model=settings.reward_model,
            )

        self._frame = build

    def frame(self) -> LiveFrame | None:
        """The frame that was taken since the last call, with its picture encoded; None if no step was taken."""
        build, self._frame = self._frame, None
        return None if build is None else build()

    async def run(self) -> None:
        """Write frames while someone watches; never returns. A failure costs pictures, never a step."""
        while True:
            try:
                await self.publish_if_watched()
                self._problems.clear(self._settings.run)
            except (Transient, Permanent) as error:
                self._problems.report(self._settings.run, error, run=self._settings.run)
            await asyncio.sleep(PICTURE_S if self._publishes else VIEWER_POLL_S)

    async def publish_if_watched(self) -> None:
        """Check for viewers when it is time; write the newest frame and request the next one."""
        if self._clock() - self._looked >= VIEWER_POLL_S:
            await self._poll_viewers()
        frame = self.frame() if self._publishes else None
        self.wanted = self._publishes
        if frame is not None:
            self._newest = frame.to_bytes()
            await self._store.put(keys.live_frame(self._settings.run), self._newest)

    async def _poll_viewers(self) -> None:
        """Find out whether someone watches, and whether this runner is the one to show."""
        now = self._looked = self._clock()
        mark = await self._read(keys.live_mark(self._settings.run))
        if self._marked is None:
            self._other_seen = now if self._rank > 1 else float("-inf")  # the first runner need not wait
            self._newest = await self._read(keys.live_frame(self._settings.run))  # only a change says that one plays
        elif mark != self._marked:
            self._watched_until = now + WATCHED_S
        self._marked = mark
        if now >= self._watched_until:
            self._publishes = False
            return
        found = await self._read(keys.live_frame(self._settings.run))
        if found != self._newest:  # another runner wrote it, in this epoch or in an earlier one
            self._newest, self._publishes = found, False
            self._other_seen = now
        patience = TAKE_OVER_S + 2.0 * min(self._rank - 1, MAX_WAITING_RANK)
        self._publishes = self._publishes or now - self._other_seen >= patience

    async def _read(self, key: str) -> bytes:
        try:
            return await self._store.get(key)
        except NotFound:
            return b""


class WatchedRecorder:
    """Records an environment as `inner` does, and shows its game to the live view."""

    def __init__(self, inner: EpisodeRecorder, live: LiveFramePublisher) -> None:
        self._inner, self._live, self._drawn = inner, live, False

    def begin_episode(self, session: GameSession) -> None:
        """See EpisodeRecorder."""
        self._inner.begin_episode(session)

    def needs_picture(self, step: int) -> bool:
        """Whether the recording or a viewer needs this step drawn."""
        self._drawn = self._live.wanted  # it may change before the step has ended
        return self._drawn or self._inner.needs_picture(step)

    def add_step(self, session: GameSession, result: StepResult) -> None:
        """Record the step; show it if it was drawn for a viewer."""
        self._inner.add_step(session, result)
        if self._drawn:
            self._live.take(session)


def items_of(inventory: Inventory) -> dict[str, int]:
    """What the hero owns, without what he lacks and what the game cannot say."""
    keys_held = None if inventory.small_keys is None else sum(inventory.small_keys)
    counts = {
        "sword": inventory.sword,
        "shield": inventory.shield,
        "bombs": inventory.bombs,
        "seeds": inventory.seeds,
        "rupees": inventory.rupees,
        "small keys": keys_held,
        "boomerang": inventory.boomerang,
        "slingshot": inventory.slingshot,
        "feather": inventory.feather,
        "satchel": inventory.satchel,
    }
    return {name: number for name, number in counts.items() if number}
