"""Joined topics: partition i of each is one unit, cut into the same lanes (rule: joined-topics). Pure.

    orders-3     |-- 60 ----------|-- 10 -|     work that waits, by hash
    payments-3   |-- 20 --|-- 40 ---------|
    the unit     |-- ...  |  ...  |  ...  |     cut as one partition; its bounds are those of both topics

So a task can read the same hashes of all joined topics.
"""

from collections import defaultdict
from collections.abc import Sequence

from coordinator.plan.lane_bounds import LaneBounds, Piece, Pieces, shared
from coordinator.values.hash_map import HashMap
from coordinator.values.subscription import TopicPartition

JoinedNames = tuple[str, ...]
"""The topics of the option `copartition`, sorted; empty without it."""


def unit(tp: TopicPartition, joined: JoinedNames) -> TopicPartition:
    """The partition that stands for its unit: of the first joined topic. A partition of another topic is a unit."""
    return TopicPartition(joined[0], tp.partition) if tp.topic in joined else tp


def of_unit(tp: TopicPartition, joined: JoinedNames) -> tuple[TopicPartition, ...]:
    """The partitions of its unit."""
    return tuple(TopicPartition(topic, tp.partition) for topic in joined) if tp.topic in joined else (tp,)


def shared_by_units(
    pieces: Pieces, tasks: int, before: LaneBounds, joined: JoinedNames, *, soon: bool, least: float = 0.0
) -> LaneBounds:
    """`lane_bounds.shared`, with the same bounds for all partitions of a unit."""
    if not joined:
        return shared(pieces, tasks, before, soon=soon, least=least)
    units = defaultdict[TopicPartition, list[Sequence[Piece]]](list)
    for tp, of_tp in pieces.items():
        units[unit(tp, joined)].append(of_tp)
    together = {u: overlaid(rows) for u, rows in units.items()}
    bounds_before = {unit(tp, joined): b for tp, b in before.items()}
    bounds = shared(together, tasks, bounds_before, soon=soon, least=least)
    return {tp: bounds[u] for tp in pieces if (u := unit(tp, joined)) in bounds}


def overlaid(rows: Sequence[Sequence[Piece]]) -> Sequence[Piece]:
    """One row of pieces with the work of all rows; cut where any row is cut. Each row is ascending and disjoint."""
    if len(rows) == 1:
        return rows[0]
    return [
        Piece(hashes, sum(p.work * hashes.size / p.hashes.size for p in over), any(p.slow for p in over))
        for hashes, over in HashMap.stacked((p.hashes, p) for row in rows for p in row)
    ]
