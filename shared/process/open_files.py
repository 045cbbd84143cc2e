"""The number of files and connections that this process may open."""

import resource
from typing import Final

WANTED: Final = 16_384  # many systems begin with 1,024, which a page with many viewers would use up


def raise_limit(wanted: int = WANTED) -> int:
    """Raise this process's limit of open files to `wanted`, as far as the system permits; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= allowed:
        return wanted if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return allowed
