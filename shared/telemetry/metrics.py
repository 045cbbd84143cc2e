"""Creates metrics named `zelda_<part>_<what>_<unit>`. Never label by segment or any other unbounded set.
Label by run only what its owner removes when the run has ended.

The module that owns a metric creates it once per process, at import; /metrics serves it.
"""

import re
from collections.abc import Sequence
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

_NAME: Final = re.compile(r"^[a-z][a-z0-9]*(_[a-z0-9]+)+$")
# Handlers take from a millisecond (memory bus) to half an hour (reward model training).
SECONDS: Final = (0.001, 0.005, 0.02, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800)


def counter(name: str, what: str, labels: Sequence[str] = ()) -> Counter:
    """A counter; its name ends in `_total`."""
    return Counter(_full(name, "_total"), what, labels)


def gauge(name: str, what: str, labels: Sequence[str] = ()) -> Gauge:
    """A gauge; its name ends in its unit."""
    return Gauge(_full(name, ""), what, labels)


def seconds(name: str, what: str, labels: Sequence[str] = ()) -> Histogram:
    """A histogram of durations; its name ends in `_seconds`."""
    return Histogram(_full(name, "_seconds"), what, labels, buckets=SECONDS)


def _full(name: str, suffix: str) -> str:
    if not _NAME.fullmatch(name) or name.startswith("zelda") or not name.endswith(suffix):
        raise ValueError(f"metric {name!r}: use <part>_<what>{suffix or '_<unit>'} in lower case, without the prefix")
    return f"zelda_{name}"
