"""The contract of every store: memory, a directory, and S3 over HTTP from a real server."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from minio import Minio

from shared.config.settings import StoreSettings
from shared.contracts.base import sha256
from shared.errors import DigestMismatch, Fatal, Permanent, Transient
from shared.store import provision
from shared.store.memory import MemoryStore
from shared.store.object_store import ObjectStore, _translated, local_store, s3_store
from shared.store.open import open_store
from shared.store.port import AlreadyExists, NotFound, Store
from tests.unit.judge.bad_servers import always, serving

KEY = "models/runs/demo/record/00000000.json"


Item = TypeVar("Item")


def batched(many: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Fifty at a time: more calls at once would be too many connections to the server."""
    for start in range(0, len(many), 50):
        yield many[start : start + 50]


@pytest.fixture(scope="module")
def buckets(request: pytest.FixtureRequest) -> StoreSettings:
    """Settings of the S3 server's buckets for this file, which exist."""
    settings: StoreSettings = request.getfixturevalue("s3_server").settings("contract")
    provision.provision(settings)
    return settings


@pytest.fixture(params=["memory", "directory", "s3", "bucket"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """One empty store of each kind."""
    if request.param == "memory":
        yield MemoryStore()
    elif request.param == "directory":
        yield open_store(StoreSettings(url=f"file://{tmp_path}"))
    else:
        settings = request.getfixturevalue("buckets")
        if request.param == "bucket":  # one claimed bucket holds both kinds of objects
            settings = settings.model_copy(update={"url": "bucket://contract-models"})
        s3 = open_store(settings)
        yield s3
        for prefix in ("episodes/", "models/"):
            for some in batched(await s3.list(prefix)):
                await asyncio.gather(*(s3.delete(entry.key) for entry in some))


async def test_object_is_read_back_with_its_digest(store: Store) -> None:
    digest = await store.put(KEY, b"first")
    assert digest == sha256(b"first")
    assert await store.exists(KEY)
    assert await store.get(KEY) == b"first"
    assert await store.get(KEY, digest) == b"first"


async def test_put_overwrites_but_create_never_does(store: Store) -> None:
    await store.put(KEY, b"first")
    await store.put(KEY, b"second")
    with pytest.raises(AlreadyExists, match="exists"):
        await store.create(KEY, b"third")
    assert await store.get(KEY) == b"second"


async def _created(store: Store, data: bytes) -> bool:
    """Whether this writer won. A server that is too busy with the others' attempts is asked again."""
    while True:
        try:
            await store.create(KEY, data)
        except AlreadyExists:
            return False
        except Transient:
            continue
        return True


async def test_one_of_sixteen_concurrent_creators_wins(store: Store) -> None:
    won = await asyncio.gather(*(_created(store, f"writer {number}".encode()) for number in range(16)))
    assert won.count(True) == 1
    assert await store.get(KEY) == f"writer {won.index(True)}".encode()


async def test_changed_object_is_refused_by_its_digest(store: Store) -> None:
    digest = await store.put(KEY, b"as judged")
    await store.put(KEY, b"as tampered with")
    with pytest.raises(DigestMismatch, match="changed or damaged"):
        await store.get(KEY, digest)


async def test_missing_object_is_not_found_and_deleting_it_is_no_error(store: Store) -> None:
    with pytest.raises(NotFound, match="no object"):
        await store.get(KEY)
    assert not await store.exists(KEY)
    await store.delete(KEY)


async def test_deleted_object_is_gone_and_its_key_free(store: Store) -> None:
    await store.create(KEY, b"x")
    await store.delete(KEY)
    assert not await store.exists(KEY)
    await store.create(KEY, b"y")
    assert await store.get(KEY) == b"y"


async def test_list_is_ordered_and_stays_within_its_prefix(store: Store) -> None:
    for name in ("models/runs/a/2", "models/runs/a/1", "models/runs/ab/3", "episodes/episodes/a/epoch_0/e/s.zip"):
        await store.put(name, name.encode())
    found = await store.list("models/runs/a/")
    assert [entry.key for entry in found] == ["models/runs/a/1", "models/runs/a/2"]
    assert [entry.size for entry in found] == [len("models/runs/a/1")] * 2
    assert all(entry.modified > 1_500_000_000 for entry in found)
    assert [entry.key for entry in await store.list("models/")] == [f"models/runs/{n}" for n in ("a/1", "a/2", "ab/3")]
    assert await store.list("models/nothing/") == []


async def test_listing_of_several_pages_is_complete(store: Store) -> None:
    names = [f"episodes/scores/demo/epoch_0/default/s{number:04d}.json" for number in range(1_050)]
    for some in batched(names):
        await asyncio.gather(*(store.put(name, b"{}") for name in some))
    assert [entry.key for entry in await store.list("episodes/scores/demo/epoch_0/default/")] == names


async def test_large_object_is_read_back_unchanged(store: Store) -> None:
    data = bytes(range(256)) * 40_000
    digest = await store.create("models/runs/demo/checkpoints/epoch_0/policy.zip", data)
    assert await store.get("models/runs/demo/checkpoints/epoch_0/policy.zip", digest) == data


@pytest.mark.parametrize(
    "key", ["models/../secret", "etc/passwd", "models//x", "models/a/", "models/%2e%2e/x", "models"]
)
async def test_unsafe_key_is_refused_by_every_call(store: Store, key: str) -> None:
    for call in (store.get(key), store.put(key, b"x"), store.create(key, b"x"), store.exists(key), store.delete(key)):
        with pytest.raises(Permanent, match="store key"):
            await call


@pytest.mark.parametrize("prefix", ["models/../secret/", "etc/", "models//", "models/runs/demo", "models"])
async def test_unsafe_prefix_is_not_listed(store: Store, prefix: str) -> None:
    with pytest.raises(Permanent, match="store"):
        await store.list(prefix)


async def test_silent_server_is_transient_within_the_time_limit() -> None:
    """A port that is open and silent: the worst kind of outage."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        impatient = s3_store("demo", f"http://127.0.0.1:{silent.getsockname()[1]}", "k", "s", "us-east-1", None, 0.5)
        started = asyncio.get_running_loop().time()
        with pytest.raises(Transient, match=r"gave no answer in 0.5 s"):
            await impatient.get(KEY)
        assert asyncio.get_running_loop().time() - started < 1.5


async def test_absent_server_is_transient() -> None:
    absent = s3_store("demo", "http://127.0.0.1:9", "key", "secret", "us-east-1", None)
    with pytest.raises(Transient, match="failed"):
        await absent.put(KEY, b"x")


async def test_missing_bucket_is_not_a_missing_object(request: pytest.FixtureRequest) -> None:
    nowhere = open_store(request.getfixturevalue("s3_server").settings("never-provisioned"))
    for call in (nowhere.get(KEY), nowhere.exists(KEY), nowhere.list("models/"), nowhere.delete(KEY)):
        with pytest.raises(Transient, match="failed"):
            await call


async def test_write_to_a_full_server_is_transient() -> None:
    """It has no words for the bucket that is missing; a write cannot be about a missing object."""
    async with serving(always(404, b"")) as server:
        vague = s3_store("demo", f"http://127.0.0.1:{server.port}", "key", "secret", "us-east-1", None)
        for call in (vague.put(KEY, b"x"), vague.create(KEY, b"x")):
            with pytest.raises(Transient, match="failed"):
                await call


async def test_wrong_secret_is_refused_and_reported(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    settings = request.getfixturevalue("s3_server").settings("contract")
    (tmp_path / "wrong").write_text("wrong")
    wrong = open_store(settings.model_copy(update={"secret_key_file": tmp_path / "wrong"}))
    with pytest.raises(Transient, match="failed"):
        await wrong.get(KEY)


def test_concurrently_created_bucket_does_not_stop_provisioning(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = request.getfixturevalue("s3_server").settings("race")
    minio = provision.client(settings)
    minio.make_bucket("race-episodes")
    monkeypatch.setattr(Minio, "bucket_exists", lambda self, name: False)  # what both saw a moment ago
    provision.provision(settings, wait_s=0)
    assert {"race-episodes", "race-models"} <= {bucket.name for bucket in minio.list_buckets()}
    assert minio.get_bucket_lifecycle("race-episodes") is not None


def test_check_reports_problems_and_changes_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = request.getfixturevalue("s3_server").settings("looked-at")
    (tmp_path / "wrong").write_text("wrong")

    def look(**changes: object) -> tuple[int, str]:
        for name, value in settings.model_copy(update=changes).model_dump(exclude_none=True).items():
            monkeypatch.setenv(f"ZELDA_STORE__{name.upper()}", str(value))
        code = provision.main(["--check"])
        said = capsys.readouterr()
        return code, said.out + said.err

    assert look() == (1, "provision: store s3://looked-at has no looked-at-episodes, no looked-at-models: "
                         "run `python -m shared.store.provision`\n")  # fmt: skip
    provision.provision(settings, keep_segments_days=90)
    before = provision.client(settings).get_bucket_lifecycle("looked-at-episodes")
    assert look() == (0, "provision: store s3://looked-at answers and has its buckets\n")
    assert look(url="bucket://looked-at-models")[0] == 0
    assert "refuses the credentials" in look(secret_key_file=tmp_path / "wrong")[1]
    assert "not reached" in look(endpoint="http://127.0.0.1:9")[1]
    after = provision.client(settings).get_bucket_lifecycle("looked-at-episodes")
    assert before is not None
    assert after is not None
    assert (
        {rule.rule_id for rule in before.rules}
        == {rule.rule_id for rule in after.rules}
        == {"exports", "episodes", "replies"}
    )


def test_runbook_checks_and_does_not_provision() -> None:
    runbook = (Path(__file__).parents[2] / "docs/runbook.md").read_text()
    assert {line.split()[0] for line in runbook.split("python -m shared.store.provision")[1:]} == {"--check"}


@pytest.mark.parametrize(
    ("days", "expiring"),
    [
        ((30, 0, 0), {"exports/": 30}),
        ((7, 90, 60), {"exports/": 7, "episodes/": 90, "replies/": 60}),
        ((0, 0, 0), {}),
    ],
)
def test_only_the_requested_prefixes_expire(
    request: pytest.FixtureRequest, days: tuple[int, int, int], expiring: dict[str, int]
) -> None:
    settings = request.getfixturevalue("s3_server").settings("expiring")
    provision.provision(settings, 5, 5, 5)
    provision.provision(settings, *days)
    lifecycle = provision.client(settings).get_bucket_lifecycle("expiring-episodes")
    rules = lifecycle.rules if lifecycle else []
    found = {rule.rule_filter.prefix: rule.expiration.days for rule in rules if rule.rule_filter and rule.expiration}
    assert found == expiring
    assert len(rules) == len(expiring)


def lifetimes(settings: StoreSettings) -> dict[str | None, int | None]:
    """The prefixes whose objects expire in the bucket of episodes, and after how many days."""
    lifecycle = provision.client(settings).get_bucket_lifecycle(f"{settings.url.partition('://')[2]}-episodes")
    rules = lifecycle.rules if lifecycle else []
    return {rule.rule_filter.prefix: rule.expiration.days for rule in rules if rule.rule_filter and rule.expiration}


def test_segments_never_expire_unless_the_command_says_so(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = request.getfixturevalue("s3_server").settings("kept")
    provision.provision(settings)
    usual = {"exports/": 30, "replies/": 90}
    assert lifetimes(settings) == usual
    for name, value in settings.model_dump(exclude_none=True).items():
        monkeypatch.setenv(f"ZELDA_STORE__{name.upper()}", str(value))
    others = ["--keep-exports-days", "7", "--keep-segments-days", "60", "--keep-replies-days", "0"]
    assert provision.main(others) == 0
    assert lifetimes(settings) == {"exports/": 7, "episodes/": 60}
    assert provision.main([]) == 0
    assert lifetimes(settings) == usual
    assert capsys.readouterr().out == "provision: store s3://kept has its buckets\n" * 2
    monkeypatch.setenv("ZELDA_STORE__URL", "bucket://claimed")
    assert provision.main([]) == 0
    assert "store bucket://claimed comes from a claim with its bucket: nothing was asked" in capsys.readouterr().out


def test_a_directory_is_provisioned_and_checked(tmp_path: Path) -> None:
    settings = StoreSettings(url=f"file://{tmp_path}/store")
    with pytest.raises(Fatal, match="has no episodes, no models: run"):
        provision.check(settings)
    provision.provision(settings)
    provision.check(settings)
    (tmp_path / "store" / "models").rmdir()
    with pytest.raises(Fatal, match=r"/store has no models: run"):
        provision.check(settings)


def test_an_error_of_the_store_is_one_line() -> None:
    said = str(_translated("get", KEY, OSError("first line " + 400 * "x" + "\nsecond line"), writes=False))
    assert said.startswith(f"store: get '{KEY}' failed: first line xxx")
    assert "second line" not in said
    assert len(said) < 400


def test_refused_credentials_are_reported_without_waiting(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    settings = request.getfixturevalue("s3_server").settings("contract")
    (tmp_path / "wrong").write_text("wrong")
    with pytest.raises(Fatal, match=r"refuses the credentials .* check the key files"):
        provision.provision(settings.model_copy(update={"secret_key_file": tmp_path / "wrong"}))


def test_provisioning_waits_for_an_absent_server_for_the_given_time(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = request.getfixturevalue("s3_server").settings("contract")
    monkeypatch.setattr(provision, "PAUSE_S", 0.01)
    with pytest.raises(Transient, match="store not reached"):
        provision.provision(settings.model_copy(update={"endpoint": "http://127.0.0.1:9"}), wait_s=0.1)


def test_provisioning_goes_on_when_the_server_answers_within_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[str] = []

    def late(minio: Minio, prefix: str, region: str, days: dict[str, int]) -> None:
        attempts.append(prefix)
        if len(attempts) < 3:
            raise Transient("store not reached")

    (tmp_path / "key").write_text("key")
    secret = tmp_path / "key"
    settings = StoreSettings(
        url="s3://late", endpoint="http://127.0.0.1:9", access_key_file=secret, secret_key_file=secret
    )
    monkeypatch.setattr(provision, "PAUSE_S", 0.01)
    monkeypatch.setattr(provision, "_buckets", late)
    provision.provision(settings, wait_s=30)
    assert attempts == ["late"] * 3


def test_directory_store_survives_its_process(tmp_path: Path) -> None:
    async def write() -> None:
        await local_store(tmp_path).create(KEY, b"kept")

    async def read() -> bytes:
        store: ObjectStore = local_store(tmp_path)
        return await store.get(KEY)

    asyncio.run(write())
    assert asyncio.run(read()) == b"kept"
