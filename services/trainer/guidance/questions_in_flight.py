"""The cap on suggestions in flight: one count per process that plays, shared by its environments."""

import threading


class QuestionsInFlight:
    """Counts questions until their answers came. Answers arrive in another thread."""

    def __init__(self, most: int) -> None:
        self._most, self._count, self._lock = most, 0, threading.Lock()

    def take(self) -> bool:
        """Count one more question; False if the cap is reached."""
        with self._lock:
            if self._count >= self._most:
                return False
            self._count += 1
            return True

    def release(self) -> None:
        """An answer came."""
        with self._lock:
            self._count -= 1

    @property
    def full(self) -> bool:
        """Whether the cap is reached."""
        return self._count >= self._most
