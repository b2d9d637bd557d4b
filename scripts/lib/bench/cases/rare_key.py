"""One record in a thousand takes ten seconds behind the read: how far behind the others are after five minutes."""

import time
from collections.abc import Iterator

from bench.cases.slots import KEYS, WORK_US
from bench.feed import Feed, keys
from bench.table import Result, duration
from bench.waiting_stream import Story, behind, counted
from bench.world import World

SLOTS, PER_SECOND, WATCHED_S = 8, 500.0, 300.0
SLOW, SLOW_US = "k7", 10_000_000
MANY = 1_000


def p16(world: World) -> Iterator[Result]:
    """All options but `slots` have their defaults."""
    world.widen(SLOTS)
    topic = world.kafka.create_topic("rare")
    feed = Feed(world.broker.address, topic, keys(KEYS, WORK_US, **{SLOW: SLOW_US}), PER_SECOND)
    with counted(world, behind(world, topic, slots=str(SLOTS)), SLOW) as query, feed.running():
        began = time.time()
        batches = Story(query).watch(MANY, WATCHED_S)
        ended = time.time()
    arrived = PER_SECOND * (1 - 1 / KEYS) * (ended - began)
    lag_s = (arrived - sum(b.healthy for b in batches)) / PER_SECOND
    longest = max(*(b.seconds for b in batches), ended - batches[-1].end)
    work = f"{PER_SECOND:.0f} records/s, one of {KEYS:,} keys takes {SLOW_US / 1e6:g} s behind the read, {SLOTS} slots"
    note = f"{len(batches)} batches in {ended - began:.0f} s; {sum(b.slow for b in batches)} slow records"
    yield Result("P16", f"{work}: lag of the others", "", duration(max(0.0, lag_s)), "", note=note)
    yield Result("P16", "the longest batch, one under way included", "", duration(longest), "")
