"""Runs drivers as jobs on a Ray cluster, through its job server's HTTP API: the service itself needs no Ray.

The driver runs on the cluster's head; env runners run where the cluster has room. A job survives a restart of the
service, which finds it again by its name.
"""

import os
from collections.abc import Mapping
from typing import Any

import httpx

from services.trainer.supervisor.backends.port import DriverLaunch, DriverStatus
from shared.config.configure import EXIT_CONFIG
from shared.errors import Permanent, Transient

CALL_S = 15.0
FORWARDED = ("ZELDA_STORE__", "ZELDA_LOG__", "ZELDA_DRIVER__", "ZELDA_FAILPOINTS")
"""Settings that a driver needs. Bus credentials are not among them: drivers do not use the bus."""
DRIVER_MODULE = "services.trainer.rl.driver"  # a path that the images of earlier releases have as well
RUNNING = ("PENDING", "RUNNING")


class RayJobsBackend:
    """Talks to `{address}/api/jobs/` (the API behind `ray job submit`). Secrets travel as file names only."""

    def __init__(self, address: str, environ: Mapping[str, str] = os.environ, token: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.AsyncClient(base_url=address, timeout=CALL_S, headers=headers)
        self._environ = {name: value for name, value in environ.items() if name.startswith(FORWARDED)}

    async def start(self, launch: DriverLaunch) -> None:
        """Submit the driver as a job; see the port."""
        former = f" --former {launch.former}" if launch.former else ""
        answer = await self._call(
            "POST",
            "/api/jobs/",
            json={
                "entrypoint": f"python -m {DRIVER_MODULE} --run {launch.run} --name {launch.name}{former}",
                "submission_id": launch.name,
                "runtime_env": {"env_vars": self._environ | {"ZELDA_DRIVER__RAY_ADDRESS": "auto"}},
                "metadata": {"run": str(launch.run)},
            },
        )
        if _exists_already(answer):
            return
        if answer.is_client_error:
            raise Permanent(f"Ray's job server refused the driver of {launch.run}: {answer.text[:300]}")
        self._document(answer)

    async def status(self, name: str) -> DriverStatus:
        """See the port."""
        answer = await self._call("GET", f"/api/jobs/{name}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return DriverStatus("ended")
        job = self._document(answer)
        status = job.get("status")
        if not isinstance(status, str):
            raise self._unexpected(answer)
        if status in RUNNING:
            return DriverStatus("running")
        if status == "SUCCEEDED":
            return DriverStatus("ended")
        reason = f"The Ray job {name} ended as {status}: {last_line(job.get('message'))}"[:500]
        return DriverStatus("failed", reason, final=job.get("driver_exit_code") == EXIT_CONFIG)

    async def close(self) -> None:
        """Close the connection only: jobs are meant to outlive the service."""
        await self._client.aclose()

    async def _call(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            answer = await self._client.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise Transient(f"Ray's job server at {self._client.base_url} does not answer: {error!r}") from error
        if answer.status_code in (401, 403):
            raise Transient(f"Ray's job server refuses this service ({answer.status_code}): check its token file")
        busy = answer.is_server_error or answer.status_code == httpx.codes.TOO_MANY_REQUESTS
        if busy and not _exists_already(answer):
            raise Transient(f"Ray's job server answered {answer.status_code}: {answer.text[:200]}")
        return answer

    def _document(self, answer: httpx.Response) -> dict[str, Any]:
        """The job server's JSON object. Raises Transient for anything else, such as a proxy's answer."""
        try:
            document = answer.json()
        except ValueError as error:
            raise self._unexpected(answer) from error
        if not answer.is_success or not isinstance(document, dict):
            raise self._unexpected(answer)
        return document

    def _unexpected(self, answer: httpx.Response) -> Transient:
        return Transient(
            f"{self._client.base_url} does not answer as Ray's job server does ({answer.status_code}): check "
            f"ZELDA_TRAINER__RAY_ADDRESS and any proxy in front of it: {answer.text[:200]}"
        )


def _exists_already(answer: httpx.Response) -> bool:
    """Whether a job of this name was submitted before; Ray's versions answer that with different codes."""
    return answer.is_error and "already exists" in answer.text


def last_line(message: str | None) -> str:
    """The last line of a job's message, which ends with the driver's log and the reason of its failure."""
    lines = [line.strip() for line in (message or "").splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
