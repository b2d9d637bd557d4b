"""A member of a `World` whose batch defers one key, and the record of that key."""

from dataclasses import replace

from coordinator.progress.ends import Ends
from coordinator.progress.failing import FailingRecord
from coordinator.redis.replies import Caller
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import HashRange
from store_world import TP, World, lane, offset

EARLY = replace(offset(lane("aa.1", 0, 10)), early=1)
RECORD = FailingRecord(TP, 5, 7, 2, 1_700_000_000_000, False, "ValueError", "no such order")
KEY = HashRange(5, 5)
TO_7: Ends = {TP: HashMap.of(KEY, 7)}


def reading(world: World) -> Caller:
    """A member that reads a batch."""
    me = world.owner()
    world.store.positions.authorize(me, EARLY)
    return me
