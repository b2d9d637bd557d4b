"""The time until the survivor of two applications has caught up: after a kill, a SIGTERM, and `query.stop()`.

Also how many records came twice, and both figures of other libraries after a kill.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from uuid import uuid4

from bench.functions import NOTES, PASSED, wait_4_ms_and_note
from bench.rivals import RIVALS, Rival, java_compiles, running
from bench.table import Result, duration
from bench.world import World
from drivers import slow_job
from drivers.driver import JOB, Driver
from drivers.fleet import Fleet
from spark_coop_source import map_keys
from topics import Record

RECORDS, FEW, KEYS, MS = 24_000, 6_000, 1_700, 4
SLOTS, HAND_OVER_S, MORE_BATCHES = 2, 5, 3

_IN_THE_READ = {**map_keys(wait_4_ms_and_note, PASSED)}
_BEHIND = {slow_job.WORK: str(MS)}

SETTINGS = {"default options": (45, 10), "a session of 5 s, a budget of 2 s": (5, 2)}
"""The session and the time budget, in seconds."""

WAYS: Mapping[str, tuple[Callable[[Driver], None], int | None]] = {
    "kill -9": (Driver.kill, None),
    "SIGTERM": (lambda driver: driver.running.terminate(), HAND_OVER_S),
    "query.stop()": (Driver.ask_to_stop, HAND_OVER_S),
}
"""How one of the two ends, and how many seconds its ranges may then wait; None: its session."""


def p17(world: World) -> Iterator[Result]:
    """P17: two applications, one partition, 4 ms a record; one ends in a large batch."""
    for (setting, seconds), (where, of_work) in product(
        SETTINGS.items(), (("in the read", _IN_THE_READ), ("behind the read", _BEHIND))
    ):
        session_s, budget_s = seconds
        for way, (end, hands_over_s) in WAYS.items():
            options = {"batchTimeBudget": f"{budget_s}s", "sessionTimeout": str(1000 * session_s), **of_work}
            took, unread, twice, done_twice = _caught_up(world, options, end)
            waits_s = session_s if hands_over_s is None else hands_over_s
            work_s = waits_s + unread * MS / 1000 / SLOTS
            aim = (work_s + MORE_BATCHES * budget_s) / work_s
            work = (
                f"two applications, {setting}, {MS} ms a record {where}, one ends by {way}: until the other has it all"
            )
            processed = f", {done_twice} were processed twice" if of_work is _IN_THE_READ else ""
            came = f"{unread} records were unread, {twice} came twice in finished batches{processed}"
            note = f"{came}; its ranges may wait {waits_s} s"
            yield Result("P17", work, "wait + work / slots", duration(took), duration(work_s), took / work_s, aim, note)


def p17_rivals(world: World) -> Iterator[Result]:
    """P17r: the same for two processes of another library, with its default settings; one is killed."""
    for rival in RIVALS if java_compiles() else ():
        took, unread, twice = _rival_caught_up(world, rival)
        work_s = rival.waits_s + unread * MS / 1000 / SLOTS
        work = f"two processes of {rival.name}, {SLOTS} records at once each, {MS} ms a record, one is killed"
        note = f"{unread} records were unread, {twice} were processed twice; its records may wait {rival.waits_s} s"
        yield Result("P17r", work, "wait + work / slots", duration(took), duration(work_s), took / work_s, None, note)


def _rival_caught_up(world: World, rival: Rival) -> tuple[float, int, int]:
    """As `_caught_up`. The process that has read most is killed."""
    records = FEW if world.quick else RECORDS
    topic, group = world.kafka.create_topic("takeover"), f"takeover-{uuid4().hex[:8]}"
    world.kafka.produce(topic, [Record(b"%d" % (1_000 * MS), b"key-%d" % (i % KEYS)) for i in range(records)])
    files = [world.folder / f"{group}-{name}" for name in "ab"]
    with ExitStack() as stack:
        both = [stack.enter_context(running(world, rival, topic, records)) for _ in files]
        for each, file in zip(both, files, strict=True):
            each.ask(f"{SLOTS} {group} {file}")
        _until(lambda: len(_done(files)) > records / 10)
        most = max(range(len(files)), key=lambda n: len(_done(files[n : n + 1])))
        both[most].process.kill()
        unread, began = records - len({*_done(files)}), time.monotonic()
        _until(lambda: len({*_done(files)}) == records)
        return time.monotonic() - began, unread, len(_done(files)) - records


def _done(files: list[Path]) -> list[str]:
    """The offsets of the records that are done, in whole lines."""
    return [
        line for file in files if file.exists() for line in file.read_text().splitlines(keepends=True) if "\n" in line
    ]


def _until(happened: Callable[[], bool], seconds: float = 900) -> None:
    """`RuntimeError` if the time runs out."""
    until = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > until:
            raise RuntimeError(f"a rival has not caught up within {seconds:g} s")
        time.sleep(0.1)


def _caught_up(world: World, options: Mapping[str, str], end: Callable[[Driver], None]) -> tuple[float, int, int, int]:
    """The seconds, the records that were unread when one of the two ended, and those that came twice.

    First those in two finished batches, then those that the function in the read had done before.
    """
    group = f"takeover-{uuid4().hex[:8]}"
    folder = world.folder / group
    folder.mkdir()
    job = JOB.with_name("slow_job.py") if slow_job.WORK in options else JOB
    fleet = Fleet(world.kafka, world.redis.address, group, folder, options=options, job=job)
    try:
        first, other = fleet.join("a"), fleet.join("b")
        fleet.until(lambda: fleet.shared(first, other), "both share the partition")
        records = FEW if world.quick else RECORDS
        fleet.kafka.produce(fleet.topic, [Record(b"%d" % i, b"key-%d" % (i % KEYS), 0) for i in range(records)])
        fleet.sent[0] = [(f"key-{i % KEYS}", str(i)) for i in range(records)]
        fleet.until(lambda: first.finished > 1 and len(fleet.arrived) > records / 10, "both are at work")
        unread, began = records - len(fleet.arrived), time.monotonic()
        end(first)
        fleet.until(lambda: fleet.everything_arrived, "the survivor has caught up", 900)
        took, noted = time.monotonic() - began, _done([*folder.glob(f"*/{NOTES}*")])
        done = len({*noted})
        if slow_job.WORK not in options and done != records:
            raise RuntimeError(f"{done} of {records} records are noted as processed")
        return took, unread, fleet.deliveries - records, len(noted) - done
    finally:
        fleet.end()
