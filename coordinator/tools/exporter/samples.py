"""The metrics of one look at all groups. Pure.

    group state + log ends + age of a position  ->  (metric, labels, value), ...

Without log ends, the metrics that need them are absent: an old value would look like a lag that stands still.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from coordinator.progress.failing import deferred_and_parked
from coordinator.redis.group_state import BATCH_BUDGET, LONGEST_BATCH, GroupState
from coordinator.tools.exporter import metrics
from coordinator.tools.exporter.metrics import Metric
from coordinator.tools.operations.gaps import gaps
from coordinator.tools.operations.group_look import GroupLook
from coordinator.tools.operations.log_ends import LogEnds
from coordinator.tools.operations.views import GroupView, MemberView, PartitionView, live, owned, runs_s, whole_lag
from coordinator.tools.operations.wanted_slots import DRAIN_S, wanted_slots
from coordinator.values.ranges import HASH_MAX
from coordinator.values.subscription import TopicPartition

AgeOf = Callable[[TopicPartition, int], float | None]
"""Since how many seconds a partition has records from an offset on; 0 at the log end, None if it is unknown."""

_DIGITS = 8  # of the first hex digit of a hash, which has 63 bits


class Sample(NamedTuple):
    """One value of a metric; the labels are in the order of the metric's names."""

    metric: Metric
    labels: tuple[str, ...]
    value: float


@dataclass(frozen=True, slots=True)
class ExporterLook:
    """One look at Redis and Kafka."""

    groups: Mapping[str, GroupLook | None] | None  # None for a damaged group; None if Redis did not answer
    ends: LogEnds | None  # None if Kafka was not asked, or did not answer
    took_s: float
    drain_s: int = DRAIN_S  # in which the wanted slots would read the backlog

    @property
    def asked_kafka(self) -> bool:
        """Whether a group has a partition: without one, nothing shows whether Kafka is up."""
        return any(look and look.state.segments for look in (self.groups or {}).values())


def samples(look: ExporterLook, age_of: AgeOf) -> Iterator[Sample]:
    """All samples of a look. Log ends in the groups' states are those of `look.ends`, or there are none."""
    yield Sample(metrics.REDIS_UP, (), look.groups is not None)
    if look.asked_kafka:
        yield Sample(metrics.KAFKA_UP, (), look.ends is not None)
    yield Sample(metrics.SCRAPE, (), look.took_s)
    for tp, end in (look.ends or {}).items():
        yield Sample(metrics.LOG_END, (tp.topic, str(tp.partition)), end)
    for group, of_group in (look.groups or {}).items():
        yield Sample(metrics.READABLE, (group,), of_group is not None)
        if of_group is not None:
            yield Sample(metrics.WANTED, (group,), _wanted(of_group, look.drain_s))
            yield from _of_group(of_group, age_of)


def _of_group(look: GroupLook, age_of: AgeOf) -> Iterator[Sample]:
    group, seen, state = look.group, look.view, look.state
    yield Sample(metrics.WRITABLE, (group,), not look.refusal)
    yield Sample(metrics.INFO, (group, seen.assignor, seen.state), seen.state == "Stable")
    yield Sample(metrics.MEMBERS, (group,), len(live(state)))
    yield Sample(metrics.REBALANCES, (group,), seen.generation)
    if made_ms := int(state.meta.get("generation_at", "0")):
        yield Sample(metrics.GENERATION_AGE, (group,), max(0, state.now_ms - made_ms) / 1_000)
    yield from _held_back(group, look, age_of)
    for member in seen.members:
        yield from _of_member(group, member, look)
    yield from _of_topics(group, seen)
    for partition in seen.partitions:
        yield from _of_partition(group, partition, age_of)
    for p in gaps(state):
        yield Sample(metrics.GAP, (group, p.topic, str(p.partition)), p.furthest - p.stable)
    yield from _owned(group, state)


def _wanted(look: GroupLook, drain_s: int) -> int:
    return wanted_slots(look.state, whole_lag(look.view.partitions), drain_s)


def _held_back(group: str, look: GroupLook, age_of: AgeOf) -> Iterator[Sample]:
    """Lanes and keys that are parked, or tried again."""
    parked_lanes = sum(s.parked for s in look.strikes)
    deferred_keys, parked_keys = deferred_and_parked(look.failing)
    yield Sample(metrics.PARKED_LANES, (group,), parked_lanes)
    yield Sample(metrics.STRUCK_LANES, (group,), len(look.strikes) - parked_lanes)
    yield Sample(metrics.PARKED_KEYS, (group,), parked_keys)
    yield Sample(metrics.DEFERRED_KEYS, (group,), deferred_keys)
    ages = [age_of(r.tp, r.offset) for r in look.failing if not r.parked]
    if (oldest := max((age for age in ages if age is not None), default=None)) is not None or not ages:
        yield Sample(metrics.DEFERRED_AGE, (group,), oldest or 0)


def _of_member(group: str, member: MemberView, look: GroupLook) -> Iterator[Sample]:
    labels = group, member.member
    yield Sample(metrics.MEMBER_INFO, (*labels, member.fields.get("host", ""), member.state), 1)
    yield Sample(metrics.LEASE, labels, member.lease_left_ms / 1_000)
    yield Sample(metrics.BATCH, labels, runs_s(member.member, look.state) or 0)
    if member.member in look.last_batches:
        _, batch = look.last_batches[member.member]
        yield Sample(metrics.LAST_BATCH, labels, batch.seconds)
    for metric, name in ((metrics.BUDGET, BATCH_BUDGET), (metrics.LONGEST, LONGEST_BATCH)):
        if limit_ms := int(member.fields.get(name, "0")):
            yield Sample(metric, labels, limit_ms / 1_000)


def _of_topics(group: str, seen: GroupView) -> Iterator[Sample]:
    """The lag of each topic, whole and by the first digit of hashes; none of a topic with an unknown end."""
    topics: dict[str, list[PartitionView]] = {}
    for partition in seen.partitions:
        topics.setdefault(partition.topic, []).append(partition)
    for topic, partitions in topics.items():
        if (lag := whole_lag(partitions)) is not None:
            yield Sample(metrics.TOPIC_LAG, (group, topic), lag)
            for digit, of_digit in enumerate(_by_digit(partitions)):
                yield Sample(metrics.HASH_LAG, (group, topic, str(digit)), of_digit)


def _by_digit(partitions: Iterable[PartitionView]) -> list[int]:
    """The largest lag of a lane that has hashes with this first digit."""
    largest = [0] * _DIGITS
    for p in partitions:
        for lane in p.lanes:
            for digit in range(int(lane.hashes[0]), int(lane.hashes[len(lane.hashes) // 2 + 1]) + 1):
                largest[digit] = max(largest[digit], lane.lag or 0)
    return largest


def _of_partition(group: str, p: PartitionView, age_of: AgeOf) -> Iterator[Sample]:
    labels = group, p.topic, str(p.partition)
    yield Sample(metrics.STABLE, labels, p.stable)
    if p.lag is not None:
        yield Sample(metrics.LAG, labels, p.lag)
        if (age := age_of(p.tp, p.stable)) is not None:
            yield Sample(metrics.LANE_LAG, labels, age)


def _owned(group: str, state: GroupState) -> Iterator[Sample]:
    """The shares of members whose lease runs."""
    of_members = owned(state)
    for member in live(state) & of_members.keys():
        for tp, ranges in of_members[member].items():
            share = sum(hashes.size for hashes in ranges) / (HASH_MAX + 1)
            yield Sample(metrics.OWNED, (group, tp.topic, str(tp.partition), member), share)
