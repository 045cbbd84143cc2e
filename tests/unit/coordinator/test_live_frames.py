"""The live picture over REST: a request makes the trainer draw, and an ended run is left alone."""

from pathlib import Path

from services.coordinator.live.live_frames import RENEW_S, LiveFrames
from shared.contracts.driver import LiveFrame, LiveMilestone
from shared.contracts.ids import EpisodeId
from shared.store import keys
from tests.unit.coordinator.api_client import VIEWER, client
from tests.unit.coordinator.harness import RUN, Harness, started_run

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def live_frame(harness: Harness, step: int = 7) -> LiveFrame:
    """What an env runner writes while someone watches."""
    return LiveFrame(
        run=RUN,
        epoch=0,
        runner=1,
        episode=EpisodeId("e0000-r01"),
        step=step,
        time=harness.time,
        png=PIXEL,
        group=0,
        room=12,
        health=10,
        max_health=12,
        items={"sword": 1, "rupees": 30},
        milestones=[LiveMilestone(name="sword found", reached=True), LiveMilestone(name="toll paid", reached=False)],
        reward=1.5,
    )


async def test_a_viewer_makes_the_trainer_draw_and_sees_its_frame(tmp_path: Path) -> None:
    harness = await started_run()
    async with client(harness, tmp_path, VIEWER) as http:
        first = (await http.get("/runs/demo/now")).json()
    assert (first["frame"], await harness.store.exists(keys.live_mark(RUN))) == (None, True)
    await harness.store.put(keys.live_frame(RUN), live_frame(harness).to_bytes())
    async with client(harness, tmp_path, VIEWER) as http:
        shown = (await http.get("/runs/demo/now")).json()
    assert (shown["frame"]["step"], shown["frame"]["items"]["rupees"]) == (7, 30)


async def test_an_ended_run_is_not_drawn_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    harness = Harness()
    await harness.create_run()
    await harness.service.stop(RUN)
    await harness.store.put(keys.live_frame(RUN), live_frame(harness).to_bytes())
    async with client(harness, tmp_path) as http:
        assert (await http.get("/runs/demo/now")).json() == {"frame": None, "age_s": None}
        assert (await http.get("/runs/nope/now")).status_code == 404
    assert not await harness.store.exists(keys.live_mark(RUN))


async def test_many_viewers_share_reads_and_a_stale_frame_shows_its_age() -> None:
    harness, now = await started_run(), [100.0]
    frames = LiveFrames(harness.store, harness.models.runs, lambda: now[0])
    await harness.store.put(keys.live_frame(RUN), live_frame(harness).to_bytes())
    await frames.newest(RUN)
    mark = await harness.store.get(keys.live_mark(RUN))
    await harness.store.put(keys.live_frame(RUN), live_frame(harness, step=8).to_bytes())
    frame, _ = await frames.newest(RUN)
    assert frame is not None
    assert frame.step == 7, "read a moment ago"
    assert await harness.store.get(keys.live_mark(RUN)) == mark
    now[0] += RENEW_S
    frame, age_s = await frames.newest(RUN)
    assert frame is not None
    assert (frame.step, age_s) == (8, 0.0)
    now[0] += 12
    assert (await frames.newest(RUN))[1] == 12.0
    assert await harness.store.get(keys.live_mark(RUN)) != mark
