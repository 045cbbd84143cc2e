"""What the outcome of one HTTP call means: answer, overload, outage or our own mistake; and when to try again."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

Kind = Literal["answer", "overload", "outage", "refused"]

OVERLOAD = (429, 503)  # llm-d's flow control: 429 contended, 503 no endpoint
TIMED_OUT = 408
FIRST_OUTAGE = 500  # all from here on, since proxies make up their own (520 to 529): none is cured by settings
LONGEST_RETRY_AFTER_S = 300.0  # a server that asks for an hour would stop the run; the breaker covers long outages


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """`refused` will not get better by trying again: wrong credentials, model or request."""

    kind: Kind
    detail: str
    retry_after_s: float | None = None


def classify_response(status: int, headers: Mapping[str, str], now: datetime) -> CallOutcome:
    """Read status and headers of a response. Header names are looked up in lower case."""
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
    """Seconds of a Retry-After header (a number or a date), clamped; None if absent or unreadable."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), LONGEST_RETRY_AFTER_S)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):  # the last: a day or year that no clock can hold
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return min(max(0.0, (when - now).total_seconds()), LONGEST_RETRY_AFTER_S)


def pause_before_retry(outcome: CallOutcome, left_s: float, draw: float, *, needs_s: float = 1.0) -> float | None:
    """Seconds to wait before the second attempt, or None if there must not be one.

    `left_s` is what remains of the call's total time; `draw` in [0, 1) spreads clients apart. The attempt needs
    `needs_s` after the wait, else it could only time out; the slow retries are the bus's work.
    """
    if outcome.kind in ("answer", "refused"):
        return None
    asked = outcome.retry_after_s if outcome.retry_after_s is not None else 0.25
    pause = asked + draw * max(0.25, asked * 0.1)
    return pause if pause + needs_s <= left_s else None
