"""Settings of the rules judge: address, noise of its votes, and simulated faults."""

import argparse
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_PORT = 8089


class Behaviour(BaseModel):
    """Noise, speed and faults. The defaults are exact, immediate and healthy."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    vote_noise: float = Field(0.0, ge=0, le=10, description="standard deviation of a vote before rounding, in votes")
    latency_ms: float = Field(0.0, ge=0, le=600_000, description="time to answer one request")
    jitter: float = Field(0.0, ge=0, le=1, description="random share of the latency")
    max_concurrent: int = Field(1_000, ge=1, description="requests served concurrently; others queue")
    max_waiting: int = Field(100_000, ge=0, description="queued requests; others are refused with 429")
    error_rate: float = Field(0.0, ge=0, le=1, description="share of requests answered with an error")
    error_status: int = Field(500, ge=400, le=599, description="the status of those errors")
    retry_after: int | None = Field(None, ge=0, description="Retry-After header of errors and refusals, in seconds")
    garbage_rate: float = Field(0.0, ge=0, le=1, description="share of choices that do not follow the schema")
    first_byte_s: float = Field(0.0, ge=0, description="delay before the first byte of an answer")
    drip_s: float = Field(0.0, ge=0, description="delay before each byte of an answer")
    obey_texts: bool = Field(False, description="plan what text of the game orders (for tests of prompt injection)")
    ignore_n: bool = Field(False, description="answer with one choice for every n")
    usage: Literal["full", "plain", "none"] = Field("full", description="plain: without cached tokens")


class RulesServerSettings(BaseModel):
    """The process: address, model names, limits, and behaviour."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = "127.0.0.1"
    port: int = Field(DEFAULT_PORT, ge=0, le=65_535)
    models: tuple[str, ...] = ("rules", "qwen25-7b", "qwen25-32b", "qwen25-vl-32b")
    context_tokens: int = Field(32_768, ge=256, description="longest prompt, in tokens by its own count")
    seed: int = 0
    control: bool = Field(False, description="allow PUT /behaviour to change the behaviour at run time (for tests)")
    behaviour: Behaviour = Behaviour()


def parse_arguments(argv: Sequence[str]) -> RulesServerSettings:
    """Parse command-line options; `--help` explains each."""
    parser = argparse.ArgumentParser(prog="python -m services.judge.rules_server", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"default {DEFAULT_PORT}; 0 picks a free port")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", action="append", help="a model name that it serves; repeat for more")
    parser.add_argument("--context-tokens", type=int, default=32_768)
    parser.add_argument("--control", action="store_true", help="allow PUT /behaviour (tests only)")
    for name, field in Behaviour.model_fields.items():
        option = "--" + name.replace("_", "-")
        if field.annotation is bool:
            parser.add_argument(option, action="store_true", help=field.description)
        else:
            parser.add_argument(option, help=f"{field.description} (default {field.default})")
    given = {
        name: value for name, value in vars(parser.parse_args(argv)).items() if value is not None and value is not False
    }
    behaviour = {name: given.pop(name) for name in Behaviour.model_fields if name in given}
    models = {"models": tuple(given.pop("model"))} if "model" in given else {}
    return RulesServerSettings.model_validate({**given, **models, "behaviour": behaviour})
