"""How long a run will take, from what an earlier one took."""

from typing import Any

import httpx
import pytest

from cli.client import CoordinatorClient
from cli.new_run.estimate import estimate, expected_seconds, roughly
from shared.contracts.run import RunConfig

CONFIG: dict[str, Any] = RunConfig(epochs=10, epoch_steps=40_960, segment_steps=100).model_dump()
ROW: dict[str, Any] = {
    "steps": 4_096,
    "segments_recorded": 40,
    "stage_seconds": {"starting": 9.0, "playing": 8.192, "evaluating": 0.8192, "judging": 20.0, "teaching": 6.0},
}
EPOCH_S = 10 * (8.192 + 0.8192) + 200 * 0.5 + 6.0  # ten times the steps, 200 segments at half a second, one model


def test_every_measured_stage_counts() -> None:
    assert expected_seconds(CONFIG, [ROW]) == pytest.approx(10 * EPOCH_S)
    assert expected_seconds(CONFIG | {"eval_interval": 0}, [ROW]) == pytest.approx(10 * (EPOCH_S - 8.192))
    assert expected_seconds(CONFIG, []) is None
    assert expected_seconds(CONFIG, [ROW | {"stage_seconds": {}}]) is None


def test_only_judged_epochs_take_time_for_judges() -> None:
    between = ROW | {"segments_recorded": 0, "stage_seconds": {"playing": 8.192, "evaluating": 0.8192}}
    play = 10 * (8.192 + 0.8192)
    config = CONFIG | {"judge_interval": 4}  # epochs 0, 4 and 8 of ten
    assert expected_seconds(config, [ROW, between, between]) == pytest.approx(10 * play + 3 * (EPOCH_S - play))
    assert expected_seconds(CONFIG, [between]) == pytest.approx(10 * play)


def test_the_usual_epoch_counts_more_than_a_slow_one() -> None:
    slow = ROW | {"stage_seconds": {"playing": 900.0, "judging": 900.0, "teaching": 900.0}}
    assert expected_seconds(CONFIG, [ROW, slow, ROW]) == pytest.approx(10 * EPOCH_S)


def client(runs: dict[str, dict[str, Any]]) -> CoordinatorClient:
    """A coordinator with these runs, newest first, each with one finished epoch."""

    def answer(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path == "/runs":
            return httpx.Response(200, json={"items": [{"run": name} for name in runs], "next": None})
        if path.endswith("/epochs"):
            return httpx.Response(200, json=[ROW])
        return httpx.Response(200, json={"record": {"config": runs[path.removeprefix("/runs/")]}})

    return CoordinatorClient(httpx.Client(base_url="http://z", transport=httpx.MockTransport(answer)), "http://z")


def test_a_comparable_run_is_named() -> None:
    other = CONFIG | {"env_runners": 5}
    known = client({"new": CONFIG, "slow": other, "demo-1": CONFIG | {"world": "garden"}})
    assert estimate(known, "new", CONFIG) == "It will take about 33 min on this machine, judged by demo-1."


def test_a_run_that_differs_is_named_with_its_differences() -> None:
    demo = CONFIG | {"frame_skip": 12, "envs_per_runner": 16}
    said = estimate(client({"new": CONFIG, "demo-1": demo}), "new", CONFIG)
    assert said.endswith("judged by demo-1, which had envs_per_runner 16, frame_skip 12.")


def test_without_a_comparable_run_nothing_is_guessed() -> None:
    unknown = client({"new": CONFIG, "pixels": CONFIG | {"observation": "pixels/v1"}})
    assert estimate(unknown, "new", CONFIG).startswith("No similar run was measured here before")
    assert estimate(unknown, "new", CONFIG | {"epochs": None, "run_hours": 2.0}) == "No epoch starts after 2 h."


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(30, "less than a minute"), (1_200, "about 20 min"), (32_400, "about 9 h"), (260_000, "about 3 days")],
)
def test_long_times_are_rounded(seconds: float, text: str) -> None:
    assert roughly(seconds) == text
