"""The files of the live page: caching, the security policy, and the origin of code of others."""

import re
from hashlib import sha256
from pathlib import Path

import pytest

from services.coordinator.live.page_files import page_files
from tests.unit.coordinator.api_client import OPERATOR, VIEWER, client
from tests.unit.coordinator.harness import Harness

PAGE = Path(__file__).parents[3] / "services/coordinator/live/page"
MAX_LINES = 150


async def test_an_unchanged_file_is_not_sent_again(tmp_path: Path) -> None:
    async with client(Harness(), tmp_path, token=None) as http:
        first = await http.get("/page/page.js")
        again = await http.get("/page/page.js", headers={"If-None-Match": first.headers["etag"]})
        other = await http.get("/page/page.js", headers={"If-None-Match": '"another"'})
    assert (first.status_code, again.status_code, other.status_code) == (200, 304, 200)
    assert again.content == b""


@pytest.mark.parametrize("sent", ["W/{etag}", '"another", {etag}', "*"])
async def test_every_form_of_a_known_version_is_recognised(tmp_path: Path, sent: str) -> None:
    async with client(Harness(), tmp_path, token=None) as http:
        etag = (await http.get("/page/page.js")).headers["etag"]
        again = await http.get("/page/page.js", headers={"If-None-Match": sent.format(etag=etag)})
    assert again.status_code == 304  # a proxy that compresses marks the version as weak


async def test_every_file_has_a_policy_that_allows_no_foreign_code(tmp_path: Path) -> None:
    async with client(Harness(), tmp_path, token=None) as http:
        for path in page_files():
            response = await http.get(path)
            policy = response.headers["content-security-policy"]
            assert response.status_code == 200, path
            assert "script-src 'self';" in policy, path
            assert "unsafe" not in policy, path


def test_files_of_others_are_unchanged() -> None:
    table = (PAGE / "vendor/README.md").read_text()
    listed = dict(re.findall(r"^\| `([^`]+)` .*`([0-9a-f]{64})` \|$", table, re.MULTILINE))
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in (PAGE / "vendor").glob("uPlot*min*")}
    assert found == listed


def test_the_modules_of_the_page_are_short() -> None:
    modules = [path for path in PAGE.rglob("*.js") if path.parent.name != "vendor"]
    assert len(modules) > 10
    assert [path.name for path in modules if len(path.read_text().splitlines()) > MAX_LINES] == []


@pytest.mark.parametrize(("token", "role"), [(VIEWER, "viewer"), (OPERATOR, "operator")])
async def test_a_session_names_the_role_of_its_token(tmp_path: Path, token: str, role: str) -> None:
    async with client(Harness(), tmp_path, token) as http:
        assert (await http.get("/session")).json() == {"role": role}
