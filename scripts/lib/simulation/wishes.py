"""The options of one application's user: drawn at random, so that every option meets every fault."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from coordinator.assignment.assignors.assignor import Assignment, Assignor, Subscriber
from coordinator.member.limits import Limits
from coordinator.plan.planning import Cutting

ASSIGNORS = (
    "grouped",
    "grouped",
    "rack-aware,grouped",
    "range,grouped",
    "roundrobin,grouped",
    "grouped,range",
    "copartitioned,grouped",
)
OFFSETS_A_RECORD = 500
"""About as many, in a log with long stretches without a record."""

EXCLUSIVE = "roundrobin"  # an assignor that not every member names


class Broken:
    """An assignor whose name all members know, and that fails on this host."""

    def __init__(self, assignor: Assignor) -> None:
        self.name, self.version = assignor.name, assignor.version

    def assign(self, members: Sequence[Subscriber], partitions: Mapping[str, int], previous: Assignment) -> Assignment:
        """Fail, as a user's class may. Half of the failures would end the process."""
        raise SystemExit(1) if len(members) % 2 else KeyError("rack")


@dataclass(frozen=True, slots=True)
class Wishes:
    """Options of one query, and behaviour of its Spark."""

    cutting: Cutting
    limits: Limits
    available_now: bool
    interval_ms: int  # of the trigger
    initial_calls: int  # Spark calls initialOffset and partitions once or twice
    on_state_loss: str
    batch_budget_ms: int
    max_lead_ms: int | None
    fail_on_data_loss: bool
    acknowledges: bool  # its user commits offset ranges while a batch runs
    orders: bool  # its user commits a part of each batch in order
    replays_acknowledged: bool  # a replay has acknowledged records again
    sharing: bool  # whether it may own parts of partitions
    assignors: str  # by preference
    broken: bool  # whether each of them fails here
    in_read: bool  # its function runs in `read`, where its cost is exact
    early_ends: bool  # its tasks may end slices early
    unreached: float  # the part of its tasks that do not reach their driver

    def without_order(self, random: Random) -> "Wishes":
        """The wishes of a member of a group without order. Its batches are small, so that members share a partition."""
        limits = replace(self.limits, max_offsets=random.choice((1, 3, 6, self.limits.max_offsets)))
        cutting = replace(self.cutting, lanes=None, by_offset=True)
        mine = replace(self, limits=limits, cutting=cutting, early_ends=False)
        return replace(mine, acknowledges=False, orders=False, replays_acknowledged=True)

    def modelled(self, model: str) -> "Wishes":
        """The wishes of a member of a model in `specs/`: only its batches move positions, and cuts in `Loss`."""
        early = model == "Batch"
        mine = replace(self, early_ends=early, acknowledges=False, orders=False)
        if model == "Loss":
            mine = replace(mine, fail_on_data_loss=False)
        return replace(mine, replays_acknowledged=self.replays_acknowledged or early)

    def widened(self) -> "Wishes":
        """The wishes of a member that reads thousands of offsets in a slice: no limit counts single offsets.

        A short budget does: one slow record a batch is one offset a batch where few offsets have a record.
        """
        most = self.limits.max_offsets and OFFSETS_A_RECORD * self.limits.max_offsets
        limits = replace(self.limits, max_offsets=most)
        mine = replace(self, limits=limits, cutting=widened(self.cutting), max_lead_ms=None, batch_budget_ms=0)
        return replace(mine, acknowledges=False, orders=False)

    def joining(self, topics: tuple[str, ...]) -> "Wishes":
        """The wishes of a member with `copartition`: all members name the same topics, and no assignor."""
        return replace(self, cutting=replace(self.cutting, joined=topics, max_records_per_partition=None), broken=False)

    @classmethod
    def drawn(cls, random: Random, *, available_now: bool, sharing: bool | None, assignors: str) -> "Wishes":
        """Options of a query that may end by itself; draws `sharing` too, if it is None."""
        interval_ms = random.choice((0, 0, 0, 500, 9_000))
        return cls(
            drawn_cutting(random),
            Limits(random.choice((None, 3, 8)), random.choice((None, None, 3)), 2_000),
            available_now,
            interval_ms,
            random.choice((1, 2)),
            random.choice(("fail", "earliest")),
            random.choice((0, 300, 1_000, 10_000) if interval_ms < 1_000 else (0, 10_000)),  # as the docs advise
            random.choice((None, None, 0, 3_000)),
            random.choice((True, False)),
            random.choice((True, False, False)),
            orders=random.choice((True, False)),
            replays_acknowledged=random.choice((True, False)),
            sharing=random.random() < 0.9 if sharing is None else sharing,
            assignors=assignors,
            broken=random.random() < 0.1,
            in_read=random.choice((True, True, False)),
            early_ends=random.choice((True, False)),
            unreached=random.choice((0.0, 0.0, 0.3, 1.0)),
        )


def widened(cutting: Cutting) -> Cutting:
    """The same limits for a log with many offsets for each record."""
    most = cutting.max_records_per_partition
    return replace(cutting, max_records_per_partition=most and OFFSETS_A_RECORD * most)


def drawn_cutting(random: Random) -> Cutting:
    """How finely partitions are cut. A new draw changes the lanes of a driver."""
    lanes, max_records = random.choice((None, None, 1, 3, 4)), random.choice((None, None, None, 2))
    return Cutting(random.randint(1, 4), lanes, random.choice((None, None, 5)), max_records)
