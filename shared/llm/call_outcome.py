"""Classifies the outcome of one HTTP call: answer, overload, outage or refusal; and decides when to retry."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

Kind = Literal["answer", "overload", "outage", "refused"]

OVERLOAD = (429, 503)  # llm-d's flow control: 429 contended, 503 no endpoint
TIMED_OUT = 408
FIRST_OUTAGE = 500  # and above: proxies invent their own codes (520 to 529); changed settings fix none of them
MAX_RETRY_AFTER_S = 300.0  # an hour would stop the run; the breaker covers long outages
ATTEMPT_S = 1.0  # what an attempt needs at least: a shorter one could only time out


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """A retry cannot fix `refused`: wrong credentials, model or request. `retry_after_s` is the server's request."""

    kind: Kind
    detail: str
    retry_after_s: float | None = None


def classify_response(status: int, headers: Mapping[str, str], now: datetime) -> CallOutcome:
    """Classify a response. Header names must be lower-case, or `headers` case-insensitive."""
    if status == 200:
        return CallOutcome("answer", "200")
    reason = headers.get("x-llm-d-request-dropped-reason", "")
    detail = f"HTTP {status}" + (f" ({reason[:60]})" if reason.isprintable() and reason else "")
    if status in OVERLOAD:
        return CallOutcome("overload", detail, retry_after(headers.get("retry-after"), now))
    if status == TIMED_OUT or status >= FIRST_OUTAGE:
        return CallOutcome("outage", detail, retry_after(headers.get("retry-after"), now))
    return CallOutcome("refused", detail)


def retry_after(value: str | None, now: datetime) -> float | None:
    """Return the clamped seconds of a Retry-After header (RFC 9110: number or date); None if absent or invalid."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), MAX_RETRY_AFTER_S)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):  # OverflowError: day or year out of range
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return min(max(0.0, (when - now).total_seconds()), MAX_RETRY_AFTER_S)


def pause_before_retry(outcome: CallOutcome, left_s: float, draw: float) -> float | None:
    """Return the seconds to wait before the second attempt, or None for no second attempt.

    `left_s` is the rest of the call's total time; `draw` in [0, 1) is the jitter. The attempt needs a second after
    the wait, else it could only time out. Slow retries belong to the bus.
    """
    if outcome.kind in ("answer", "refused"):
        return None
    asked = outcome.retry_after_s if outcome.retry_after_s is not None else 0.25
    pause = asked + draw * max(0.25, asked * 0.1)
    return pause if pause + ATTEMPT_S <= left_s else None
