"""The read model behind `coop-kafka top`: members and lanes at work. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Self

from coordinator.progress.failing import deferred_and_parked
from coordinator.redis.group_state import GroupState
from coordinator.redis.lane_lines import CostKind, LaneLine, interesting
from coordinator.tools.fields import (
    DeferredKeys,
    EndAge,
    GroupField,
    GroupLag,
    HashesText,
    Means,
    MemberId,
    MemberState,
    ParkedKeys,
    PartitionNumber,
    TopicField,
)
from coordinator.tools.operations.group_look import GroupLook
from coordinator.tools.operations.views import MemberView, live, oldest_end_s, runs_s, total_lag


@dataclass(frozen=True, slots=True)
class LaneAtWork:
    """A lane as its member planned it last."""

    topic: TopicField
    partition: PartitionNumber
    hashes: HashesText
    position: Annotated[int, Means("The next offset to read.", "POSITION")]
    lag: Annotated[int, Means("Records up to the end offset, estimated.", "LAG")]
    lag_s: Annotated[int | None, Means("Age of the oldest unread record in seconds.", "LAG S")]
    lag_at_least: Annotated[bool, Means("Whether `lag_s` is a lower bound.", "LAG S")]
    rate: Annotated[float, Means("Records per second of the last batch.", "RATE")]
    drain_s: Annotated[
        int | None,
        Means("Seconds until `lag` is read at `rate`, if no record comes; null without a rate.", "DRAIN S"),
    ]
    record_ms: Annotated[float, Means("Time that a record occupies a slot; 0 if unknown.", "MS/RECORD")]
    cost: Annotated[CostKind, Means("`sure`, `guessed` or `unknown`: the quality of `record_ms`.", "MS/RECORD")]
    quota: Annotated[int, Means("Records of the batch that was planned last.", "QUOTA")]
    why: Annotated[str, Means("The [bound](reference.md#bounds-of-a-lane) of the lane.", "WHY")]
    member: Annotated[str, Means("Its member.", "MEMBER")]

    @classmethod
    def of(cls, member: str, line: LaneLine) -> Self:
        """The lane of a member's line."""
        tp, lag = line.tp, (line.lag, line.lag_s, line.lag_at_least)
        where = tp.topic, tp.partition, str(line.hashes), line.position, *lag
        return cls(*where, line.rate, line.drain_s, line.record_ms, line.cost, line.quota, line.why, member)


@dataclass(frozen=True, slots=True)
class MemberActivity:
    """A member, its batch under way, and its last batch."""

    member: MemberId
    state: MemberState
    lanes: Annotated[int, Means("Lanes that it reports.", "LANES")]
    slow_percent: Annotated[int, Means("Share of its slots that slow lanes take.", "SLOW %")]
    runs_s: Annotated[float | None, Means("Time since its batch began; null between batches.", "RUNS S")]
    batch_s: Annotated[float, Means("Duration of its last batch; 0 without one.", "BATCH S")]
    rate: Annotated[float, Means("Records per second of its last batch; 0 without one.", "RATE")]
    read_percent: Annotated[
        int | None, Means("Part of `batch_s` in which the task that read longest read from Kafka.", "READ %")
    ] = None
    ago_s: Annotated[float | None, Means("Time since its last batch ended; null without one.", "AGO S")] = None
    slowest_lane: Annotated[str, Means("The lane that took longest in it; `-` if unknown.", "SLOWEST LANE")] = "-"
    limit: Annotated[str, Means("Why more lanes or members do not help; mostly empty.", "the last line")] = ""


@dataclass(frozen=True, slots=True)
class TopView:
    """A group at work."""

    group: GroupField
    state: Annotated[str, Means("[State](operations.md#describe) of the group.")]
    members: tuple[MemberActivity, ...]
    lanes: tuple[LaneAtWork, ...]  # the most interesting first
    deferred_keys: DeferredKeys = 0
    parked_keys: ParkedKeys = 0
    lag: GroupLag = None
    end_age_s: EndAge = None


def top_view(look: GroupLook) -> TopView:
    """The view of a group at work."""
    seen = look.view
    members, lanes = tuple(_member(m, look) for m in seen.members), tuple(_lanes(look.state))
    lag, age = total_lag(seen.partitions), oldest_end_s(seen.partitions)
    return TopView(look.group, seen.state, members, lanes, *deferred_and_parked(look.failing), lag, age)


def limited_lanes(state: GroupState) -> tuple[LaneAtWork, ...]:
    """The lanes that a bound limits, the most interesting first."""
    return tuple(_lanes(state, lambda line: line.limited))


def _lanes(state: GroupState, shown: Callable[[LaneLine], bool] = lambda _: True) -> Iterator[LaneAtWork]:
    """The lanes of members whose lease runs, the most interesting first."""
    members = live(state)
    member_of = {line: member for member, lines in state.lanes.items() if member in members for line in lines}
    return (LaneAtWork.of(member_of[line], line) for line in interesting(member_of) if shown(line))


def _member(m: MemberView, look: GroupLook) -> MemberActivity:
    state = look.state
    lanes, slow_percent = len(state.lanes.get(m.member, ())), int(m.fields.get("slow_percent", "0"))
    at_ms, last = look.last_batches.get(m.member, (0, None))
    now = lanes, slow_percent, runs_s(m.member, state) if m.lease_left_ms else None
    if last is None:
        return MemberActivity(m.member, m.state, *now, 0.0, 0.0)
    ago_s, rate = max(0, state.now_ms - at_ms) / 1_000, last.rows / max(last.seconds, 0.001)
    limit, reads = last.limit_text if last.reading_bound else "", last.reading
    return MemberActivity(m.member, m.state, *now, last.seconds, round(rate, 1), reads, ago_s, last.slowest, limit)
