"""Real drivers of one group, by spark-submit: killed, stopped, added, frozen; judged by what all of them wrote."""

import signal

from drivers import points
from drivers.driver import Driver
from drivers.fleet import SESSION_S, Fleet
from verdict import require

SPARE_S = 30  # an assignment, an acquisition and a plan, on a machine that is busy otherwise
SOON_S = 60  # a JVM ends, on a machine that is busy otherwise


def kill(fleet: Fleet, driver: Driver) -> None:
    """SIGKILL; after a session, a batch in which others still are and the one they do then its keys go on elsewhere."""
    held, batch_s = fleet.held(driver), fleet.longest_batch_s
    driver.kill()
    assert held.size > 0
    assert fleet.delivered(held) <= SESSION_S + 2 * batch_s + SPARE_S


def stop(fleet: Fleet, driver: Driver) -> None:
    """A polite stop, with nothing under way: it leaves, and no range of it is left to the end of its lease."""
    fleet.until(lambda: fleet.everything_confirmed, "all is confirmed")
    held = fleet.held(driver)
    driver.ask_to_stop()
    fleet.until(driver.stopped, "a polite stop")
    events = fleet.events_of(driver)
    assert held.size > 0
    assert events[-1].kind == "leave", events
    assert not {"lost", "expire"} & {event.kind for event in events}, events
    assert fleet.held(driver).size == 0


def end_by(number: signal.Signals, fleet: Fleet, driver: Driver) -> None:
    """A signal to the JVM, with nothing under way: the driver leaves, long before its lease ends."""
    fleet.until(lambda: fleet.everything_confirmed, "all is confirmed")
    held, before = fleet.held(driver), len(fleet.events_of(driver))
    driver.running.send_signal(number)
    fleet.until(lambda: fleet.events_of(driver)[-1].kind == "leave", f"it leaves after {number.name}", SOON_S)
    assert held.size > 0
    assert not {"lost", "expire"} & {event.kind for event in fleet.events_of(driver)[before:]}
    assert fleet.held(driver).size == 0


def freeze_in_a_batch(fleet: Fleet, driver: Driver) -> None:
    """SIGSTOP until others own its ranges, then SIGCONT: it is fenced, and comes back with new lane epochs."""
    points.arm(driver.folder, points.AFTER_PARTITIONS)
    fleet.until(driver.stands, "it is in a batch")
    held = fleet.held(driver)
    driver.freeze()
    points.disarm(driver.folder)
    assert fleet.delivered(held) > 0
    fleet.until(lambda: fleet.without(driver.member), "others own all that the frozen one had")
    driver.wake()
    fleet.until(
        lambda: {"lost", "fence"} <= {event.kind for event in fleet.events_of(driver)}, "the one that woke is fenced"
    )
    fleet.until(lambda: fleet.working(driver), "the one that woke works again")
    assert not held.epochs & fleet.held(driver).epochs


def test_three_drivers_on_one_partition_survive_kills_and_freezes_and_keep_every_key_in_order(
    fleet: Fleet,
) -> None:
    with fleet.producing():
        killed, stopped, stays = (fleet.join(name) for name in ("killed", "stopped", "stays"))
        fleet.until(lambda: fleet.shared(killed, stopped, stays), "three drivers share one partition")
        kill(fleet, killed)
        added = fleet.start("added")
    stop(fleet, stopped)
    with fleet.producing():
        fleet.until(lambda: fleet.shared(stays, added), "the added one has its half, beside the one that stays")
        freeze_in_a_batch(fleet, stays)
        points.arm(stays.folder, points.AFTER_SINK)
        fleet.until(stays.stands, points.AFTER_SINK)
        stays.kill_jvm()
        fleet.until(lambda: fleet.events_of(stays)[-1].kind == "leave", "its reader process leaves")
        stays.start()
        fleet.until(lambda: fleet.working(stays, added), "it is back on its checkpoint")
    fleet.until(lambda: fleet.everything_arrived, "every record is in a sink")
    require(fleet.outcome().good, fleet.outcome())
    end_by(signal.SIGINT, fleet, added)
    end_by(signal.SIGTERM, fleet, stays)
