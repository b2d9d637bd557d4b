"""The clock of a host: it only grows, and closing it ends every wait."""

from threading import Thread

from coordinator.values.clock import BootClock


def test_time_grows_by_the_length_of_a_wait() -> None:
    clock = BootClock()
    before = clock.now_ms()
    clock.wait(20)
    assert clock.now_ms() - before >= 19


def test_closing_ends_a_wait_and_all_later_ones() -> None:
    clock = BootClock()
    waiting = Thread(target=clock.wait, args=(3_600_000,), daemon=True)
    waiting.start()
    clock.close()
    waiting.join(60)
    assert not waiting.is_alive()
    clock.wait(3_600_000)


def test_waking_ends_one_wait() -> None:
    clock = BootClock()
    clock.wake()
    clock.wait(3_600_000)
    before = clock.now_ms()
    clock.wait(20)
    assert clock.now_ms() - before >= 19
