"""Plays one tiny epoch through the REST API and waits for its end: what `helm test` runs. Standard library only.

It fails with one sentence and never prints the token.
"""

import json
import os
import sys
import time
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any

# No connection, no answer in time, an answer of 400 or more, a connection that ends before or within the answer.
UNANSWERED = (OSError, HTTPException)
ENDED = ("finished", "failed", "stopped")
POLL_S = float(os.environ.get("POLL_SECONDS", "3"))


def order(steps: int) -> dict[str, Any]:
    """The smallest run that goes through every service: one epoch, played in the driver, judged and learnt from."""
    config = {
        "world": "garden",
        "epochs": 1,
        "epoch_steps": steps,
        "episode_length": max(300, steps // 4),
        "segment_steps": min(100, steps // 4),
        "batch_size": max(64, steps // 4),
        "env_runners": 0,
        "envs_per_runner": 1,
    }
    return {"run": f"helm-test-{int(time.time())}", "config": config}


def call(method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """One request to the API as operator."""
    token = Path(os.environ["TOKEN_FILE"]).read_text().strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["API"] + path, data, headers, method=method)  # noqa: S310
    with urllib.request.urlopen(request, timeout=15) as answer:  # noqa: S310
        return dict(json.load(answer))


def watch(run: str, deadline: float) -> str:
    """The state in which the run ended, or `timeout`. A short absence of the API is waited out."""
    while time.monotonic() < deadline:
        try:
            record = call("GET", f"/runs/{run}")["record"]
        except UNANSWERED as error:
            sys.stdout.write(f"the API does not answer ({error}), trying again\n")
        else:
            sys.stdout.write(f"{run}: {record['state']}, epoch {record['epoch']}\n")
            if record["state"] in ENDED:
                return str(record["state"])
        time.sleep(POLL_S)
    return "timeout"


def main() -> int:
    """Run and wait; 0 if the run finished."""
    wanted = order(int(os.environ["STEPS"]))
    try:
        call("POST", "/runs", wanted)
    except UNANSWERED as error:
        sys.stderr.write(f"the run could not be started: {error}\n")
        return 1
    state = watch(wanted["run"], time.monotonic() + float(os.environ["TIMEOUT_SECONDS"]))
    sys.stdout.write(f"{wanted['run']}: {state}\n")
    return 0 if state == "finished" else 1


if __name__ == "__main__":
    sys.exit(main())
