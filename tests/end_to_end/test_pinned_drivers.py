"""Pinned drivers of one group, by spark-submit: a quarter each, a spare for one that is killed, and two misfits."""

from coordinator.values.key_hash import cuts
from coordinator.values.ranges import HashRange
from drivers.driver import Driver
from drivers.fleet import SESSION_S, Fleet
from verdict import require

QUARTERS, HALVES = cuts(4), cuts(2)
SPARE_S = 30  # a look at the group and an acquisition, on a machine that is busy otherwise
SOON_S = 120  # a driver starts and fails, on a machine that is busy otherwise
FLEET = {"pace": "3 seconds"}


def owned(fleet: Fleet, *drivers: Driver) -> list[tuple[HashRange, ...]]:
    """The ranges of each driver."""
    return [fleet.held(driver).ranges[0] for driver in drivers]


def logged(driver: Driver, words: str) -> bool:
    return words in driver.log.read_text()


def fails(fleet: Fleet, driver: Driver, words: str) -> None:
    """A driver ends with an error, and the others go on."""
    process = driver.process
    fleet.until(lambda: process is not None and process.poll() is not None, f"{driver.name} ends", SOON_S)
    assert logged(driver, words), driver.log.read_text()[-4_000:]
    fleet.drivers.pop(driver.name)


def test_a_spare_with_an_empty_checkpoint_takes_the_quarter_of_a_killed_driver(fleet: Fleet) -> None:
    with fleet.producing():
        drivers = [fleet.join(f"q{number}", [quarter]) for number, quarter in enumerate(QUARTERS)]
        fleet.until(lambda: owned(fleet, *drivers) == [(q,) for q in QUARTERS], "each has its quarter")
        spare = fleet.start("spare", [QUARTERS[1]])
        fleet.until(lambda: logged(spare, "this query is its spare, and waits"), "the spare waits")
        assert owned(fleet, *drivers) == [(q,) for q in QUARTERS]
        held, batch_s = fleet.held(drivers[1]), fleet.longest_batch_s
        drivers[1].kill()
        assert fleet.until(lambda: fleet.working(spare), "the spare owns ranges") <= SESSION_S + batch_s + SPARE_S
        assert fleet.delivered(held) > 0  # in the first batch of a new driver, which takes as long as it takes
        assert owned(fleet, spare) == [(QUARTERS[1],)]
    fleet.until(lambda: fleet.everything_arrived, "every record is in a sink")
    require(fleet.outcome().good, fleet.outcome())
    fails(fleet, fleet.start("overlaps", [HALVES[0]]), "OVERLAPPING_RANGES")
    fails(fleet, fleet.start("assigned"), "INCONSISTENT_GROUP_PROTOCOL")
    rest = [drivers[0], spare, *drivers[2:]]
    assert owned(fleet, *rest) == [(q,) for q in QUARTERS]
    assert fleet.working(*rest)
