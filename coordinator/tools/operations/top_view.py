"""The read model behind `coop-kafka top`: members and lanes at work. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

from coordinator.progress.failing import FailingRecord, deferred_and_parked
from coordinator.redis.group_state import GroupState
from coordinator.redis.lane_lines import BatchLine, LaneLine, interesting
from coordinator.tools.operations.views import MemberView, oldest_end_s, runs_s, total_lag, view

MemberBatch = tuple[int, BatchLine]
"""The time of a report, in ms since 1970 by the clock of Redis, and the batch."""

MemberLane = tuple[str, LaneLine]
"""A member, and one of its lanes as it planned it last."""


@dataclass(frozen=True, slots=True)
class MemberActivity:
    """A member, its batch under way, and its last batch."""

    id: str
    state: str  # as `describe` has it
    lanes: int  # that it reports
    slow_percent: int  # share of its slots that slow lanes take
    runs_s: float | None  # since its batch under way began; None between batches, or if its lease is over
    ago_s: float | None  # since its last batch ended; None if Redis has none
    seconds: float  # of that batch
    rate: float  # its records per second
    slowest: str  # its slowest lane
    reading_percent: int | None = None  # of the time of its last batch, in the task that read longest
    limit: str = ""  # why more lanes or members do not help; empty if reading is not the bottleneck


@dataclass(frozen=True, slots=True)
class TopView:
    """A group at work."""

    group: str
    state: str
    members: tuple[MemberActivity, ...]
    lanes: tuple[MemberLane, ...]  # the most interesting first
    deferred_keys: int = 0  # failing keys that are tried again
    parked_keys: int = 0  # failing keys that wait for a release
    lag: int | None = None  # of all partitions, from stable offsets to log ends; None while no end is known
    end_age_s: float | None = None  # age of the oldest of these ends


def top_view(
    group: str, state: GroupState, batches: Sequence[MemberBatch], failing: Collection[FailingRecord] = ()
) -> TopView:
    """The view of a group at work; `batches` are the last ones of all members, the oldest first."""
    seen = view(group, state)
    members = tuple(_member(m, state, batches) for m in seen.members)
    deferred, parked = deferred_and_parked(failing)
    behind, age = total_lag(seen.partitions), oldest_end_s(seen.partitions)
    return TopView(group, seen.state, members, _lanes(state), deferred, parked, behind, age)


def limited_lanes(state: GroupState) -> tuple[MemberLane, ...]:
    """The lanes that a bound limits, the most interesting first."""
    return tuple((member, line) for member, line in _lanes(state) if line.limited)


def lane_fields(lane: MemberLane) -> dict[str, object]:
    """A lane for programs."""
    member, line = lane
    values = asdict(line) | {"hashes": str(line.hashes), "drain_s": line.drain_s}
    return {"member": member, **values.pop("tp")._asdict(), **values}


def _lanes(state: GroupState) -> tuple[MemberLane, ...]:
    """The lanes of members whose lease runs, the most interesting first."""
    live = {member for member, end in state.leases_ms.items() if end > state.now_ms}
    member_of = {line: member for member, lines in state.lanes.items() if member in live for line in lines}
    return tuple((member_of[line], line) for line in interesting(member_of))


def _member(m: MemberView, state: GroupState, batches: Sequence[MemberBatch]) -> MemberActivity:
    lanes, slow_percent = len(state.lanes.get(m.id, ())), int(m.fields.get("slow_percent", "0"))
    at_ms, last = next(((at, b) for at, b in reversed(batches) if b.member == m.id), (0, None))
    now = lanes, slow_percent, runs_s(m.id, state) if m.lease_left_ms else None
    if last is None:
        return MemberActivity(m.id, m.state, *now, None, 0.0, 0.0, "-")
    ago_s, rate = max(0, state.now_ms - at_ms) / 1_000, last.rows / max(last.seconds, 0.001)
    reading = last.reading, last.limit_text if last.reading_bound else ""
    return MemberActivity(m.id, m.state, *now, ago_s, last.seconds, round(rate, 1), last.slowest, *reading)
