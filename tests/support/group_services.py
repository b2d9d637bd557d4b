"""Members of a group without Spark: the service as a reader process builds it, and the clock of a test."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import redis

from coordinator.assignment.assignors.joined import Joined
from coordinator.assignment.settings import GroupSettings
from coordinator.member.cooperative import Cooperative
from coordinator.member.invariants import check
from coordinator.member.limits import Limits
from coordinator.member.query import Query
from coordinator.member.service import Service
from coordinator.plan.planning import Cutting
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import GroupState
from coordinator.redis.keys import GroupKeys
from coordinator.redis.policies import RedisPolicies
from coordinator.redis.replies import Joining
from coordinator.redis.snapshot import read_group
from coordinator.redis.store import Store, store_of
from coordinator.values.log import Log
from coordinator.values.offset_spec import Earliest, OffsetSpec
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Assigned, Subscription, TopicPartition, Topics
from kafka_logs import kafka_log
from topics import Kafka

UNLIMITED = Limits()
BATCHES = 20  # more than any test here needs
LONG_MS, SHORT_MS = 30_000, 500
"""A session that outlives a slow machine's pauses, `Group.lose` ends it; and one that a recovery waits for."""


@dataclass
class TestClock:
    """Goes on by itself, and can be moved; a wait is short, but never nothing. The next one does `at_wait`."""

    __test__ = False
    skipped: int = 0
    at_wait: Callable[[], None] | None = None

    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000 + self.skipped

    def wall_ms(self) -> int:
        return self.now_ms()

    def wait(self, ms: int) -> None:
        at_wait, self.at_wait = self.at_wait, None
        if at_wait:
            at_wait()
        time.sleep(min(ms, 20) / 1000)

    def wake(self) -> None:
        pass

    def skip(self, ms: int) -> None:
        self.skipped += ms


class PatientClock(TestClock):
    """Of a test whose member looks again for seconds: each wait takes as long as it says, and no time."""

    def wait(self, ms: int) -> None:
        self.skip(ms)


class StillClock(TestClock):
    """Stands still until it is moved."""

    def now_ms(self) -> int:
        return 12_345 + self.skipped


@dataclass
class Group:
    """One group on a broker and a Redis; makes the services of its members, and closes what they use."""

    kafka: Kafka
    redis_url: str
    name: str
    clock: TestClock = field(default_factory=TestClock)
    session_ms: int = LONG_MS
    _stack: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.redis = self._stack.enter_context(closing(redis.Redis.from_url(self.redis_url, decode_responses=True)))
        self.client = self._stack.enter_context(closing(RedisClient(self.redis_url)))

    def close(self) -> None:
        self._stack.close()

    def service(
        self,
        subscription: Subscription,
        starting: OffsetSpec | None = None,
        *,
        fail_on_data_loss: bool = True,
        log: Log | None = None,
        session_ms: int = 0,
        settings: GroupSettings | None = None,
        fields: Mapping[str, str] | None = None,
        application: str = "",
    ) -> Service:
        """A member to be, in a process of its own: it knows nothing yet."""
        if settings is None:
            session_ms = session_ms or self.session_ms
            settings = GroupSettings(self.name, capacity=2, session_ms=session_ms, fail_on_data_loss=fail_on_data_loss)
        store = store_of(ScriptCalls.of(self.client, settings))
        made = Cooperative if settings.ordering == "none" else Service
        return made(
            replace(settings, watch=check),
            subscription,
            starting or Earliest(),
            Cutting(2, by_offset=settings.ordering == "none", joined=_joined(settings)),
            store=store,
            log=log or self.log(),
            clock=self.clock,
            me=Joining(fields or {"host": "h"}, application),
        )

    def started(self, subscription: Subscription, starting: OffsetSpec | None = None, **how: Any) -> Service:
        """The same, once the group has its first positions."""
        service = self.service(subscription, starting, **how)
        service.first_positions()
        return service

    def begun(
        self, subscription: Subscription, starting: OffsetSpec | None = None, **how: Any
    ) -> tuple[Service, StreamOffset]:
        """The same, and the end of its first batch, which is authorised."""
        service = self.started(subscription, starting, **how)
        return service, batch(service, StreamOffset(self.name))

    def aiming(self, subscription: Subscription, starting: OffsetSpec | None = None, **how: Any) -> Service:
        """The same with AvailableNow, before its first batch."""
        service = self.started(subscription, starting, **how)
        service.set_targets()
        return service

    def log(self) -> Log:
        return self._stack.enter_context(closing(kafka_log(self.kafka.bootstrap)))

    @property
    def store(self) -> Store:
        """The verbs, for somebody who is no member."""
        return store_of(ScriptCalls.of(self.client, GroupSettings(self.name)))

    @property
    def policies(self) -> RedisPolicies:
        return RedisPolicies(ScriptCalls.of(self.client, GroupSettings(self.name)))

    @property
    def state(self) -> GroupState:
        return read_group(self.client, self.name)

    @property
    def events(self) -> list[str]:
        entries = cast(list[tuple[str, dict[str, str]]], self.redis.xrange(GroupKeys(self.name).events))
        return [fields["event"] for _, fields in entries]

    @property
    def keys(self) -> list[str]:
        return sorted(self.redis.scan_iter(f"coop:v1:{{{self.name}}}:*"))

    def lose(self, service: Service) -> None:
        """Let the lease of a member end now, as if it had been silent for a session."""
        now_ms = self.store.positions.now_ms()
        assert self.redis.zadd(GroupKeys(self.name).leases, {service.member: now_ms - 1}, xx=True, ch=True) == 1

    @contextmanager
    def losing(self, service: Service) -> Iterator[None]:
        """Let the lease of a member end once another one waits, which it must do in the body of `with`."""
        self.clock.at_wait = lambda: self.lose(service)
        yield
        assert self.clock.at_wait is None, "nobody has waited for the end of the lease"

    def lose_everything(self) -> None:
        """Delete all keys of the group."""
        self.redis.delete(*self.keys)
        self.clock.at_wait = self.end_recovery

    def end_recovery(self, heard: str = "") -> None:
        """Let a recovery end now, as if a session had passed. If none goes on, the next wait tries again.

        With `heard`, it ends only after this member has joined again: the wait may be of another one, which must not
        join first.
        """
        keys = GroupKeys(self.name)
        goes_on = self.redis.hexists(keys.meta, "recovering_until")
        if goes_on and (not heard or self.redis.zscore(keys.leases, heard) is not None):
            self.redis.hset(keys.meta, "recovering_until", self.store.positions.now_ms() - 1)
        else:
            self.clock.at_wait = lambda: self.end_recovery(heard)

    def copied(self) -> dict[str, bytes]:
        """All keys of the group as they are now, for `restore`."""
        with closing(redis.Redis.from_url(self.redis_url)) as binary:
            return {key: cast(bytes, binary.dump(key)) for key in self.keys}

    def restore(self, copy: Mapping[str, bytes]) -> None:
        """Replace the group by a copy of it, as an old backup does."""
        self.lose_everything()
        with closing(redis.Redis.from_url(self.redis_url)) as binary:
            for key, value in copy.items():
                binary.restore(key, 0, value)

    def restart_redis(self, heard: str = "") -> None:
        """Write another run id to the group, as if the server had been restarted; `heard`: see `end_recovery`."""
        self.redis.hset(GroupKeys(self.name).meta, "run_id", "0")
        self.clock.at_wait = lambda: self.end_recovery(heard)


def _joined(settings: GroupSettings) -> tuple[str, ...]:
    """The topics of the option `copartition`, which reach both the planner and the assignor."""
    return next((a.topics for a in settings.assignors if isinstance(a, Joined)), ())


def batches(service: Service, start: StreamOffset) -> Iterator[StreamOffset]:
    """The ends of batches that the sink completes, one by one, until there is nothing to do."""
    for _ in range(BATCHES):
        end = service.next_offset(start, UNLIMITED)
        if end is None:
            return
        service.tasks(end)
        yield end
        start = end
    raise AssertionError(f"still not done after {BATCHES} batches")


def batch(service: Service, start: StreamOffset) -> StreamOffset:
    """The end of the one next batch, authorised; the sink completes it when it comes back as start."""
    return next(batches(service, start))


def slices_read(query: Query, end: StreamOffset) -> tuple[Slice, ...]:
    """The slices of the tasks of a batch, ascending."""
    return tuple(sorted(s for task in query.tasks(end) for s in task))


def records(*ends: StreamOffset) -> set[tuple[str, int]]:
    """(topic, offset) of what every lane of some batches reads, if all lanes of a partition read it."""
    return {(s.topic, offset) for end in ends for s in end.slices for offset in range(s.offsets.start, s.offsets.until)}


def whole(*partitions: TopicPartition) -> Assigned:
    """Those partitions with all their keys."""
    return Assigned(dict.fromkeys(partitions, (WHOLE,)))


def subscribed(tp: TopicPartition) -> Topics:
    return Topics((tp.topic,))


def run(members: Group, subscription: Subscription, *, fail_on_data_loss: bool = True) -> StreamOffset:
    """A query with AvailableNow, from its start to a proper end; the last offset, whose batch is committed."""
    service = members.aiming(subscription, fail_on_data_loss=fail_on_data_loss)
    done = [StreamOffset(members.name), *batches(service, StreamOffset(members.name))]
    service.leave()
    return done[-1]


def read(tp: TopicPartition, first: int, until: int) -> set[tuple[str, int]]:
    return {(tp.topic, offset) for offset in range(first, until)}


def beats(service: Service) -> bool:
    """One heartbeat of a member: for a condition that needs them to go on."""
    service.heartbeat()
    return True


@contextmanager
def beating(service: Service, each_s: float = 0.2) -> Iterator[None]:
    """The heartbeat thread of a reader process."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(each_s):
            service.heartbeat()

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
