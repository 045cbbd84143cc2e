"""One route as a configuration file names it: where a model is served, with which credentials, timeouts and limits."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from shared.config.settings import HEADER_SAFE, CertificateFile, HttpUrl, ReadableFile

HeaderValue = Annotated[str, Field(min_length=1, max_length=200, pattern=f"^{HEADER_SAFE}$")]


class RouteSpec(BaseModel):
    """One OpenAI-compatible address with its timeouts and limits."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: HttpUrl = Field(description="base address with /v1, e.g. the gateway's status.url + /v1")
    direct_url: HttpUrl | None = Field(
        None, description="the model's own service, bypassing the gateway; see use_direct"
    )
    token_file: ReadableFile | None = Field(None, description="bearer token; read for every request because it rotates")
    ca_file: CertificateFile | None = Field(None, description="PEM certificates to trust; else the system's")
    proxy: HttpUrl | None = Field(
        None, description="HTTP proxy on the way to `url`, such as a cluster's egress proxy; `direct_url` needs none"
    )
    objective: HeaderValue | None = Field(None, description="llm-d inference objective (priority)")
    fairness: HeaderValue | None = Field(None, description="llm-d fairness id; default is the run's id")
    total_timeout_s: float = Field(60, gt=0, le=600, description="timeout of a call, all attempts together")
    longest_timeout_s: float = Field(
        600, gt=0, le=3_600, description="timeout of a call on a slow route: the limit follows the time that calls take"
    )
    connect_timeout_s: float = Field(5, gt=0, le=60)
    attempts: int = Field(2, ge=1, le=2, description="quick attempts; the bus makes the slow retries")
    max_concurrent: int = Field(
        32, ge=1, le=1_000, description="upper limit of calls in flight; the route adapts below it"
    )
    wait_s: float = Field(30, gt=0, le=600, description="longest wait for a free slot while no call is answered")
    breaker_failures: int = Field(10, ge=1, le=1_000)
    breaker_open_s: float = Field(30, gt=0, le=3_600)

    def address(self, use_direct: bool) -> str:
        """Return the base address to use, without a trailing slash."""
        return (self.direct_url if use_direct and self.direct_url else self.url).rstrip("/")

    def proxy_of(self, use_direct: bool) -> str | None:
        """Return the proxy on the way to that address, or None."""
        return None if use_direct and self.direct_url else self.proxy
