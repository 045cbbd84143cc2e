"""Replaces time.sleep in a process under libfaketime, which breaks it while the clock is stepped.

Python sleeps until a monotonic time; libfaketime 0.9.10 converts that time as if it were the wall clock's, and the call
fails with EINVAL. A wait for nothing takes a duration instead. Python imports this file from PYTHONPATH when it starts.
"""

import select
import time
from typing import SupportsIndex


def _sleep(seconds: float | SupportsIndex) -> None:
    select.select((), (), (), float(seconds))


time.sleep = _sleep
