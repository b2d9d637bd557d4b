"""Members of one group in this process, as if each had its own host. They read their tasks in turns, without Spark."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from uuid import uuid4

from bench.sources import reader
from bench.world import World
from coordinator.member.cooperative import Cooperative
from coordinator.member.limits import NO_LIMITS
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.replies import Joining
from coordinator.redis.store import store_of
from coordinator.values.clock import BootClock
from spark_coop_source.driver.tasks import input_partitions
from spark_coop_source.driver.wiring import cutting, group_settings, kafka_log
from spark_coop_source.options.declarations import SourceOptions
from spark_coop_source.options.options import validate
from spark_coop_source.task.read import TaskReader


class Member:
    """One member; `rows` and `seconds` are of its tasks so far."""

    def __init__(self, options: SourceOptions, group: str, client: RedisClient) -> None:
        settings = group_settings(options, group)
        made = Cooperative if options.ordering == "none" else Service
        self.service = made(
            settings,
            options.subscription,
            options.starting,
            cutting(options),
            store=store_of(ScriptCalls.of(client, settings)),
            log=kafka_log(options),
            clock=BootClock(),
            me=Joining({"host": uuid4().hex}),
        )
        self.rows, self.seconds = 0, 0.0
        self._options, self._start = options, StreamOffset(group)

    def turn(self) -> None:
        """Commit the last batch, and read the next one, if there is any."""
        end = self.service.next_offset(self._start, NO_LIMITS)
        if end is None:
            return
        parts = input_partitions(self._options, self.service.tasks(end))
        began = time.perf_counter()
        self.rows += sum(batch.num_rows for part in parts for batch in TaskReader(None).read(part))
        self.seconds += time.perf_counter() - began
        self._start = end


@contextmanager
def members(world: World, topic: str, count: int, **options: str) -> Iterator[list[Member]]:
    """A new group of this many members, each with two slots, from the beginning of the topic."""
    group = f"hosts-{uuid4().hex[:8]}"
    given = {"group": group, "redisUrl": world.redis.address, "slots": "2", **reader(world, topic), **options}
    with ExitStack() as stack:
        clients = [RedisClient(world.redis.address) for _ in range(count)]
        for client in clients:
            stack.callback(client.close)
        made = [Member(validate(given, streaming=True), group, client) for client in clients]
        made[0].service.first_positions()
        yield made
