"""The command `scripts/chaos`: real drivers of one group, killed at random moments and at named points of the cycle."""

import argparse
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from random import Random

import chaos_of_keys
import processes
import servers
import temporary
from drivers import points
from drivers.driver import Driver
from drivers.fleet import Fleet
from quiet import quiet
from topics import Kafka

_DRIVERS = ("a", "b", "c")
_LONGEST_WAIT_S = 3.0
_PACE = "1 second"
ANY_MOMENT = "at any moment"


def arguments() -> argparse.Namespace:
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/chaos",
        description="Three drivers share a topic of one partition, then one of two; each kill is a SIGKILL for all"
        " processes of one of them. At the end every record must be in a sink, each key in order.",
    )
    parser.add_argument("--kills", type=int, default=30, metavar="N", help="number of kills (default 30)")
    parser.add_argument(
        "--seed",
        type=int,
        default=None,
        metavar="S",
        help="decides each kill (default: random)",
    )
    parser.add_argument(
        "--then",
        choices=("park", "dead_letter"),
        help="instead: two drivers whose function fails on some records, with this end after the last attempt",
    )
    return parser.parse_args()


def main() -> int:
    """Run the kills; 0 if nothing was lost, out of order or repeated without a reason."""
    wanted = arguments()
    seed = wanted.seed if wanted.seed is not None else time.time_ns() % 100_000
    random = Random(seed)  # noqa: S311 - it must replay
    log = partial(_log, time.monotonic())
    log(f"{wanted.kills} kills, --seed {seed}")
    with quiet("kafka"), processes.ending_politely(), ExitStack() as stack:
        stack.enter_context(temporary.of_children())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coop-kafka-chaos-")))
        kafka, redis = stack.enter_context(servers.kafka_and_valkey(folder))

        def fleet(partitions: int) -> Fleet:
            name = f"chaos-{uuid.uuid4().hex[:8]}"
            (folder / name).mkdir()
            made = Fleet(Kafka(kafka.address), redis.address, name, folder / name, partitions, pace=_PACE)
            stack.callback(made.end)
            return made

        if wanted.then:
            good = _of_keys(fleet(1), wanted, random, log)
        else:
            good = True
            for partitions, kills in ((1, (wanted.kills + 1) // 2), (2, wanted.kills // 2)):
                good &= _kill_and_judge(fleet(partitions), kills, random, log)
    if not good:
        log(f"a promise is broken; --kills {wanted.kills} --seed {seed} draws the same kills, not the same moments")
    return 0 if good else 1


def _of_keys(fleet: Fleet, wanted: argparse.Namespace, random: Random, log: Callable[[str], None]) -> bool:
    then, dead_letters = wanted.then, fleet.kafka.create_topic("dead")
    fleet.options = chaos_of_keys.options(then, fleet.folder, dead_letters)
    fleet.feeding = chaos_of_keys.FEEDING

    def wait(happened: Callable[[], bool], what: str) -> None:
        fleet.until_attended(happened, what, log)

    return chaos_of_keys.kill_and_judge(fleet, then, dead_letters, wanted.kills, random, wait, log)


def _log(began: float, text: str) -> None:
    print(f"{time.monotonic() - began:5.0f} s  {text}", flush=True)


def _kill_and_judge(fleet: Fleet, kills: int, random: Random, log: Callable[[str], None]) -> bool:
    with fleet.producing():
        drivers = [fleet.join(name) for name in _DRIVERS]
        fleet.until_attended(lambda: fleet.working(*drivers), "all drivers share the topic", log)
        for number in range(kills):
            driver, point = random.choice(drivers), random.choice((*points.POINTS, ANY_MOMENT))
            where = _come_to(fleet, driver, point, random, log)
            log(f"{fleet.partitions} partitions, kill {number + 1}: {driver.name} {where}")
            driver.kill()
            driver.start()
        fleet.until_attended(lambda: fleet.working(*drivers), "all drivers are back", log)
    fleet.until_attended(lambda: fleet.everything_arrived, "every record is in a sink", log)
    before = fleet.outcome()
    fleet.end()
    after = fleet.outcome()
    outcome = after if before.good else before
    log(str(outcome))
    for line in () if outcome.good else (*outcome.unexplained[:10], *fleet.events()):
        log(f"  {line}")
    return outcome.good


def _come_to(fleet: Fleet, driver: Driver, point: str, random: Random, log: Callable[[str], None]) -> str:
    """Wait until the driver works and has reached the point; returns its place then."""
    fleet.until_attended(lambda: fleet.working(driver), f"{driver.name} works again", log)
    if point == ANY_MOMENT:
        time.sleep(random.uniform(0, _LONGEST_WAIT_S))
    else:
        points.arm(driver.folder, point)
        fleet.until_attended(driver.stands, f"{driver.name} comes {point}", log)
    return point


if __name__ == "__main__":
    sys.exit(main())
