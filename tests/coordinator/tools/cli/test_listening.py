"""How long a verb that serves HTTP runs: until the first Ctrl-C or SIGTERM, whenever it comes."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from coordinator.tools.cli.listening import stopping

PATIENCE_S = 5.0


@contextmanager
def in_time() -> Iterator[None]:
    """Ends a wait that no signal ends."""

    def give_up(*_: object) -> None:
        raise TimeoutError("still waiting")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def steps_of(run: Callable[[], int], interrupt: Callable[[int], None]) -> tuple[int, int]:
    """The result of `run`, and how many lines and calls of Python it passed; `interrupt(n)` runs before the nth."""
    passed = 0

    def trace(_: FrameType, event: str, __: Any) -> Any:
        nonlocal passed
        if event in ("call", "line"):
            passed += 1
            interrupt(passed)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return run(), passed
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait_wherever_it_comes(number: signal.Signals) -> None:
    """Also while the wait holds a lock that the handler needs."""

    def waiting() -> int:
        return until_stopped()

    with stopping() as until_stopped:
        signal.raise_signal(number)  # before the wait
        found, most = steps_of(waiting, lambda _: None)
    assert (found, most > 1) == (number, True)
    for step in range(1, most + 1):

        def strike(passed: int, at: int = step) -> None:
            if passed == at:
                signal.raise_signal(number)

        with in_time(), stopping() as until_stopped:
            found, _ = steps_of(waiting, strike)
        assert found == number
