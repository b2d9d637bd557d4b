"""Makes the reports of a member's lanes and of its last batch from the plan and the cost model. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest
from itertools import islice
from math import ceil
from operator import attrgetter

from coordinator.plan.cost.batch_cost import Ended, Load
from coordinator.plan.cost.quotas import Budget, Quota, Why, slow_lanes
from coordinator.plan.lane_bounds import LaneBounds
from coordinator.plan.planning import OwnedRanges
from coordinator.plan.poison import Strike
from coordinator.progress.end_history import EndHistory
from coordinator.progress.slices import LaneId
from coordinator.redis.lane_lines import (
    MOST_REPORTED,
    PARKED,
    TRIED,
    BatchLine,
    CostKind,
    LaneLine,
    LaneReport,
    interesting,
)
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition

LIMITS = "maxOffsetsPerTrigger"


class _Rates:
    """Records per second of the lanes of some partitions in a batch. There may be 65,536 lanes."""

    def __init__(self, ended: Ended, partitions: Collection[TopicPartition]) -> None:
        self._per_row = 1_000 / max(ended.took_ms, 1.0)
        loads = [load for load in ended.batch.loads if load.lane[0] in partitions]
        self._rows = {load.lane: load.kept for load in loads}
        self._loads: defaultdict[TopicPartition, list[Load]] = defaultdict(list)
        for load in loads:
            self._loads[load.lane[0]].append(load)

    def of(self, lane: LaneId) -> float:
        """The rate of the lane, or its share of the lanes that it was cut from."""
        rows = self._rows.get(lane)
        if rows is None:
            rows = sum(_part(load.lane[1], lane[1]) * load.kept for load in self._loads.get(lane[0], ()))
        return rows * self._per_row


def _part(hashes: HashRange, of: HashRange) -> float:
    common = hashes.intersection(of)
    return common.size / hashes.size if common else 0.0


@dataclass(frozen=True, slots=True)
class Planned:
    """The planner's last decision, and its inputs."""

    quotas: Sequence[Quota]
    until: Mapping[TopicPartition, int]  # the end of each partition's reading, after Spark's limits
    strikes: Sequence[Strike]
    bounds: LaneBounds = field(default_factory=dict)  # of the lanes in each quota
    ceilings: Sequence[tuple[str, OwnedRanges]] = ()  # the rules that set ceilings, in order, each with its ranges


def lane_report(planned: Planned, ended: Ended | None, history: EndHistory, now_ms: int) -> LaneReport:
    """The report of the lanes of a plan; `ended` is the batch before."""
    quotas, struck = planned.quotas, {s.tp for s in planned.strikes}
    first, rest = _apart(quotas, planned, struck)
    shown = _lanes(nsmallest(MOST_REPORTED, first, key=lambda q: (q.tp not in struck, -q.lag)), planned)
    shown += _lanes(nsmallest(MOST_REPORTED - len(shown), rest, key=lambda q: q.piece.position - q.end), planned)
    shown = shown[:MOST_REPORTED]
    rates = _Rates(ended, {q.tp for q in shown}) if ended else None
    lines = interesting(_line(q, planned, rates, history, now_ms) for q in shown)
    parked = sum(line.why == PARKED for line in lines)
    limited = sum(_count(q, planned) for q in first if q.tp not in struck)
    limited += sum(line.limited for line in lines if line.tp in struck)
    slowest = max(quotas, key=attrgetter("record_ms"), default=None)
    count = sum(_count(q, planned) for q in quotas)
    free = [q for q in quotas if not _parked(q, _over(q, planned))] if planned.strikes else quotas
    return LaneReport(tuple(lines), count, limited, parked, _slowest(slowest), *_slot_time(free, history, now_ms))


def _slot_time(quotas: Iterable[Quota], history: EndHistory, now_ms: int) -> tuple[int, int]:
    """The slot time of all unread records in ms, and that of the records that arrive, in percent of one slot.

    Records above a ceiling do not count: more slots would not read them.
    """
    of_offset = [(q, q.cell.density * q.record_ms) for q in quotas]
    arrivals = {tp: history.per_ms(tp, now_ms) for tp in {q.tp for q, _ in of_offset}}
    backlog_ms = sum((q.span if q.why is Why.CEILING else q.lag) * ms for q, ms in of_offset)
    return ceil(backlog_ms), ceil(100 * sum(arrivals[q.tp] * ms for q, ms in of_offset))


def _over(q: Quota, planned: Planned) -> list[Strike]:
    """The strikes with hashes of a lane."""
    return [s for s in planned.strikes if s.tp == q.tp and s.hashes.intersection(q.lane[1])]


def _parked(q: Quota, over: Iterable[Strike]) -> bool:
    return any(s.parked and q.piece.position <= s.offset for s in over)


def _lanes(quotas: Iterable[Quota], planned: Planned) -> list[Quota]:
    """The first `MOST_REPORTED` lanes of quotas."""
    return list(islice((lane for q in quotas for lane in q.cut(planned.bounds.get(q.tp, ()))), MOST_REPORTED))


def _count(quota: Quota, planned: Planned) -> int:
    bounds = planned.bounds.get(quota.tp)
    return len(quota.piece.hashes.cut(bounds)) if bounds else 1


def _apart(
    quotas: Iterable[Quota], planned: Planned, struck: Collection[TopicPartition]
) -> tuple[list[Quota], list[Quota]]:
    """The lanes that are struck, or bounded by the plan or by Spark's limit; and the others."""
    first: list[Quota] = []
    rest: list[Quota] = []
    for q in quotas:
        until = planned.until.get(q.tp, q.end)
        limited = q.why is not Why.NOTHING or (until < q.end and max(0, until - q.piece.position) < q.span)
        (first if limited or q.tp in struck else rest).append(q)
    return first, rest


def _slowest(q: Quota | None) -> str:
    return f"{q.tp.topic} {q.tp.partition} {q.lane[1]}: {q.record_ms:.3g} ms a record" if q and q.record_ms else "-"


def _line(q: Quota, planned: Planned, rates: _Rates | None, history: EndHistory, now_ms: int) -> LaneLine:
    position = q.piece.position
    behind = history.behind_ms(q.tp, position, now_ms)
    offsets = max(0, min(q.span, planned.until.get(q.tp, q.end) - position))
    return LaneLine(
        q.tp,
        q.piece.hashes,
        position,
        lag=ceil(q.lag * q.cell.density),
        lag_s=behind and behind[0] // 1_000,
        lag_at_least=behind is not None and behind[1] and q.lag > 0,
        rate=round(rates.of(q.lane), 1) if rates else 0.0,
        record_ms=float(f"{q.record_ms:.3g}"),
        cost=_kind(q),
        quota=ceil(offsets * q.cell.density),
        why=_why(q, offsets, planned),
    )


def _kind(q: Quota) -> CostKind:
    if q.cell.record_ms is not None:
        return CostKind.SURE
    return CostKind.GUESSED if q.rate_ms else CostKind.UNKNOWN


def _why(q: Quota, offsets: int, planned: Planned) -> str:
    """The bound on a lane; the strongest reason wins."""
    over = _over(q, planned)
    if _parked(q, over):
        return PARKED
    if any(q.lag and q.piece.position < s.offsets.until for s in over):
        return TRIED
    if offsets < q.span:
        return LIMITS
    return f"{q.why}{_whose(q, planned)}" if q.why is Why.CEILING else str(q.why)


def _whose(q: Quota, planned: Planned) -> str:
    """The rule that set the ceiling of a lane: the first with a ceiling as low."""
    for who, work in planned.ceilings:
        ranges = (p for p in work.get(q.tp, ()) if p.hashes.intersection(q.lane[1]))
        if any(p.ceiling is not None and p.ceiling <= q.piece.reach(q.end) for p in ranges):
            return f": {who}"
    return ""


def slow_part(quotas: Sequence[Quota], budget: Budget) -> float:
    """The share of a member's slots that slow lanes take, from 0 to 1.

    A backlog of lanes that are all alike does not count: it is no reason to assign less to this member.
    """
    slow = sum(q.work_ms for q in slow_lanes(quotas) if q.why in (Why.BUDGET, Why.TURN))
    return min(1.0, slow / (budget.ms * budget.slots)) if budget.ms else 0.0


def batch_line(member: str, ended: Ended) -> BatchLine:
    """The report of a batch."""
    loads = ended.batch.loads
    sizes = [load.cost.bytes for load in loads if load.cost is not None]
    slowest = max(loads, key=_took, default=None)
    of_slowest, all_sent = slowest.lane if slowest else None, len(sizes) == len(loads)
    read_ms = ended.batch.most(lambda load: load.cost.read_ms if load.cost else 0.0)
    return BatchLine(
        member,
        rows=round(sum(load.kept for load in loads)),
        bytes=sum(sizes) if all_sent else None,
        seconds=ended.took_ms / 1_000,
        lanes=len(loads),
        slowest=f"{of_slowest[0].topic} {of_slowest[0].partition} {of_slowest[1]}" if of_slowest else "-",
        reading=min(100, round(100 * read_ms / max(ended.took_ms, 1.0))) if all_sent else None,
    )


def _took(load: Load) -> tuple[float, float]:
    return load.cost.read_ms + load.cost.function_ms if load.cost else 0.0, load.rows
