"""Settings common to all services: where bus and store are, where to listen, how to log.

Each setting is an environment variable `ZELDA_<GROUP>__<FIELD>`. A setting never contains a secret; it names the file
that does. This module imports nothing heavy: a wrong configuration must be reported in under a second.
"""

import re
from pathlib import Path
from typing import Annotated, Final, Literal, Self, cast
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "ZELDA_"
NESTED = "__"


def _readable(path: Path) -> Path:
    if not path.is_file():
        raise ValueError(f"no file {str(path)!r}: name a readable file (a mounted secret or certificate)")
    return path


def _certificates(path: Path) -> Path:
    import ssl  # only where a certificate is configured

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except OSError as error:  # ssl errors are OSErrors
        raise ValueError(f"no certificate in {str(path)!r}: name a file in PEM, with BEGIN CERTIFICATE") from error
    return path


def _parts(url: str) -> SplitResult:
    """The parsed address. `urlsplit` validates the port only on access; the port may be part of a password."""
    parts = urlsplit(url)
    try:
        _ = parts.port
    except ValueError:
        raise ValueError("the port must be a number up to 65535") from None
    return parts


def _http_url(url: str) -> str:
    """Accept http(s) addresses only, and never the cloud's metadata address, which hands out credentials."""
    parts = _parts(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r:.80} is not an address: use http://HOST:PORT or https://HOST:PORT")
    if parts.username or parts.password:
        raise ValueError("the address must not contain a password: put it into a file and name that file")
    if parts.hostname.startswith("169.254.") or parts.hostname.lower() == "fd00:ec2::254":
        raise ValueError(f"{parts.hostname!r} is a link-local metadata address: name the real server")
    return url


def _bus_url(url: str) -> str:
    parts = _parts(url)
    if url != "memory://" and (parts.scheme not in ("nats", "tls") or not parts.hostname):
        raise ValueError(f"{url!r:.80} is not a bus: use nats://HOST:PORT, tls://HOST:PORT or memory://")
    if parts.username or parts.password:
        raise ValueError("the address must not contain a password: use credentials_file")
    return url


def _store_url(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in ("s3", "bucket", "file", "memory"):
        raise ValueError(f"{url!r:.80} is not a store: use s3://PREFIX, bucket://NAME, file:///DIR or memory://")
    if scheme == "file" and not rest.startswith("/"):
        raise ValueError(f"{url!r:.80}: the directory must be absolute, e.g. file:///var/lib/zelda")
    # Bucket names allow 63 characters; `-episodes` takes nine of them.
    if scheme == "s3" and not re.fullmatch(r"[a-z0-9][a-z0-9-]{1,52}[a-z0-9]", rest):
        raise ValueError(f"{url!r:.80}: the prefix must be 3-54 lower-case letters, digits or inner hyphens")
    if scheme == "bucket" and not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", rest):
        raise ValueError(f"{url!r:.80}: a bucket's name has 3-63 lower-case letters, digits, inner dots or hyphens")
    return url


ReadableFile = Annotated[Path, AfterValidator(_readable)]
CertificateFile = Annotated[ReadableFile, AfterValidator(_certificates)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]


HEADER_SAFE: Final = r"[\x21-\x7e]+"
"""What an HTTP header carries unencoded: printable ASCII without blanks."""


def read_secret(path: Path) -> str:
    """The secret in a file, without the newline that editors leave at its end."""
    return path.read_text(encoding="utf-8").strip()


def read_token(path: Path) -> str:
    """The one token in a file. ValueError, without the content, if a header cannot carry it."""
    try:
        token = read_secret(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    except UnicodeDecodeError:
        token = ""
    if not re.fullmatch(HEADER_SAFE, token):  # the HTTP client would also refuse it, but quote the secret
        raise ValueError(f"{path} must hold one token of printable ASCII")
    return token


class SettingsGroup(BaseModel):
    """Base of one group of settings: unknown fields are refused, values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class BusSettings(SettingsGroup):
    """Address of the event bus and the service's credentials."""

    url: Annotated[str, AfterValidator(_bus_url)] = Field(
        "nats://127.0.0.1:4222", description="nats://HOST:PORT, tls://HOST:PORT, or memory://"
    )
    credentials_file: ReadableFile | None = Field(None, description="file with one line USER:PASSWORD")
    ca_file: CertificateFile | None = Field(None, description="PEM certificates to trust for tls://")


class StoreSettings(SettingsGroup):
    """Address of the object store and its credentials."""

    url: Annotated[str, AfterValidator(_store_url)] = Field(
        "s3://zelda",
        description="s3://PREFIX (buckets PREFIX-episodes, PREFIX-models), bucket://NAME (one for both), file:///DIR",
    )
    endpoint: HttpUrl | None = Field(None, description="S3 server, e.g. http://127.0.0.1:8333")
    access_key_file: ReadableFile | None = Field(None, description="file with the access key")
    secret_key_file: ReadableFile | None = Field(None, description="file with the secret key")
    ca_file: CertificateFile | None = Field(None, description="PEM certificates to trust for https://")
    region: str = Field("us-east-1", min_length=1, max_length=40, description="S3 region; most servers ignore it")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        wanted = ("endpoint", "access_key_file", "secret_key_file")
        missing = [name for name in wanted if getattr(self, name) is None]
        if missing and self.url.startswith(("s3://", "bucket://")):
            raise ValueError(f"{', '.join(missing)} must be set for an S3 store; or set url to file:///DIR")
        return self


class HttpSettings(SettingsGroup):
    """Address of /livez, /readyz, /metrics and the service's own routes."""

    host: str = Field(
        "127.0.0.1", min_length=1, description="address to listen on; `::` is every IPv6 and IPv4 address"
    )
    port: int = Field(8080, ge=0, le=65_535, description="port to listen on; 0 takes a free port and logs it")


class ShutdownSettings(SettingsGroup):
    """How a service ends."""

    drain_s: float | None = Field(
        None,
        ge=1,
        le=3_600,
        description="seconds to finish running work after SIGTERM, at least 15 below the supervisor's limit; "
        "default: 25, of the trainer 70",
    )


class LogSettings(SettingsGroup):
    """Logging on standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="lowest level that is logged")
    format: Literal["json", "console"] = Field("json", description="json for machines, console for people")


class TracingSettings(SettingsGroup):
    """Where traces are sent: spans of events and calls to models."""

    endpoint: HttpUrl | None = Field(
        None, description="OpenTelemetry collector (OTLP over HTTP), e.g. http://127.0.0.1:4318; default: no spans"
    )
    ca_file: CertificateFile | None = Field(None, description="PEM certificates to trust for https://")
    sample_ratio: float = Field(
        1.0, ge=0, le=1, description="share of traces that are sent; a trace is sent whole or not at all"
    )


class RomSettings(SettingsGroup):
    """The user's own ROM image, for services that run an emulator. Bramble needs none."""

    file: ReadableFile | None = Field(
        None, description="ROM image of Oracle of Seasons (US); never part of a container image"
    )


class ProcessSettings(BaseSettings):
    """Base of a process's settings: reads `ZELDA_*` variables, nested by two underscores."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter=NESTED, extra="ignore", frozen=True, hide_input_in_errors=True
    )


class BusOnlySettings(ProcessSettings):
    """For commands that need only the bus; they ignore the variables of other groups."""

    bus: BusSettings = Field(default_factory=BusSettings)


class ServiceSettings(ProcessSettings):
    """Settings of every service. A service derives from it and adds its own groups as fields."""

    bus: BusSettings = Field(default_factory=BusSettings)
    # Created by validation, so that a missing field is reported with the name of its variable.
    store: StoreSettings = Field(default_factory=lambda: cast(StoreSettings, {}), validate_default=True)
    http: HttpSettings = Field(default_factory=HttpSettings)
    shutdown: ShutdownSettings = Field(default_factory=ShutdownSettings)
    log: LogSettings = Field(default_factory=LogSettings)
    tracing: TracingSettings = Field(default_factory=TracingSettings)
