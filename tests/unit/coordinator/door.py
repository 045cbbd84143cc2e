"""The REST interface over the memory world, reached without a network."""

from pathlib import Path

import httpx

from services.coordinator.api.app import create_app
from services.coordinator.tokens import Tokens
from tests.unit.coordinator.world import World

VIEWER = "viewer-token-0123456789"
OPERATOR = "operator-token-0123456789"


def client(
    world: World, directory: Path, token: str | None = OPERATOR, burst: int = 10_000, per_s: float = 1_000.0
) -> httpx.AsyncClient:
    """A client with a token, or with none."""
    path = directory / "tokens"
    path.write_text(f"# two roles\nviewer:{VIEWER}\noperator:{OPERATOR}\n")
    app = create_app(world.desk, Tokens(path), requests_per_s=per_s, burst=burst)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://zelda", headers=headers)
