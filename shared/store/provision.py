"""Makes buckets and their lifecycle: `python -m shared.store.provision [--help]`.

Only this command creates buckets. It may run at any time and deletes nothing, but it replaces the lifecycle rules.
`--check` changes nothing. It uses the minio SDK, which works with any S3 server, because obstore cannot create buckets.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from pydantic import Field

from shared.config.configure import read_or_exit
from shared.config.settings import ProcessSettings, StoreSettings, read_secret
from shared.errors import Fatal, Transient, ZeldaError
from shared.store import keys

if TYPE_CHECKING:
    from minio import Minio

WAIT_S: Final = 60.0
PAUSE_S: Final = 0.2
KEEP_EXPORTS_DAYS: Final = 30  # an export can be repeated from its segment
KEEP_REPLIES_DAYS: Final = 90  # the votes and their reasons stay with the score
# Paths within the bucket that a rule may expire.
EXPORTS, SEGMENTS, REPLIES = "exports/", "episodes/", "replies/"
_MADE: Final = ("BucketAlreadyOwnedByYou", "BucketAlreadyExists")  # by a concurrent provisioning
_REFUSED: Final = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch")


class ProvisionSettings(ProcessSettings):
    """For commands that need only the store; they ignore the variables of other groups."""

    store: StoreSettings = Field(default_factory=lambda: cast(StoreSettings, {}), validate_default=True)


def provision(
    settings: StoreSettings,
    keep_exports_days: int = KEEP_EXPORTS_DAYS,
    keep_segments_days: int = 0,
    keep_replies_days: int = KEEP_REPLIES_DAYS,
    wait_s: float = WAIT_S,
) -> None:
    """Create what is missing, waiting up to `wait_s` for the server. 0 days: objects never expire."""
    scheme, _, rest = settings.url.partition("://")
    if scheme == "file":
        for bucket in keys.BUCKETS:
            (Path(rest) / bucket).mkdir(parents=True, exist_ok=True)
    if scheme != "s3":
        return
    days = {EXPORTS: keep_exports_days, SEGMENTS: keep_segments_days, REPLIES: keep_replies_days}
    deadline = time.monotonic() + wait_s
    while True:
        try:
            _buckets(client(settings), rest, settings.region, days)
        except Transient:
            if time.monotonic() > deadline:
                raise
        else:
            return
        time.sleep(PAUSE_S)


def check(settings: StoreSettings) -> None:
    """Raise Fatal or Transient if the store does not answer or lacks a bucket. Changes nothing."""
    scheme, _, rest = settings.url.partition("://")
    missing: list[str] = []
    if scheme == "file":
        missing = [bucket for bucket in keys.BUCKETS if not (Path(rest) / bucket).is_dir()]
    if scheme in ("s3", "bucket"):
        names = [rest] if scheme == "bucket" else [f"{rest}-{bucket}" for bucket in keys.BUCKETS]
        with _translated_errors():
            minio = client(settings)
            missing = [name for name in names if not minio.bucket_exists(name)]
    if missing:
        raise Fatal(f"store {settings.url} has no {', no '.join(missing)}: run `python -m shared.store.provision`")


def client(settings: StoreSettings) -> "Minio":
    """A minio client with short timeouts: its defaults are five minutes, five times."""
    import urllib3
    from minio import Minio

    if settings.endpoint is None or settings.access_key_file is None or settings.secret_key_file is None:
        raise Fatal("ZELDA_STORE: endpoint, access_key_file and secret_key_file are needed")
    parts = urlsplit(settings.endpoint)
    pool = urllib3.PoolManager(
        timeout=urllib3.Timeout(connect=2, read=10), retries=False, ca_certs=settings.ca_file and str(settings.ca_file)
    )
    return Minio(
        parts.netloc,
        access_key=read_secret(settings.access_key_file),
        secret_key=read_secret(settings.secret_key_file),
        secure=parts.scheme == "https",
        region=settings.region,
        http_client=pool,
    )


def _buckets(minio: "Minio", prefix: str, region: str, days: dict[str, int]) -> None:
    with _translated_errors():
        for bucket in keys.BUCKETS:
            _bucket(minio, f"{prefix}-{bucket}", region)
        _lifecycle(minio, f"{prefix}-{keys.EPISODES}", days)


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Translate the SDK's errors."""
    from minio.error import InvalidResponseError, S3Error, ServerError
    from urllib3.exceptions import HTTPError

    try:
        yield
    except S3Error as error:
        if error.code in _REFUSED:
            raise Fatal(f"store: the server refuses the credentials ({error.code}): check the key files") from error
        raise Transient(f"store: {error.code}: {error.message}") from error
    except (HTTPError, InvalidResponseError, ServerError, OSError) as error:
        raise Transient(f"store not reached: {error}") from error


def _bucket(minio: "Minio", name: str, region: str) -> None:
    from minio.error import S3Error

    if minio.bucket_exists(name):
        return
    try:
        minio.make_bucket(name, location=region)
    except S3Error as error:
        if error.code not in _MADE:
            raise


def _lifecycle(minio: "Minio", bucket: str, days: dict[str, int]) -> None:
    from minio.commonconfig import ENABLED, Filter
    from minio.lifecycleconfig import Expiration, LifecycleConfig, Rule

    rules = [
        Rule(ENABLED, rule_filter=Filter(prefix=path), rule_id=path.strip("/"), expiration=Expiration(days=number))
        for path, number in days.items()
        if number > 0
    ]
    if rules:
        minio.set_bucket_lifecycle(bucket, LifecycleConfig(rules))
    else:
        minio.delete_bucket_lifecycle(bucket)


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m shared.store.provision", description=__doc__)
    parser.add_argument(
        "--keep-exports-days", type=int, default=KEEP_EXPORTS_DAYS, help="days until an export expires; 0: never"
    )
    parser.add_argument(
        "--keep-segments-days", type=int, default=0, help="days until a segment expires; 0: never (default)"
    )
    parser.add_argument(
        "--keep-replies-days", type=int, default=KEEP_REPLIES_DAYS, help="days until judges' replies expire; 0: never"
    )
    parser.add_argument("--check", action="store_true", help="change nothing: say whether the buckets can be reached")
    arguments = parser.parse_args(argv)
    settings = read_or_exit("provision", ProvisionSettings)
    try:
        if arguments.check:
            check(settings.store)
            sys.stdout.write(f"provision: store {settings.store.url} answers and has its buckets\n")
            return 0
        days = (arguments.keep_exports_days, arguments.keep_segments_days, arguments.keep_replies_days)
        provision(settings.store, *days)
    except (ZeldaError, OSError) as error:
        sys.stderr.write(f"provision: {error}\n")
        return 1
    sys.stdout.write(f"provision: {_done(settings.store.url)}\n")
    return 0


def _done(url: str) -> str:
    """A sentence about the store's state. The bucket of a claim is not checked."""
    if url.startswith("bucket://"):
        return f"store {url} comes from a claim with its bucket: nothing was asked or made, and nothing expires there"
    return f"store {url} has its buckets"


if __name__ == "__main__":
    raise SystemExit(main())
