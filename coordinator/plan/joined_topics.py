"""Joined topics: partition i of each is one unit, cut into the same lanes (rule: joined-topics). Pure.

    orders-3     |-- 60 ----------|-- 10 -|     work that waits, by hash
    payments-3   |-- 20 --|-- 40 ---------|
    the unit     |-- ...  |  ...  |  ...  |     cut as one partition; its bounds are those of both topics

So a task can read the same hashes of all joined topics.

A topic that has grown before the others is read as before:

    orders       0 1 2 3 | 4 5 6 7     wait until payments has eight partitions too
    payments     0 1 2 3 |
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from coordinator.errors import NotCopartitionedError
from coordinator.plan.lane_bounds import LaneBounds, Piece, Pieces, shared
from coordinator.values.hash_map import HashMap
from coordinator.values.subscription import Topic, TopicPartition

JoinedNames = tuple[str, ...]
"""The topics of the option `copartition`, sorted; empty without it."""


def unit(tp: TopicPartition, joined: JoinedNames) -> TopicPartition:
    """The partition that stands for its unit: of the first joined topic. A partition of another topic is a unit."""
    return TopicPartition(joined[0], tp.partition) if tp.topic in joined else tp


def of_unit(tp: TopicPartition, joined: JoinedNames) -> tuple[TopicPartition, ...]:
    """The partitions of its unit."""
    return tuple(TopicPartition(topic, tp.partition) for topic in joined) if tp.topic in joined else (tp,)


def must_be_equal(counts: Mapping[str, int]) -> None:
    """Raise `NotCopartitionedError` if joined topics have different numbers of partitions."""
    if len(set(counts.values())) > 1:
        shown = ", ".join(f"{topic} has {count}" for topic, count in sorted(counts.items()))
        raise NotCopartitionedError(
            f"the option copartition names topics with different numbers of partitions: {shown}"
        )


def grown_together(
    topics: Mapping[str, Topic], counts: Mapping[str, int], before: Mapping[str, int], of_group: Mapping[str, int]
) -> Mapping[str, Topic]:
    """The topics without the partitions that some joined topics have and others have not.

    `counts`: the numbers of partitions of the joined topics in Kafka; `before`: as this process saw them last;
    `of_group`: those that members read already. None of these is left out, unless a broker does not know it yet.

    Raises `NotCopartitionedError` if the group does not read one of the topics yet, or has fewer partitions of it.
    """
    if len(set(counts.values())) < 2:
        return topics
    fewest = min(counts, key=lambda topic: counts[topic])
    of_joined = [of_group.get(topic, 0) for topic in counts]
    new = any(topic not in before and topic not in of_group for topic in counts)
    if new or counts[fewest] == of_group.get(fewest, 0) < max(of_joined):
        must_be_equal(counts)
    most = max(min(before.values(), default=0), min(of_joined))
    return {name: _first(topic, most) if name in counts else topic for name, topic in topics.items()}


def _first(topic: Topic, most: int) -> Topic:
    first = topic.partitions[:most]
    return (
        replace(topic, partitions=first, total=0, waiting=topic.count - len(first))
        if first != topic.partitions
        else topic
    )


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
