"""What stands before Ray's job server may answer anything: nothing of it is taken for a job or ends the care."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from services.trainer.settings import TrainerGroup, TrainerSettings
from services.trainer.supervisor.backends.port import DriverLaunch, DriverStatus
from services.trainer.supervisor.backends.ray_jobs import RayJobsBackend
from services.trainer.wiring import make_backend
from shared.config.configure import read_settings
from shared.config.settings import StoreSettings
from shared.errors import Fatal, Permanent, Transient
from tests.unit.trainer.run_fixtures import RUN

LAUNCH = DriverLaunch(RUN, "demo-1")


def backend(answer: Callable[[httpx.Request], httpx.Response]) -> RayJobsBackend:
    made = RayJobsBackend("http://ray:8265", {})
    made._client = httpx.AsyncClient(base_url="http://ray:8265", transport=httpx.MockTransport(answer))
    return made


ODD = {
    "a redirection": httpx.Response(302, headers={"location": "/login"}),
    "a redirection that looks well": httpx.Response(302, json={"status": "RUNNING"}),
    "a page": httpx.Response(200, text="<html>log in</html>"),
    "no document": httpx.Response(200, json=["RUNNING"]),
    "too many requests": httpx.Response(429, text="slow down"),
    "a server in trouble": httpx.Response(503, text="no upstream"),
    "a refusal": httpx.Response(403),
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
async def test_an_odd_answer_is_only_a_delay(answer: httpx.Response) -> None:
    odd = backend(lambda request: answer)
    with pytest.raises(Transient):
        await odd.start(LAUNCH)
    with pytest.raises(Transient):
        await odd.status("demo-1")


async def test_a_job_without_a_status_is_only_a_delay() -> None:
    with pytest.raises(Transient, match="does not answer as Ray's job server does"):
        await backend(lambda request: httpx.Response(200, json={})).status("demo-1")


@pytest.mark.parametrize("code", [400, 500])
async def test_a_job_that_was_submitted_before_is_not_submitted_twice(code: int) -> None:
    jobs: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        name = json.loads(request.content)["submission_id"]
        if name in jobs:
            return httpx.Response(code, text=f"Job with submission_id {name} already exists.")
        jobs.append(name)
        raise httpx.ReadTimeout("slow", request=request)

    slow = backend(answer)
    with pytest.raises(Transient):
        await slow.start(LAUNCH)
    await slow.start(LAUNCH)
    assert jobs == ["demo-1"]


async def test_a_job_that_is_refused_says_why() -> None:
    with pytest.raises(Permanent, match="no such image"):
        await backend(lambda request: httpx.Response(400, text="no such image")).start(LAUNCH)


async def test_a_job_that_nobody_knows_has_ended() -> None:
    assert await backend(lambda request: httpx.Response(404)).status("demo-1") == DriverStatus("ended")


@pytest.mark.parametrize("content", [b"first-secret\nsecond-secret", "s\u00e9cret".encode(), b"\xff", b"", b"\n"])
def test_a_token_file_without_a_single_token_is_refused_and_not_told(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    group = TrainerGroup(backend="ray_jobs", ray_address="http://ray:8265", ray_token_file=file)
    with pytest.raises(Fatal, match=f"RAY_TOKEN_FILE: {file} must hold one token of printable ASCII") as refused:
        make_backend(TrainerSettings(store=StoreSettings(url=f"file://{tmp_path}"), trainer=group))
    assert "cret" not in str(refused.value)


def test_jobs_without_a_job_server_are_a_wrong_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZELDA_STORE__URL", f"file://{tmp_path}")
    monkeypatch.setenv("ZELDA_TRAINER__BACKEND", "ray_jobs")
    settings, problems = read_settings(TrainerSettings)
    assert settings is None
    assert problems == ["ZELDA_TRAINER: backend ray_jobs needs ray_address: set it to Ray's job server"]


async def test_the_token_of_the_file_is_shown_to_the_job_server(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-secret\n")
    group = TrainerGroup(backend="ray_jobs", ray_address="http://ray:8265", ray_token_file=tmp_path / "token")
    made = make_backend(TrainerSettings(store=StoreSettings(url=f"file://{tmp_path}"), trainer=group))
    assert isinstance(made, RayJobsBackend)
    assert made._client.headers["Authorization"] == "Bearer a-secret"
    await made.close()
