"""An HTTP client of the REST interface over the harness, without a network."""

from pathlib import Path

import httpx

from tests.unit.coordinator.harness import Harness

VIEWER = "viewer-token-0123456789"
OPERATOR = "operator-token-0123456789"


def client(
    harness: Harness, directory: Path, token: str | None = OPERATOR, burst: int = 10_000, per_s: float = 1_000.0
) -> httpx.AsyncClient:
    """A client with this token, or without one."""
    path = directory / "tokens"
    path.write_text(f"# two roles\nviewer:{VIEWER}\noperator:{OPERATOR}\n")
    app = harness.app(path, per_s, burst)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://zelda", headers=headers)
