"""Time that goes on while the machine sleeps, and waits that a stop can end."""

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds that only grow, and waiting."""

    def now_ms(self) -> int:
        """Milliseconds since a fixed moment; goes on while the machine sleeps."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970, as Spark's triggers count them; may jump."""

    def wait(self, ms: int) -> None:
        """Let `ms` pass, or less if the service is closed or something calls `wake`."""

    def wake(self) -> None:
        """End the wait of another thread, or else its next one."""


class BootClock:
    """The real clock of this host: time since boot, suspended time included."""

    def __init__(self) -> None:
        self._over, self._closed = threading.Event(), False

    def now_ms(self) -> int:
        """Milliseconds since boot."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def wait(self, ms: int) -> None:
        """Sleep, unless or until `wake` or `close`."""
        if not self._closed:
            self._over.wait(ms / 1000)
            self._over.clear()

    def wake(self) -> None:
        """End the wait of another thread, or else its next one."""
        self._over.set()

    def close(self) -> None:
        """End every wait, now and later."""
        self._closed = True
        self._over.set()
